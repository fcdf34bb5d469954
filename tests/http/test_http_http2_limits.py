"""No client of HTTP/2 takes more than its share, and none loses its good streams to a bad one."""

import struct
from collections import Counter
from itertools import pairwise
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from sexton_http.wire.hang_ups import unless_gone
from sexton_http.wire.http2_calm import IDLE_BURST, RESET_BURST
from sexton_http.wire.http2_session import CONNECTION_WINDOW_BYTES, MAX_STREAMS
from sexton_http.wire.tls import Tls
from tests.patience import PATIENCE_S
from tests.worlds.asgi_server import (
    Reader,
    answer,
    dial,
    echo,
    let_the_server_read,
    serving,
    sized,
    socket_of,
)
from tests.worlds.http2_client import (
    CONTINUATION,
    DATA,
    END_STREAM,
    GET,
    GOAWAY,
    HEADERS,
    INITIAL_WINDOW,
    PING,
    POST,
    PRIORITY,
    RST_STREAM,
    SETTINGS,
    WINDOW_UPDATE,
    Http2Client,
    block,
    frame,
    get,
    headers,
    speaking,
    window,
)

LATER = 1500
AT_ONCE = 100
TURNS = 4
LARGE = 64 * 1024
SMALL = 500
FRAME = 16 * 1024
TAKE_BACK = struct.pack(">I", 8)
CALM = "goaway ENHANCE_YOUR_CALM"


class Gate:
    """An app that answers ``/slow`` when it is let, and all else at once."""

    def __init__(self) -> None:
        self.begun = 0
        self.go = trio.Event()

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        self.begun += 1
        if scope["path"] == "/slow":
            await self.go.wait()
        await answer(send, 200, b"done")

    async def until_begun(self, count: int) -> None:
        while self.begun < count:
            await trio.lowlevel.checkpoint()


