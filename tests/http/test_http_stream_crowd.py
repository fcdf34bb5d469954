"""Thousands of readers on one node, and among them those who do not keep up."""

import sys
import time
from contextlib import AsyncExitStack
from typing import Any

import pytest
import trio

from sexton_http.ceilings import UNDIVIDED
from sexton_http.wire import timeouts
from tests.thorough import amount
from tests.worlds.event_stream import Listener, listening, retry_ms
from tests.worlds.http import HttpWorld, open_http_world

STREAMS = amount(500, 2000, variable="SEXTON_STREAMS")
"""Readers of the crowd; the node is told to hold as many."""
REQUESTS = 1
"""In flight at most: opening a stream is none of them."""
PIECE = "x" * 8192
PIECES = 1024
AT_ONCE = 32
"""What is shown at once finds room on the way to a reader."""


async def show(world: HttpWorld, lease: dict[str, Any], token: str, *texts: str) -> None:
    path = f"/v1/runners/me/leases/{lease['lease_id']}/activity"
    frames = [{"kind": "tool_call_progress", "name": text, "elapsed_ms": 1} for text in texts]
    shown = await world.post(path, {"frames": frames}, token)
    assert shown.status_code == 202, shown.text


def streams_open(world: HttpWorld) -> float:
    for metric in world.registry.collect():
        for sample in metric.samples:
            if sample.labels.get("wait") == "streams" and "in_flight" in sample.name:
                return sample.value
    raise AssertionError("no such metric")


async def until_open(world: HttpWorld, count: int) -> None:
    while streams_open(world) != count:
        await trio.sleep(0.01)


async def test_a_crowd_hears_every_frame_and_the_store_is_read_once_for_all(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async with open_http_world(max_streams=STREAMS, max_in_flight=REQUESTS, shares=UNDIVIDED) as world:
        zombie, token, lease = await world.working()
        path = f"{world.ws}/zombies/{zombie['zombie_id']}/events/stream"
        async with AsyncExitStack() as stack:
            told = await follow_all(world, path, lease, token, stack, monkeypatch=monkeypatch)
        await until_open(world, 0)

        begun = time.perf_counter()
        async with AsyncExitStack() as stack:
            last = await newest(world, path)
            crowd = await come_all(world, path, stack, last_event_id=str(last - 1))
            waits = {await retry_ms(stream) for stream in crowd}
            seen = [(await stream.frame())["id"] for stream in crowd]

            assert (streams_open(world), seen) == (STREAMS, [last] * STREAMS)
            assert len(waits) > 1
        again = f"all back by their numbers in {time.perf_counter() - begun:.1f} s"

        with capsys.disabled():
            sys.stdout.write(f"\n{STREAMS} streams: {told}, {again}\n")


async def come_all(world: HttpWorld, path: str, stack: AsyncExitStack, **headers: str) -> list[Listener]:
    """Open all streams at once."""
    crowd: list[Listener] = []

    async def come() -> None:
        stream = await stack.enter_async_context(listening(world.base_url, path, world.api_key, **headers))
        assert stream.status == 200
        crowd.append(stream)

    async with trio.open_nursery() as nursery:
        for _ in range(STREAMS):
            nursery.start_soon(come)
    return crowd


async def newest(world: HttpWorld, path: str) -> int:
    """The number of the agent's last frame."""
    async with listening(world.base_url, path, world.api_key) as stream:
        assert await stream.line()
        return int((await stream.line() or "").removeprefix("id: "))


async def follow_all(
    world: HttpWorld,
    path: str,
    lease: dict[str, Any],
    token: str,
    stack: AsyncExitStack,
    *,
    monkeypatch: pytest.MonkeyPatch,
) -> str:
    """Open all streams and show them three frames; in words how long it took."""
    begun = time.perf_counter()
    crowd = await come_all(world, path, stack)
    opened = time.perf_counter()
    assert streams_open(world) == STREAMS

    reads = count_reads(world, monkeypatch)
    spread = time.perf_counter()
    for name in ("one", "two", "three"):
        # A reader that comes back late for what was handed out looks for itself, so none is left behind.
        await show(world, lease, token, name)
        assert [(await stream.frame())["name"] for stream in crowd] == [name] * STREAMS
    done = time.perf_counter()
    assert len(reads) < 3 + STREAMS / 10
    return (
        f"opened in {opened - begun:.1f} s, 3 frames to each in {done - spread:.1f} s, "
        f"{len(reads)} reads of the store"
    )


def count_reads(world: HttpWorld, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    reads: list[int] = []
    read = world.storage.frames.read

    async def counted(*args: Any, **kwargs: Any) -> Any:
        reads.append(kwargs["after"])
        return await read(*args, **kwargs)

    monkeypatch.setattr(world.storage.frames, "read", counted)
    return reads


async def all_of(stream: Listener) -> list[int]:
    """The numbers of all whole frames until the stream breaks off."""
    seen: list[int] = []
    try:
        while True:
            seen.append((await stream.frame())["id"])
    except (AssertionError, trio.BrokenResourceError):
        return seen


async def test_a_reader_who_does_not_read_is_cut_and_goes_on_by_its_number(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(timeouts, "WRITE_S", 0.2)
    async with open_http_world() as world:
        zombie, token, lease = await world.working()
        path = f"{world.ws}/zombies/{zombie['zombie_id']}/events/stream"
        async with (
            listening(world.base_url, path, world.api_key, last_event_id="0") as slow,
            listening(world.base_url, path, world.api_key, last_event_id="0") as prompt,
        ):
            await until_open(world, 2)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(until_open, world, 1)
                assert [(await prompt.frame())["id"] for _ in range(2)] == [1, 2]

                for number in range(PIECES // AT_ONCE):
                    names = [f"{number}.{n} {PIECE}" for n in range(AT_ONCE)]
                    await show(world, lease, token, *names)
                    # No more is sent before this was read, so nothing waits, however busy the machine is.
                    assert [(await prompt.frame())["name"] for _ in range(AT_ONCE)] == names
            seen = await all_of(slow)

            assert seen == list(range(1, len(seen) + 1))
            assert len(seen) < 2 + PIECES
        last = str(seen[-1])
        async with listening(world.base_url, path, world.api_key, last_event_id=last) as again:
            for number in range(seen[-1] + 1, 3 + PIECES):
                assert (await again.frame())["id"] == number


async def test_a_stream_ends_with_its_agent(world: HttpWorld) -> None:
    zombie = await world.install()
    path = f"{world.ws}/zombies/{zombie['zombie_id']}/events/stream"
    async with listening(world.base_url, path, world.api_key) as stream:
        assert await retry_ms(stream) >= 2000

        deleted = await world.call("DELETE", f"{world.ws}/zombies/{zombie['zombie_id']}")
        assert deleted.status_code == 204, deleted.text

        while (await stream.line()) is not None:
            pass
        assert stream.ended


async def test_what_is_not_there_is_said_before_the_stream_begins(world: HttpWorld) -> None:
    unknown = "019363b0-0000-7000-8000-00000000ffff"
    for path, code in (
        (f"{world.ws}/zombies/{unknown}/events/stream", "UZ-ZMB-009"),
        (f"/v1/workspaces/{unknown}/zombies/{unknown}/events/stream", "UZ-WORKSPACE-001"),
    ):
        answer = await world.get(path)
        assert (answer.status_code, answer.json()["error_code"]) == (404, code)
        assert answer.headers["content-type"] == "application/problem+json"
