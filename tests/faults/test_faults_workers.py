"""Several workers as one server: killed, frozen, restarted, orphaned, and clients go on."""

import errno
import os
import signal
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import httpx2
import trio

from tests.patience import PATIENCE_S
from tests.worlds.nodes import Node
from tests.worlds.server_process import ServerProcess, open_server

WORKERS = 3
RUNNERS = 6
RENEWALS = 5
PAUSE_S = 0.05
"""Between two calls of a runner: then there are still a hundred a second, and each fault meets some."""
LULL_S = 0.5
"""The same while another worker starts, which takes seconds of a processor; nothing is harmed meanwhile."""
T = TypeVar("T")


class Load:
    """Runners that lease, renew and report all the time, and a sender of messages."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.done: set[str] = set()
        self.refused = 0
        """Connections that were not taken."""
        self.cut = 0
        """Connections that ended under a call."""
        self.in_a_row = 0
        """The most tries that one call needed after one fault."""
        self.faults = 0
        """How many workers have been harmed; a call that waits long may meet two."""
        self.pause_s = PAUSE_S
        self.over = trio.Event()

    async def work(self, server: ServerProcess, runner: str) -> None:
        async with _client(server) as node:
            while not (self.over.is_set() and self.done >= set(self.said)):
                lease = await self._insist(partial(node.lease, runner))
                if lease is not None:
                    for _ in range(RENEWALS):
                        await trio.sleep(self.pause_s)
                        await self._insist(partial(node.renew, runner, lease))
                    await self._insist(partial(node.report, runner, lease))
                    self.done.add(lease["event"]["event_id"])

    async def send(self, server: ServerProcess, agents: Sequence[str]) -> None:
        async with _client(server) as node:
            for zombie_id in cycle(agents):
                if self.over.is_set():
                    return
                self.said.append(await self._insist(partial(node.say, zombie_id)))
                await trio.sleep(0.2)

    async def _insist(self, call: Callable[[], Awaitable[T]]) -> T:
        tries, faults = 0, self.faults
        while True:
            if faults != self.faults:
                tries, faults = 1, self.faults
            tries += 1
            self.in_a_row = max(self.in_a_row, tries)
            try:
                return await call()
            except httpx2.ConnectError:
                self.refused += 1
            except httpx2.TransportError:
                self.cut += 1


@asynccontextmanager
async def _client(server: ServerProcess) -> AsyncIterator[Node]:
    """With connections of its own."""
    async with httpx2.AsyncClient(base_url=server.ready["base_url"], timeout=60) as http:
        yield Node(server, http)


async def recovered(server: ServerProcess, load: Load, times: int) -> None:
    """The same, with all calls just after the fault and once the new worker serves, and few between."""
    await trio.sleep(1)
    load.pause_s = LULL_S
    await until_served(server, times)
    load.pause_s = PAUSE_S
    await trio.sleep(LULL_S + 0.5)


async def until_served(server: ServerProcess, times: int) -> None:
    """Wait until the log has told so often that a worker serves."""
    while told(server, "worker_serves") < times:
        assert server.running, server.log()
        await trio.sleep(0.1)


def told(server: ServerProcess, event: str) -> int:
    """How often the log tells this."""
    return (server.folder / "server.log").read_text(errors="replace").count(f'"{event}"')


async def test_workers_that_are_killed_frozen_and_restarted_lose_nothing_and_refuse_nobody(
    tmp_path: Path,
) -> None:
    load = Load()
    async with open_server(tmp_path, "--port", "0", "--runners", "0", "--workers", str(WORKERS)) as server:
        workers = server.ready["pids"]["workers"]
        assert len(set(workers)) == WORKERS

        async with _client(server) as node:
            agents = [await node.install(f"agent-{number}") for number in range(RUNNERS)]
            runners = [await node.enrol(f"runner-{number}") for number in range(RUNNERS)]
            with trio.fail_after(PATIENCE_S):
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(load.send, server, agents)
                    for runner in runners:
                        nursery.start_soon(load.work, server, runner)
                    await trio.sleep(1)

                    load.faults += 1
                    os.kill(workers[0], signal.SIGKILL)
                    await recovered(server, load, WORKERS + 1)
                    assert (load.refused, load.in_a_row <= 2) == (0, True), vars(load)

                    load.faults += 1
                    os.kill(workers[1], signal.SIGSTOP)
                    for _ in range(WORKERS):
                        async with _client(server) as other:
                            await other.call("GET", f"{node.workspace}/events")
                    assert not told(server, "worker_frozen"), "the others answer while it is still there"

                    await recovered(server, load, WORKERS + 2)
                    # One that is starved on a busy machine is taken for frozen as well, and replaced.
                    assert told(server, "worker_frozen") >= 1
                    assert (load.refused, load.in_a_row <= 2) == (0, True), vars(load)

                    server.send(signal.SIGUSR1)
                    await until_served(server, 2 * WORKERS + 2)
                    load.over.set()

            assert load.refused == 0
            assert load.in_a_row <= 2

            assert await statuses(node, load.said) == {"processed"}


async def statuses(node: Node, event_ids: Sequence[str]) -> set[str]:
    """How these events stand, as the history tells page by page."""
    found: dict[str, str] = {}
    cursor = ""
    while True:
        page = await node.call("GET", f"{node.workspace}/events?limit=200{cursor}")
        found |= {event["event_id"]: event["status"] for event in page["items"]}
        if page["next_cursor"] is None:
            return {found[event_id] for event_id in event_ids}
        cursor = f"&cursor={page['next_cursor']}"


async def _tree(node: Node, worker: int) -> dict[str, Any]:
    """A worker's own actors, whichever of them answers; one of them has begun again before."""
    path, body = "/v1/fleet/actors/dispatcher", {"worker": worker}
    done = await node.call("POST", f"{path}:restart", body, "admin_token")
    assert (done["worker"], done["actor"]["kind"]) == (worker, "dispatcher")
    tree: dict[str, Any] = await node.call("GET", f"/v1/fleet/tree?worker={worker}", None, "admin_token")
    restarts = [node["restarts"] for node in tree["tree"]["children"][1]["children"]]
    assert restarts == [1, 0]
    return tree


async def test_workers_show_their_own_actors_and_end_with_their_parent(tmp_path: Path) -> None:
    async with open_server(tmp_path, "--port", "0", "--runners", "0", "--workers", "2") as server:
        workers = server.ready["pids"]["workers"]
        async with _client(server) as node:
            seen = [await _tree(node, worker) for worker in range(2)]
        url = urlsplit(server.ready["base_url"])

        server.kill()

        with trio.fail_after(PATIENCE_S):
            while any(Path(f"/proc/{pid}/stat").exists() for pid in workers):
                await trio.sleep(0.05)
        with socket.socket() as door:
            assert door.connect_ex((url.hostname or "", url.port or 0)) == errno.ECONNREFUSED

        assert len({tree["node"] for tree in seen}) == len(seen[0]["nodes"]) == 1
        assert [(tree["worker"], tree["workers"]) for tree in seen] == [(0, [0, 1]), (1, [0, 1])]
