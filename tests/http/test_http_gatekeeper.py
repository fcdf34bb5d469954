"""A request that is refused by its head alone: the app does not run, and the connection goes on if it can."""

from socket import create_connection
from typing import Any, NamedTuple

import pytest
import trio

from sexton_http.answers import Answer
from sexton_http.wire.gatekeeper import SKIPPED_BYTES
from sexton_http.wire.tls import Tls
from tests.worlds.asgi_server import Reader, answer, dial, serving
from tests.worlds.http2_client import DATA, END_STREAM, PREFACE, Http2Client, frame, headers, settings

BUSY = Answer(503, ((b"retry-after", b"1"),), b"later")
LARGE = SKIPPED_BYTES + 1
CROWD = 64


class Shut:
    """An app that refuses what is asked of ``/shut``, and counts what it is asked otherwise."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def refuse_early(self, scope: dict[str, Any]) -> Answer | None:
        return BUSY if scope["path"] == "/shut" else None

    async def __call__(self, scope: dict[str, Any], _receive: Any, send: Any) -> None:
        self.asked.append(scope["path"])
        await answer(send, 200, b"taken")


class Sent(NamedTuple):
    """What comes after the request line and the host, and what becomes of the connection."""

    rest: bytes
    goes_on: bool


SENT = {
    "no body": Sent(b"\r\n", goes_on=True),
    "a body": Sent(b"Content-Length: 4\r\n\r\nbody", goes_on=True),
    "a body in chunks": Sent(b"Transfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n", goes_on=True),
    "a body that waits to be asked for": Sent(
        b"Content-Length: 4\r\nExpect: 100-continue\r\n\r\n", goes_on=False
    ),
    "a body too large to be skipped": Sent(b"Content-Length: %d\r\n\r\nbody" % LARGE, goes_on=False),
}


async def test_whoever_is_refused_may_ask_again_on_the_same_connection(tls: Tls | None) -> None:
    app = Shut()
    seen: dict[str, tuple[int, bytes, bool, int]] = {}
    async with serving(app, tls=tls) as doors:
        for name, sent in SENT.items():
            async with await dial(doors) as stream:
                reader = Reader(stream)
                await stream.send_all(b"POST /shut HTTP/1.1\r\nHost: x\r\n" + sent.rest)
                status, head, body = await reader.answer()
                goes_on = b"connection: close" not in head
                again = 0
                if goes_on:
                    await stream.send_all(b"GET /open HTTP/1.1\r\nHost: x\r\n\r\n")
                    again = (await reader.answer())[0]
                seen[name] = status, body, goes_on, again

    assert seen == {
        name: (503, b"later", sent.goes_on, 200 if sent.goes_on else 0) for name, sent in SENT.items()
    }
    assert app.asked == ["/open"] * sum(sent.goes_on for sent in SENT.values())


async def test_the_rest_of_a_body_is_read_over_before_the_next_request() -> None:
    app = Shut()
    async with serving(app) as doors, await dial(doors) as stream:
        reader = Reader(stream)
        await stream.send_all(b"POST /shut HTTP/1.1\r\nHost: x\r\nContent-Length: 24\r\n\r\n")
        await stream.send_all(b"GET /hidden HTTP/1.1\r\n\r\n")
        await stream.send_all(b"GET /open HTTP/1.1\r\nHost: x\r\n\r\n")
        statuses = [(await reader.answer())[0] for _ in range(2)]

    assert (statuses, app.asked) == ([503, 200], ["/open"])


@pytest.mark.parametrize("has_body", [False, True])
async def test_a_refused_stream_of_http2_leaves_the_others_alone(*, has_body: bool) -> None:
    app = Shut()

    def asked(path: bytes) -> list[tuple[bytes, bytes]]:
        return [(b":method", b"POST"), (b":scheme", b"http"), (b":path", path), (b":authority", b"x")]

    async with serving(app) as doors, await dial(doors) as stream:
        client = Http2Client(stream)
        await client.send(PREFACE, settings(), headers(1, asked(b"/shut"), end=not has_body))
        if has_body:
            await client.send(frame(DATA, END_STREAM, 1, b"body"))
        refused = await client.answer(1)
        await client.send(headers(3, asked(b"/open")))
        taken = await client.answer(3)

    assert (refused, taken, app.asked) == (("503", b"later"), ("200", b"taken"), ["/open"])


async def test_a_connection_does_not_wait_a_turn_for_each_that_came_before_it() -> None:
    turns = 0
    came_at: list[int] = []

    async def count() -> None:
        nonlocal turns
        while True:
            await trio.lowlevel.checkpoint()
            turns += 1

    async def app(_scope: dict[str, Any], _receive: Any, send: Any) -> None:
        came_at.append(turns)
        await answer(send, 200, b"")

    async with serving(app) as doors, trio.open_nursery() as nursery:
        nursery.start_soon(count)
        # All of them before the loop looks again.
        lines = [create_connection(("127.0.0.1", doors.port)) for _ in range(CROWD)]
        for line in lines:
            line.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        while len(came_at) < CROWD:
            await trio.lowlevel.checkpoint()
        for line in lines:
            line.close()
        nursery.cancel_scope.cancel()

    assert came_at[-1] - came_at[0] < CROWD / 2