async def test_an_old_answer_does_not_wait_for_all_that_come_later(tls: Tls | None) -> None:
    """The client gives back each window as it reads, and has asked for the large answer first."""
    order: list[int] = []
    async with (
        serving(sized, tls=tls) as doors,
        speaking(doors, (INITIAL_WINDOW, LARGE // TURNS), alpn="h2") as client,
    ):
        await client.send(window(0, 1 << 30), get(1, f"/{LARGE}"))
        asked = 1
        while len(order) < LATER + 1:
            under_way = asked - len(order)
            if under_way < AT_ONCE and asked <= LATER:
                first, asked = asked, min(LATER + 1, asked + AT_ONCE - under_way)
                await client.send(*(get(2 * number + 1, f"/{SMALL}") for number in range(first, asked)))
            got = await client.frame()
            assert got is not None
            if got.kind == DATA and got.stream_id == 1 and got.payload:
                await client.send(window(1, len(got.payload)))
            if got.kind in {DATA, HEADERS} and got.flags & END_STREAM:
                order.append(got.stream_id)

    # Each of its turns waits for those who are under way beside it, but not for those who come after them.
    assert order.index(1) < 0.75 * TURNS * AT_ONCE < LATER


async def test_answers_of_equal_size_come_in_turns_and_not_one_after_the_other() -> None:
    """Both are ready at once, and the client would take either whole."""
    async with serving(sized) as doors, speaking(doors, (INITIAL_WINDOW, 1 << 30)) as client:
        await client.send(window(0, 1 << 30), get(1, f"/{4 * LARGE}"), get(3, f"/{4 * LARGE}"))
        turns: list[int] = []
        ended = 0
        while ended < 2:
            [*_, got] = await client.until(lambda got: got.kind == DATA)
            turns.append(got.stream_id)
            ended += got.flags & END_STREAM

    changes = sum(one != other for one, other in pairwise(turns))

    assert changes > len(turns) / 2


async def test_a_stream_too_many_is_refused_and_the_others_are_answered() -> None:
    gate = Gate()
    async with serving(gate) as doors, speaking(doors) as client:
        good = [2 * number + 1 for number in range(MAX_STREAMS)]
        await client.send(*(get(stream_id, "/slow") for stream_id in good))
        await gate.until_begun(MAX_STREAMS)
        await client.send(get(2 * MAX_STREAMS + 1, "/fast"))
        [*_, refused] = await client.until(lambda got: got.kind in {RST_STREAM, GOAWAY})
        gate.go.set()
        statuses = Counter[str]()
        while statuses.total() < MAX_STREAMS:
            [*_, got] = await client.until(lambda got: got.kind == HEADERS)
            statuses[client.status(got.stream_id)] += 1

    assert (refused.outcome(), refused.stream_id) == ("reset REFUSED_STREAM", 2 * MAX_STREAMS + 1)
    assert statuses == {"200": MAX_STREAMS}


async def test_whoever_takes_requests_back_in_a_row_is_told_to_calm_down() -> None:
    gate = Gate()
    async with serving(gate) as doors:
        async with speaking(doors) as client:
            for number in range(2 * int(RESET_BURST)):
                stream_id = 2 * number + 1
                try:
                    await client.send(get(stream_id, "/slow"))
                    await client.send(frame(RST_STREAM, 0, stream_id, TAKE_BACK))
                except trio.BrokenResourceError:
                    break
            [*_, last] = await client.until(lambda got: got.kind == GOAWAY)

            assert last.outcome() == CALM

        # Those whose handlers still run count as open: what is taken back does not make room for more.
        assert gate.begun <= MAX_STREAMS

        gate.go.set()
        async with speaking(doors) as other:
            await other.send(get(1, "/fast"))
            assert await other.answer(1) == ("200", b"done")


FLOODS = {
    "pings": frame(PING, 0, 0, bytes(8)),
    "settings": frame(SETTINGS, 0, 0),
    "priorities": frame(PRIORITY, 0, 1, bytes(5)),
    "DATA without data": frame(DATA, 0, 1),
    "windows": window(0, 1),
    "unknown frames": frame(0xEE, 0, 0, bytes(8)),
    "settings with values": frame(SETTINGS, 0, 0, struct.pack(">HI", 4, 65_535)),
    "continuations": frame(HEADERS, 0, 3, block(GET)) + 64 * frame(CONTINUATION, 0, 3),
}


@pytest.mark.parametrize("flood", FLOODS.values(), ids=FLOODS)
async def test_frames_that_ask_for_nothing_are_bounded(flood: bytes) -> None:
    async with serving(echo) as doors:
        async with speaking(doors) as client, trio.open_nursery() as nursery:
            last: list[str] = []
            heard = trio.Event()

            async def hear() -> None:
                last.append((await client.until(lambda got: got.kind == GOAWAY))[-1].outcome())
                heard.set()

            nursery.start_soon(hear)
            await client.send(headers(1, POST, end=False))
            batch = flood * (8192 // len(flood) + 1)
            sent = 0
            while sent < 4 * IDLE_BURST:
                try:
                    await client.send(batch)
                except trio.BrokenResourceError:
                    break
                sent += len(batch)
            await heard.wait()
        assert last == [CALM]

        async with speaking(doors) as other:
            await other.send(headers(1))
            assert (await other.answer(1))[0] == "200"


async def test_a_client_that_only_keeps_its_connection_alive_may_do_so_for_ever(
    mock_clock: MockClock,
) -> None:
    """A ping each ten seconds beside a long answer, for a week."""
    gate = Gate()
    async with serving(gate) as doors, speaking(doors) as client:
        await client.send(get(1, "/slow"))
        for _ in range(200):
            await client.send(*[frame(PING, 0, 0, bytes(8))] * 300)
            for _ in range(300):
                assert (await client.until(lambda got: got.kind in {PING, GOAWAY}))[-1].kind == PING
            mock_clock.jump(3000)
        gate.go.set()

        assert await client.answer(1) == ("200", b"done")


async def test_a_stop_says_goodbye_at_once_and_lets_a_running_request_end() -> None:
    gate = Gate()
    async with trio.open_nursery() as nursery:
        async with serving(gate) as doors:
            idle, busy = Http2Client(await dial(doors)), Http2Client(await dial(doors))
            for client in (idle, busy):
                await client.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", frame(SETTINGS, 0, 0))
            await idle.send(get(1, "/fast"))
            assert (await idle.answer(1))[0] == "200"

            await busy.send(get(1, "/slow"))
            await gate.until_begun(2)

            async def let_go() -> None:
                assert await idle.until(lambda got: got.kind == GOAWAY)
                assert await idle.frame() is None
                [*_, got] = await busy.until(lambda got: got.kind == GOAWAY)
                assert got.outcome() == "goaway NO_ERROR"
                gate.go.set()

            nursery.start_soon(let_go)
        frames = await busy.until(lambda got: got.kind == DATA)
        assert frames[-1].payload == b"done"

        await busy.until(lambda _: False)
        for client in (idle, busy):
            await client.stream.aclose()


@pytest.mark.parametrize("leave", ["takes it back", "hangs up"])
async def test_a_poll_is_withdrawn_when_its_client_leaves(leave: str) -> None:
    withdrawn = trio.Event()

    async def never() -> str:
        await trio.Event().wait()
        return "never"

    async def poll(scope: dict[str, Any], receive: Any, _send: Any) -> None:
        if await unless_gone(scope, receive, never) is None:
            withdrawn.set()

    async with serving(poll) as doors, speaking(doors) as client:
        await client.send(headers(1))
        await let_the_server_read()
        if leave == "hangs up":
            await socket_of(client.stream).aclose()
        else:
            await client.send(frame(RST_STREAM, 0, 1, TAKE_BACK))
        with trio.fail_after(PATIENCE_S):
            await withdrawn.wait()


async def test_bodies_that_nobody_reads_are_bounded_and_give_their_window_back() -> None:
    begun, go = trio.Event(), trio.Event()

    async def patient(scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["method"] == "POST":
            begun.set()
            await go.wait()
        await echo(scope, receive, send)

    async with serving(patient) as doors, speaking(doors) as client:
        # A stream may be ahead of its handler by its own window only.
        await client.send(headers(1, POST, end=False), *[frame(DATA, 0, 1, bytes(16_384))] * 4)
        await begun.wait()
        await client.send(headers(3))
        assert (await client.answer(3))[0] == "200"

        go.set()
        [*_, got] = await client.until(lambda got: got.kind == 8 and got.stream_id == 1)
        assert struct.unpack(">I", got.payload)[0] >= 16_384
        assert struct.unpack(">I", got.payload)[0] <= CONNECTION_WINDOW_BYTES


BODY = frame(DATA, 0, 1, bytes(FRAME))
UNWANTED = {
    "taken back at once": headers(1, POST, end=False) + BODY + frame(RST_STREAM, 0, 1, TAKE_BACK),
    "of a request that is refused": headers(1, (*POST, (b"host", b"y")), end=False) + BODY,
}


@pytest.mark.parametrize("sent", UNWANTED.values(), ids=UNWANTED)
async def test_a_body_that_nobody_wants_gives_the_connections_window_back(sent: bytes) -> None:
    ping, frames = frame(PING, 0, 0, bytes(8)), []
    async with serving(echo) as doors, speaking(doors) as client:
        for number in range(CONNECTION_WINDOW_BYTES // 2 // FRAME + 1):
            await client.send(sent.replace(struct.pack(">I", 1), struct.pack(">I", 1 + 2 * number)), ping)
            frames += await client.until(lambda got: got.kind == PING)
        await client.send(ping)
        frames += await client.until(lambda got: got.kind == PING)

    grown = [got for got in frames if got.kind == WINDOW_UPDATE and got.stream_id == 0]

    assert grown, "after twice as much the client could send no body at all"


async def test_an_answer_before_the_end_of_its_body_arrives_and_stops_the_sender() -> None:
    async def no(_scope: Any, _receive: Any, send: Any) -> None:
        await answer(send, 401, b"no")

    async with serving(no) as doors, speaking(doors) as client:
        length = (b"content-length", b"99999999")
        await client.send(headers(1, [*POST, length], end=False))
        frames = await client.until(lambda got: got.kind == RST_STREAM)
        assert [got.outcome() for got in frames if got.outcome()] == ["reset NO_ERROR"]
        assert [got.payload for got in frames if got.kind == DATA] == [b"no"]

        await client.send(get(3, "/fast"))
        assert await client.answer(3) == ("401", b"no")


async def test_an_app_that_fails_costs_its_client_one_stream() -> None:
    async def broken(scope: dict[str, Any], _receive: Any, send: Any) -> None:
        if scope["path"] != "/before":
            await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"9")]})
            await send({"type": "http.response.body", "body": b"half", "more_body": scope["path"] == "/in"})
        if scope["path"] != "/short":
            raise RuntimeError("handler")

    async with serving(broken) as doors, speaking(doors) as client:
        for number, (path, outcome) in enumerate(
            (("/before", "500"), ("/in", "reset INTERNAL_ERROR"), ("/short", "reset INTERNAL_ERROR"))
        ):
            await client.send(get(2 * number + 1, path))
            assert (await client.answer(2 * number + 1))[0] == outcome


async def test_http_1_answers_beside_it(tls: Tls | None) -> None:
    async with serving(sized, tls=tls) as doors, speaking(doors, alpn="h2") as client:
        await client.send(get(1, "/10"))
        assert await client.answer(1) == ("200", bytes(10))

        async with await dial(doors) as stream:
            await stream.send_all(b"GET /10 HTTP/1.1\r\nHost: x\r\n\r\n")
            assert (await Reader(stream).answer())[2] == bytes(10)


async def test_an_old_answer_has_its_turns_while_new_ones_always_wait_beside_it() -> None:
    """The client opens its window a frame at a time, and asks again as soon as it has an answer."""
    order: list[int] = []
    size, room = 2 * LARGE, 65_535
    async with serving(sized) as doors, speaking(doors, (INITIAL_WINDOW, 1 << 30)) as client:
        await client.send(get(1, f"/{size}"))
        asked = 1
        while 1 not in order and len(order) < LATER:
            wanted = range(asked, asked + AT_ONCE - (asked - 1 - len(order)))
            await client.send(*(get(2 * number + 1, f"/{SMALL}") for number in wanted))
            asked = wanted.stop
            while room:
                got = await client.frame()
                assert got is not None
                if got.kind == DATA:
                    room -= len(got.payload)
                    if got.flags & END_STREAM:
                        order.append(got.stream_id)
                        if got.stream_id == 1:
                            break
            else:
                room = FRAME
                await client.send(window(0, room))

    assert order[-1] == 1
    assert len(order) < 0.75 * LATER
