"""How soon work that comes to one node is seen at another, beside how soon it is seen at the same node.

Each is measured in turn, one at a time, by one process with one clock: a webhook at the first node and a
runner that waits at the first or at the second; a frame and a reader of the stream; a cancel and the
heartbeat that hears of it.
"""

import sys
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
import trio

sys.path.insert(0, str(Path(__file__).parents[1]))  # so that the file also runs by itself

from bench import harness, machine, server
from bench.load import open_client
from bench.product import Held, Site, delivery, held, payload, poll, report

ROUNDS = harness.size("ROUNDS", 60)
WARM_UP = 5
WAIT_MS = 20_000
SETTLE_S = 0.03
"""How long whoever waits is given to be there, before that happens which he waits for."""
FRAMES_LATER_MS = 50
CROSS_TIMES = 1.5


class Line:
    """One kept-open connection to a node, over which one call goes at a time."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self._stream = stream
        self._left = b""

    async def call(self, request: bytes) -> dict[str, Any]:
        """Send, and give the JSON of the answer."""
        await self._stream.send_all(request)
        head = (await self._until(b"\r\n\r\n")).decode("latin-1").lower()
        assert int(head.split(" ", 2)[1]) < 300, head
        length = int(head.partition("content-length:")[2].partition("\r\n")[0] or 0)
        while len(self._left) < length:
            self._left += await self._stream.receive_some()
        body, self._left = self._left[:length], self._left[length:]
        answer: dict[str, Any] = orjson.loads(body) if body else {}
        return answer

    async def read_until(self, request: bytes | None, mark: bytes) -> None:
        """Read a stream until something is in it; if there is a request, send that first."""
        if request is not None:
            await self._stream.send_all(request)
        await self._until(mark)

    async def _until(self, mark: bytes) -> bytes:
        while mark not in self._left:
            more = await self._stream.receive_some()
            assert more, "the server hung up"
            self._left += more
        before, _, self._left = self._left.partition(mark)
        return before


class Pair:
    """Two nodes of one database, an agent, its runner, and a connection each for who acts and who waits."""

    def __init__(self, sites: tuple[Site, Site], zombie_id: str, token: str) -> None:
        self.sites = sites
        self.zombie_id = zombie_id
        self.token = token
        self._signed = delivery(sites[0], zombie_id, payload())

    @asynccontextmanager
    async def line(self, node: int) -> AsyncIterator[Line]:
        async with await trio.open_tcp_stream(*self.sites[node].address) as stream:
            yield Line(stream)

    def webhook(self) -> bytes:
        """A new delivery to the first node."""
        return self._signed.with_id(str(uuid.uuid4()))

    async def lease(self, line: Line, node: int) -> Held:
        asked = poll(self.sites[node], self.token, wait_ms=WAIT_MS)
        # A poll may be answered with what is to be stopped, too.
        while not (leases := held(self.token, await line.call(asked))):
            pass
        return leases[0]


async def _timed(wait: Callable[[], Awaitable[Any]], act: Callable[[], Awaitable[Any]]) -> tuple[float, Any]:
    """From the beginning of the act to the end of the wait that began before, in ms; and what came of it."""
    ended: list[tuple[int, Any]] = []

    async def waiting() -> None:
        found = await wait()
        ended.append((time.monotonic_ns(), found))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(waiting)
        await trio.sleep(SETTLE_S)
        began = time.monotonic_ns()
        await act()
    at, found = ended[0]
    return (at - began) / 1e6, found


async def webhook_to_runner(pair: Pair, node: int) -> float:
    async with pair.line(0) as sender, pair.line(node) as runner:
        took, lease = await _timed(lambda: pair.lease(runner, node), lambda: sender.call(pair.webhook()))
        await runner.call(report(pair.sites[node], lease))
    return took


async def frame_to_stream(pair: Pair, node: int) -> float:
    site = pair.sites[0]
    async with pair.line(0) as runner, pair.line(node) as reader:
        await runner.call(pair.webhook())
        lease = await pair.lease(runner, 0)
        stream = f"{site.workspace}/zombies/{pair.zombie_id}/events/stream"
        await reader.read_until(pair.sites[node].get(stream), b"retry:")
        word = uuid.uuid4().hex
        said = {"fencing_token": lease.fencing_token, "frames": [{"kind": "chunk", "text": word}]}
        activity = site.post(f"/v1/runners/me/leases/{lease.lease_id}/activity", said, token=pair.token)
        took, _ = await _timed(lambda: reader.read_until(None, word.encode()), lambda: runner.call(activity))
        await runner.call(report(site, lease))
    return took


async def cancel_to_heartbeat(pair: Pair, node: int) -> float:
    site, away = pair.sites[0], pair.sites[node]
    async with pair.line(0) as person, pair.line(node) as runner:
        await person.call(pair.webhook())
        lease = await pair.lease(runner, node)
        pulse = {"active_lease_ids": [lease.lease_id], "wait_ms": WAIT_MS}
        beat = away.post("/v1/runners/me/heartbeats", pulse, token=pair.token)
        cancel = f"{site.workspace}/zombies/{pair.zombie_id}/events/{lease.event_id}/cancel"
        took, told = await _timed(lambda: runner.call(beat), lambda: person.call(site.post(cancel, {})))
        assert told["cancelled_lease_ids"] == [lease.lease_id], told
        await runner.call(report(away, lease))
    return took


MEASURES = {
    "webhook to a waiting runner": webhook_to_runner,
    "frame to a stream": frame_to_stream,
    "cancel to a waiting heartbeat": cancel_to_heartbeat,
}


async def _side_by_side(pair: Pair, name: str) -> list[harness.Figure]:
    measure = MEASURES[name]
    took: tuple[list[float], list[float]] = ([], [])
    for turn in range(WARM_UP + ROUNDS):
        for node in (0, 1):
            ms = await measure(pair, node)
            if turn >= WARM_UP:
                took[node].append(ms)
    same, cross = (harness.Spread.of(those) for those in took)
    later = harness.once(cross.median - same.median)
    times = harness.once(cross.median / same.median)
    budgets = (harness.at_most_times(CROSS_TIMES),) if measure is not frame_to_stream else ()
    figures = [
        harness.Figure(f"{name}, same node p50", same, "ms"),
        harness.Figure(f"{name}, other node p50", cross, "ms", "the same node", times, budgets),
    ]
    if measure is frame_to_stream:
        budget = harness.at_most(FRAMES_LATER_MS, "ms")
        figures.append(harness.Figure(f"{name}, how much later", later, "ms", budgets=(budget,)))
    return figures


async def measure() -> dict[str, Any]:
    figures: list[harness.Figure] = []
    with open_client() as client:
        async with server.open_folder() as one, server.open_folder() as other:
            first = await one.start()
            about = machine.describe_with(one.database_url())
            shares = ("--data", str(one.folder / "data"), "--database-url", one.database_url())
            second = await other.start(*shares)
            [zombie_id] = await server.make_agents(client, first, 1)
            [token] = await server.make_runners(client, first, 1, slots=8)
            pair = Pair((first, first._replace(address=second.address)), zombie_id, token)
            for name in MEASURES:
                harness.tell(f"{name}: {ROUNDS} times at each node")
                figures += await _side_by_side(pair, name)
            await other.stop()
    return harness.report("two_nodes", about, figures)


def run() -> dict[str, Any]:
    return trio.run(measure)


if __name__ == "__main__":
    print(harness.line(run()))
