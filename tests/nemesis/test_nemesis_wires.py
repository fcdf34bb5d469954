"""Wires pass on all that comes, hold it back, and break, as a run tells their process."""

import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
import trio

from tests.fakes.tcp_link import LOOPBACK
from tests.nemesis.wires.bundle import Wire, open_wires
from tests.patience import PATIENCE_S

MANY_BYTES = 8 << 20
SILENCE_S = 0.5


@pytest.fixture
def short() -> Iterator[Path]:
    """Short enough for a socket's path."""
    with tempfile.TemporaryDirectory(prefix="sx") as folder:
        yield Path(folder)


async def echo(stream: trio.SocketStream) -> None:
    with suppress(trio.BrokenResourceError):
        async with stream:
            async for piece in stream:
                await stream.send_all(piece)


@pytest.fixture
async def wire(nursery: trio.Nursery) -> AsyncIterator[Wire]:
    """To a server that says again what it is told."""
    listeners = await nursery.start(partial(trio.serve_tcp, echo, 0, host=LOOPBACK))
    port = listeners[0].socket.getsockname()[1]
    async with open_wires({"clients": (None, (LOOPBACK, port))}) as wires:
        yield wires["clients"]


async def connect(wire: Wire) -> trio.SocketStream:
    return await trio.open_tcp_stream(LOOPBACK, int(wire.base_url.rpartition(":")[2]))


async def say(stream: trio.SocketStream, said: bytes) -> bytes:
    """What comes back."""
    told = bytearray()
    with trio.fail_after(PATIENCE_S):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(stream.send_all, said)
            while len(told) < len(said):
                told += await stream.receive_some()
    return bytes(told)


async def until_silent(stream: trio.SocketStream) -> None:
    """Say something again and again, until nothing comes back: by then the process has obeyed."""
    with trio.fail_after(PATIENCE_S):
        answer = b"."
        while answer:
            await stream.send_all(answer)
            answer = b""
            with trio.move_on_after(SILENCE_S):
                answer = await stream.receive_some(1)


async def test_more_than_fits_into_any_buffer_comes_through_whole(wire: Wire) -> None:
    said = bytes(range(256)) * (MANY_BYTES // 256)

    async with await connect(wire) as stream:
        told = await say(stream, said)

    assert told == said


async def test_what_is_held_comes_through_once_it_is_let_go(wire: Wire) -> None:
    async with await connect(wire) as stream, await connect(wire) as other:
        before = await say(stream, b"before")
        wire.hold()
        await until_silent(other)
        await stream.send_all(b"meanwhile")
        wire.let_go()
        with trio.fail_after(PATIENCE_S):
            meanwhile = await stream.receive_some()

    assert (before, meanwhile) == (b"before", b"meanwhile")


async def test_what_is_hung_up_ends_and_the_next_connection_is_taken(wire: Wire) -> None:
    async with await connect(wire) as stream:
        await say(stream, b"hello")
        wire.hang_up()
        with trio.fail_after(PATIENCE_S):
            end = await stream.receive_some()
    async with await connect(wire) as stream:
        after = await say(stream, b"again")

    assert (end, after) == (b"", b"again")


async def test_where_nobody_listens_a_connection_ends_and_others_go_on(short: Path, wire: Wire) -> None:
    async with open_wires({"database": (short / "near", short / "nobody")}):
        with trio.fail_after(PATIENCE_S):
            async with await trio.open_unix_socket(str(short / "near")) as stream:
                end = await stream.receive_some()
        async with await connect(wire) as stream:
            other = await say(stream, b"hello")

    assert (end, other) == (b"", b"hello")
