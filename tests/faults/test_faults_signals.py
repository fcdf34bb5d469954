"""Two servers that look for one another's work once in ten minutes: all else they have to be told."""

import hashlib
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import pytest
import trio

from tests.worlds.nodes import Node, visit_nodes
from tests.worlds.samples import agent_files
from tests.worlds.server_process import ServerProcess

LOOK_EVERY_S = "600"
WITHIN_S = 60
"""Far more than a signal takes on a busy machine, and far less than a look."""
WAIT_MS = 30_000
ALERTS = "type: webhook\n    source: alerts"
GATED = """\
gates:
  rules:
    - tool: deploy
      action: "*"
      behavior: approve"""


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory, module_dsn: str) -> Iterator[Sequence[ServerProcess]]:
    """Two of one database, which all tests share: agents and runners have labels of the test's own."""
    folder = tmp_path_factory.mktemp("nodes")
    options = ("--database-url", module_dsn, "--port", "0", "--runners", "0", "--look-every", LOOK_EVERY_S)
    started = []
    for name in ("first", "second"):
        (folder / name).mkdir()
        started.append(ServerProcess(folder / name, *options, data=folder / "data"))
        trio.run(started[-1].start)
    yield started
    assert [trio.run(server.stop) for server in started] == [0, 0]


@pytest.fixture
async def nodes(servers: Sequence[ServerProcess]) -> AsyncIterator[Sequence[Node]]:
    async with visit_nodes(servers) as visited:
        with trio.fail_after(WITHIN_S):
            while [await node.metric("sexton_nodes_heard") for node in visited] != [1.0, 1.0]:
                await trio.sleep(0.05)
        yield visited


@pytest.fixture
def label(request: pytest.FixtureRequest) -> str:
    """Of this test's agents, and of the runners that are given their events."""
    return f"of-{hashlib.sha256(request.node.name.encode()).hexdigest()[:12]}"


class Asked:
    """A call that waits for its answer beside the test."""

    def __init__(self) -> None:
        self._done = trio.Event()
        self._answer: Any = None

    async def ask(self, node: Node, path: str, body: Any, token: str) -> None:
        self._answer = (await node.post(path, body, token)).json()
        self._done.set()

    async def get(self, node: Node, path: str, token: str) -> None:
        self._answer = (await node.get(path, token)).json()
        self._done.set()

    async def answer(self) -> Any:
        with trio.fail_after(WITHIN_S):
            await self._done.wait()
        return self._answer


async def until_waiting(node: Node, count: int = 1) -> None:
    """Until that many calls of runners wait on this node."""
    with trio.fail_after(WITHIN_S):
        while await node.metric('sexton_http_in_flight{wait="long_polls"}') != count:
            await trio.sleep(0.02)


POLL = {"wait_ms": WAIT_MS, "max": 1}
POLLS = "/v1/runners/me/leases"


async def test_a_message_at_one_node_wakes_the_runner_that_waits_at_the_other_each_time(
    nodes: Sequence[Node], label: str
) -> None:
    first, second = nodes
    zombie_id, runner = await first.install(label, tags=label), await first.enrol(f"runner-{label}", label)
    # What each node remembers of the agent after the first round must not keep the next event back.
    for ends_at in (first, second, second, first):
        async with trio.open_nursery() as nursery:
            poll = Asked()
            nursery.start_soon(poll.ask, second, POLLS, POLL, runner)
            await until_waiting(second)
            event_id = await first.say(zombie_id)
            lease = (await poll.answer())["lease"]
        assert lease["event"]["event_id"] == event_id
        await ends_at.report(runner, lease)


async def test_a_runner_that_comes_after_the_message_gets_it_from_the_other_node_at_once(
    nodes: Sequence[Node], label: str
) -> None:
    first, second = nodes
    zombie_id, runner = await first.install(label, tags=label), await first.enrol(f"runner-{label}", label)
    heard = 'sexton_node_signals_total{what="heard"}'
    before = await second.metric(heard)
    event_id = await first.say(zombie_id)
    with trio.fail_after(WITHIN_S):
        while await second.metric(heard) == before:
            await trio.sleep(0.02)

    lease = await second.lease(runner)

    assert lease is not None
    assert lease["event"]["event_id"] == event_id


async def test_the_next_event_is_given_out_where_the_runner_waits_wherever_the_last_one_ended(
    nodes: Sequence[Node], label: str
) -> None:
    first, second = nodes
    zombie_id = await first.install(label, tags=label)
    one, other = await first.enrol(f"one-{label}", label), await first.enrol(f"other-{label}", label)
    said = [await first.say(zombie_id) for _ in range(2)]
    lease = await first.lease(one)
    assert lease is not None

    async with trio.open_nursery() as nursery:
        poll = Asked()
        nursery.start_soon(poll.ask, second, POLLS, POLL, other)
        await until_waiting(second)

        await first.report(one, lease)

        assert (await poll.answer())["lease"]["event"]["event_id"] == said[1]


