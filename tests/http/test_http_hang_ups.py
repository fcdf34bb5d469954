"""Who hangs up while it waits is given nothing, and who stays is answered."""

import json
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial

import pytest
import trio
import trio.testing
from prometheus_client import CollectorRegistry

from sexton_http.app import create_app
from sexton_http.wire.hang_ups import HangUps
from sexton_http.wire.stop_signal import Stop, until_stopped
from sexton_http.wire.tls import Tls
from tests.patience import PATIENCE_S
from tests.worlds.asgi_server import Reader, Stream, dial, serving, socket_of
from tests.worlds.http import HttpWorld

RESET = struct.pack("ii", 1, 0)


async def close(stream: Stream) -> None:
    await trio.aclose_forcefully(stream)


async def reset(stream: Stream) -> None:
    socket_of(stream).setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    await trio.aclose_forcefully(stream)


async def say_no_more(stream: Stream) -> None:
    await socket_of(stream).send_eof()


def poll(token: str, wait_ms: int) -> bytes:
    body = json.dumps({"wait_ms": wait_ms}).encode()
    head = (
        "POST /v1/runners/me/leases HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        f"Authorization: Bearer {token}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


@dataclass(frozen=True, slots=True)
class Line:
    """A connection to the world."""

    stream: Stream
    registry: CollectorRegistry

    async def polls(self, count: int) -> None:
        """Return when that many polls wait at this door."""
        with trio.fail_after(PATIENCE_S):
            while self.registry.get_sample_value("sexton_http_in_flight", {"wait": "long_polls"}) != count:
                await trio.sleep(0.005)


@asynccontextmanager
async def connected(world: HttpWorld, *, tls: Tls | None) -> AsyncIterator[Line]:
    """At a door of its own."""
    registry = CollectorRegistry()
    app = create_app(replace(world.ctx, registry=registry))
    async with serving(app, tls=tls) as doors, await dial(doors) as stream:
        yield Line(stream, registry)


@pytest.mark.parametrize("leave", [close, reset, say_no_more])
async def test_a_runner_that_hangs_up_in_its_poll_is_given_nothing(
    world: HttpWorld, leave: Callable[[Stream], Awaitable[None]], tls: Tls | None
) -> None:
    await world.keep_secret()
    zombie = await world.install()
    gone, there = await world.enrol("gone"), await world.enrol("there")
    async with connected(world, tls=tls) as line:
        await line.stream.send_all(poll(gone, 25_000))
        await line.polls(1)
        await leave(line.stream)
        await line.polls(0)
        assert (await world.deliver(zombie["webhook_urls"]["github"])).status_code == 202

        lease = await world.lease(there)

    assert (lease["attempt"], lease["fencing_token"]) == (1, 1)


async def test_a_poll_is_answered_though_the_next_request_is_there_already(
    world: HttpWorld, tls: Tls | None
) -> None:
    token = await world.enrol()
    async with connected(world, tls=tls) as line:
        await line.stream.send_all(poll(token, 50) + b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        reader = Reader(line.stream)
        status, _, body = await reader.answer()
        assert (status, json.loads(body)["lease"]) == (200, None)

        status, _, _ = await reader.answer()
        assert status == 200


async def test_a_connection_polls_again_and_again(world: HttpWorld, tls: Tls | None) -> None:
    token = await world.enrol()
    async with connected(world, tls=tls) as line:
        reader = Reader(line.stream)
        for _ in range(5):
            await line.stream.send_all(poll(token, 5))
            assert (await reader.answer())[0] == 200
        await line.stream.send_all(poll(token, 25_000))
        await line.polls(1)
        await close(line.stream)
        await line.polls(0)


async def test_each_hang_up_is_told_once_and_none_after_it_was_forgotten() -> None:
    told: list[str] = []
    hang_ups = HangUps()
    pairs = {name: socket.socketpair() for name in ("leaves", "stays", "forgotten")}
    for name, (ours, _) in pairs.items():
        hang_ups.expect(ours.fileno(), partial(told.append, name))
    hang_ups.forget(pairs["forgotten"][0].fileno())
    async with trio.open_nursery() as nursery:
        nursery.start_soon(hang_ups.watch)
        for name in ("leaves", "forgotten"):
            pairs[name][1].close()
        pairs["stays"][1].send(b"still here")
        with trio.fail_after(PATIENCE_S):
            while not told:
                await trio.sleep(0.005)
        await trio.testing.wait_all_tasks_blocked()
        # A descriptor's number is used again by the next connection.
        again, other = socket.socketpair()
        hang_ups.expect(again.fileno(), partial(told.append, "again"))
        other.close()
        with trio.fail_after(PATIENCE_S):
            while len(told) < 2:
                await trio.sleep(0.005)
        nursery.cancel_scope.cancel()
    # Where all is cancelled at once, those who wait may come to their end after the watch.
    hang_ups.forget(pairs["stays"][0].fileno())
    hang_ups.close()
    for ours, theirs in pairs.values():
        ours.close()
        theirs.close()
    again.close()

    assert told == ["leaves", "again"]


async def test_a_stop_withdraws_what_waits_and_refuses_what_comes_later() -> None:
    stop, answers = Stop(), list[str | None]()

    async def answer() -> str:
        return "answer"

    async def never() -> str:
        return await trio.sleep_forever()

    async def ask() -> None:
        answers.append(await until_stopped(never, stop, Stop()))

    answers.append(await until_stopped(answer, stop))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask)
        await trio.testing.wait_all_tasks_blocked()
        stop.set()
        await stop.wait()
    answers.append(await until_stopped(answer, stop))

    assert answers == ["answer", None, None]
