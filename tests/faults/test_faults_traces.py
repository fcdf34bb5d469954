"""A server that is frozen or killed while it sends spans: bills stay right, and only spans can be lost."""

import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import trio

from tests.fakes.collector import Collector, open_collector
from tests.worlds.nodes import Node, open_nodes, visit_nodes

UNAVAILABLE = b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n"
WITHIN_S = 60


class Keeping:
    """A collector that says nothing for as long as it likes, and then that it cannot take it."""

    def __init__(self) -> None:
        self.asked, self.leave, self.said = trio.Event(), trio.Event(), trio.Event()

    async def __call__(self, stream: trio.SocketStream) -> None:
        self.asked.set()
        await self.leave.wait()
        await stream.send_all(UNAVAILABLE)
        self.said.set()


async def freeze(node: Node) -> None:
    """Gives when it has stopped, and not only been told to."""
    node.server.send(signal.SIGSTOP)
    status = Path(f"/proc/{node.server.pid}/stat")
    with trio.fail_after(WITHIN_S):
        while status.read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "T":
            await trio.sleep(0.01)


async def ended(node: Node, zombie_id: str, runner: str) -> str:
    """An event that a runner has done; its id."""
    event_id = await node.say(zombie_id)
    lease = await node.lease(runner)
    assert lease is not None
    reported = await node.report(runner, lease)
    assert reported["status"] == "processed"
    return event_id


async def shown(node: Node, event_id: str) -> dict[str, Any]:
    return dict(await node.call("GET", f"{node.workspace}/events/{event_id}/trace"))


def spans_of(collector: Collector, event_id: str) -> set[str]:
    return {span.span_id for span in collector.spans if span.trace_id == UUID(event_id).hex}


def has(event_id: str) -> Callable[[Collector], bool]:
    """Whether the whole event has come: its own span is the last."""
    return lambda got: any(span.name == "event" and span.trace_id == UUID(event_id).hex for span in got.spans)


async def test_a_server_that_is_frozen_or_killed_while_it_sends_loses_nothing_but_spans(
    tmp_path: Path, postgres_dsn: str
) -> None:
    async with (
        open_collector() as collector,
        open_nodes(
            tmp_path, postgres_dsn, "--otlp-endpoint", collector.base_url, environments=({},)
        ) as nodes,
    ):
        [node] = nodes
        zombie_id, runner = await node.install("watcher"), await node.enrol("host")

        # It is frozen with a request under way, and finds a collector that is well again.
        collector.misbehave = keeping = Keeping()
        frozen = await ended(node, zombie_id, runner)
        with trio.fail_after(WITHIN_S):
            await keeping.asked.wait()
        await freeze(node)
        collector.misbehave = None
        keeping.leave.set()
        await keeping.said.wait()
        node.server.send(signal.SIGCONT)
        await collector.until(has(frozen))
        told = await shown(node, frozen)

        assert spans_of(collector, frozen) == {span["span_id"] for span in told["spans"]}
        assert collector.cost() == told["cost_nanos"] == told["charged_nanos"]

        # It is killed with a request under way: these spans are lost, and what they tell is not.
        collector.misbehave = keeping = Keeping()
        killed = await ended(node, zombie_id, runner)
        with trio.fail_after(WITHIN_S):
            await keeping.asked.wait()
        node.server.kill()
        collector.misbehave = None
        await node.server.start()
        async with visit_nodes([node.server]) as [again]:
            after = await ended(again, zombie_id, runner)
            await collector.until(has(after))
            lost, next_one = await shown(again, killed), await shown(again, after)

    assert spans_of(collector, killed) == set()
    assert (lost["ended"], lost["status"]) == (True, "processed")
    assert {span["name"] for span in lost["spans"]} >= {"event", "lease", "report"}
    assert lost["cost_nanos"] == lost["charged_nanos"]
    assert spans_of(collector, after) == {span["span_id"] for span in next_one["spans"]}