# The client warns of a stream that was not read to its end, and this one has none.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
async def test_frames_of_one_node_come_out_of_the_stream_of_the_other(
    nodes: Sequence[Node], label: str
) -> None:
    first, second = nodes
    zombie_id, runner = await first.install(label, tags=label), await first.enrol(f"runner-{label}", label)
    await first.say(zombie_id)
    lease = await first.lease(runner)
    assert lease is not None

    activity = f"{POLLS}/{lease['lease_id']}/activity"
    async with second.stream(zombie_id) as frames:
        for number in range(3):
            said = {"kind": "chunk", "text": f"word {number}"}
            body = {"fencing_token": lease["fencing_token"], "frames": [said]}
            assert (await first.post(activity, body, runner)).status_code < 300
            with trio.fail_after(WITHIN_S):
                async for frame in frames:
                    if frame["kind"] == "chunk":
                        assert frame["text"] == f"word {number}"
                        break


async def test_a_kill_at_one_node_is_told_to_the_poll_and_the_heartbeat_that_wait_at_the_other(
    nodes: Sequence[Node], label: str
) -> None:
    first, second = nodes
    zombie_id, runner = await first.install(label, tags=label), await first.enrol(f"runner-{label}", label)
    await first.say(zombie_id)
    lease = await first.lease(runner)
    assert lease is not None

    async with trio.open_nursery() as nursery:
        poll, beat = Asked(), Asked()
        beats = {"active_lease_ids": [lease["lease_id"]], "wait_ms": WAIT_MS}
        nursery.start_soon(poll.ask, second, POLLS, POLL, runner)
        nursery.start_soon(beat.ask, second, "/v1/runners/me/heartbeats", beats, runner)
        await until_waiting(second, 2)

        await first.call("PATCH", f"{first.workspace}/zombies/{zombie_id}", {"status": "killed"})

        assert (await poll.answer())["cancelled_lease_ids"] == [lease["lease_id"]]
        assert (await beat.answer())["cancelled_lease_ids"] == [lease["lease_id"]]


async def test_a_runner_that_is_revoked_at_one_node_is_told_on_the_poll_that_waits_at_the_other(
    nodes: Sequence[Node], label: str
) -> None:
    first, second = nodes
    runner = await first.enrol(f"runner-{label}", label)
    fleet = (await first.call("GET", "/v1/fleet/runners", token="admin_token"))["items"]
    [known] = [one for one in fleet if one["host_id"] == f"runner-{label}"]
    async with trio.open_nursery() as nursery:
        poll = Asked()
        nursery.start_soon(poll.ask, second, POLLS, POLL, runner)
        await until_waiting(second)

        await first.call(
            "PATCH", f"/v1/fleet/runners/{known['id']}", {"admin_state": "revoked"}, "admin_token"
        )

        assert (await poll.answer())["error_code"].startswith("UZ-RUN-")


async def test_a_pause_of_the_workspace_holds_at_once_here_and_soon_at_the_other_node(
    nodes: Sequence[Node], label: str
) -> None:
    first, second = nodes
    files = agent_files(label, trigger=ALERTS, tags=label)
    made = await first.call("POST", f"{first.workspace}/zombies", files)
    hook = urlsplit(made["webhook_urls"]["alerts"]).path
    for node in (first, second):  # from here on each holds the record, and believes it for ten minutes
        assert await delivered(node, hook) == 202

    for paused, status in ((True, 402), (False, 202)):
        await first.call("PATCH", first.workspace, {"paused": paused})

        assert await delivered(first, hook) == status
        with trio.fail_after(WITHIN_S):
            while await delivered(second, hook) != status:
                await trio.sleep(0.02)


async def delivered(node: Node, hook: str) -> int:
    """Send a webhook that was not sent before; its status."""
    body = {"event_id": str(uuid4()), "type": "alert", "data": {}}
    return (await node.post(hook, body, "api_key")).status_code


async def test_an_answer_given_at_one_node_reaches_the_run_that_waits_for_it_at_the_other(
    nodes: Sequence[Node], label: str
) -> None:
    first, second = nodes
    zombie_id, runner = (
        await first.install(label, GATED, tags=label),
        await first.enrol(f"runner-{label}", label),
    )
    await first.say(zombie_id)
    lease = await first.lease(runner)
    assert lease is not None

    asks = {
        "fencing_token": lease["fencing_token"],
        "action_id": "one",
        "tool_name": "deploy",
        "action_name": "all",
    }
    opened = await first.post(f"{POLLS}/{lease['lease_id']}/gates", asks, runner)
    gate_id = opened.json()["gate_id"]
    async with trio.open_nursery() as nursery:
        waiter = Asked()
        path = f"{POLLS}/{lease['lease_id']}/gates/{gate_id}?wait_ms={WAIT_MS}"
        nursery.start_soon(waiter.get, first, path, runner)
        await until_waiting(first)

        await second.call("POST", f"{second.workspace}/approvals/{gate_id}:approve", {})

        assert (await waiter.answer())["status"] == "approved"
