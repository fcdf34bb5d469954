"""Which task of an HTTP/2 connection answers a request, and who reads meanwhile."""

import ssl
from collections.abc import Sequence
from typing import Any, ClassVar

import pytest
import trio

from sexton_http.wire.date_header import DateHeader
from sexton_http.wire.http2 import Http2Connection
from sexton_http.wire.http2_tasks import until_it_waits
from sexton_http.wire.tls import Tls
from sexton_http.wire.transport import FRAME_BYTES, Ends
from tests.patience import PATIENCE_S
from tests.worlds.asgi_server import answer, dial_port, serving
from tests.worlds.http2_client import PING, PREFACE, frame, headers, settings, speaking

TOGETHER = 20


class Steps(trio.abc.Instrument):
    """Counts how often a task has gone on."""

    def __init__(self) -> None:
        self.count = 0

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        del task
        self.count += 1


class Fed:
    """A transport that gives a request whenever it is asked, up to some number; then none comes."""

    secure: ClassVar[bool] = False
    piece_bytes: ClassVar[int] = FRAME_BYTES
    descriptor = -1

    def __init__(self, requests: int) -> None:
        self._left = requests
        self._next = 1
        self.readers: list[trio.lowlevel.Task] = []
        self.broken = False

    def ends(self) -> Ends:
        return ("127.0.0.1", 5000), ("127.0.0.1", 8080)

    async def receive(self) -> bytes:
        self.readers.append(trio.lowlevel.current_task())
        if not self._left:
            return b""
        begin = PREFACE + settings() if self._next == 1 else b""
        request = headers(self._next)
        self._left, self._next = self._left - 1, self._next + 2
        return begin + request

    def send_now(self, data: bytes) -> bool:
        del data
        if self.broken:
            raise BrokenPipeError
        return True

    def send_pieces_now(self, pieces: Sequence[bytes]) -> bool:
        return all(map(self.send_now, pieces))

    async def flush(self) -> None:
        raise AssertionError("nothing is left to send")

    def finish(self) -> None:
        return

    async def discard(self) -> bool:
        return False

    async def close(self) -> None:
        return


async def test_requests_that_wait_for_nothing_are_answered_by_the_task_that_reads() -> None:
    transport = Fed(3)
    tasks: list[trio.lowlevel.Task] = []

    async def app(scope: dict[str, Any], receive: Any, send: Any) -> None:
        tasks.append(trio.lowlevel.current_task())
        await answer(send, 200, b"done")

    await Http2Connection(app, transport, date=DateHeader(), is_stopping=lambda: False).run()

    assert len(tasks) == 3
    assert set(tasks) == set(transport.readers)


async def test_while_a_request_waits_its_connection_is_read_on() -> None:
    go = trio.Event()
    tasks: list[trio.lowlevel.Task] = []

    async def first_waits(scope: dict[str, Any], receive: Any, send: Any) -> None:
        tasks.append(trio.lowlevel.current_task())
        if len(tasks) == 1:
            await go.wait()
        await answer(send, 200, b"done")

    async with serving(first_waits) as doors, speaking(doors) as client:
        await client.send(headers(1))
        await client.send(frame(PING, 0, 0, bytes(8)))
        [*_, pong] = await client.until(lambda got: got.kind == PING)
        await client.send(headers(3))
        second = await client.answer(3)
        go.set()
        first = await client.answer(1)

    assert pong.kind == PING
    assert (first, second) == (("200", b"done"),) * 2
    assert tasks[0] is not tasks[1]


@pytest.mark.parametrize("waits_first", [False, True])
async def test_an_app_whose_client_is_lost_while_it_answers_still_comes_to_its_end(waits_first: bool) -> None:
    transport = Fed(1)
    ended = []

    async def app(scope: dict[str, Any], receive: Any, send: Any) -> None:
        if waits_first:
            await trio.lowlevel.checkpoint()
        transport.broken = True
        await answer(send, 200, b"done")
        await trio.lowlevel.checkpoint()
        ended.append(True)

    with trio.fail_after(PATIENCE_S):
        await Http2Connection(app, transport, date=DateHeader(), is_stopping=lambda: False).run()

    assert ended == [True]


async def test_requests_that_come_together_under_tls_are_not_one_long_turn(certificate: Tls) -> None:
    steps = Steps()
    seen: list[int] = []

    async def app(scope: dict[str, Any], receive: Any, send: Any) -> None:
        seen.append(steps.count)
        await answer(send, 200, b"done")

    trio.lowlevel.add_instrument(steps)
    async with serving(app, tls=certificate) as doors, await dial_port(doors.port) as plain:
        kept = KeptTogether(plain)
        stream = trio.SSLStream(kept, trusting_all("h2"), https_compatible=True)
        await stream.do_handshake()
        await stream.send_all(PREFACE + settings())
        kept.keeps = True
        for number in range(TOGETHER):
            await stream.send_all(headers(2 * number + 1))  # Each is a record of its own.
        await plain.send_all(kept.data)
        answered = b""
        while answered.count(b"done") < TOGETHER:
            answered += await stream.receive_some(65536)
    trio.lowlevel.remove_instrument(steps)

    assert len(set(seen)) == len(seen) == TOGETHER


class KeptTogether(trio.abc.HalfCloseableStream):
    """Keeps what is sent, so that it can be sent at once."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self._stream = stream
        self.keeps = False
        self.data = b""

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        if self.keeps:
            self.data += data
        else:
            await self._stream.send_all(data)

    async def wait_send_all_might_not_block(self) -> None:
        await self._stream.wait_send_all_might_not_block()

    async def send_eof(self) -> None:
        await self._stream.send_eof()

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        return await self._stream.receive_some(max_bytes)

    async def aclose(self) -> None:
        await self._stream.aclose()


def trusting_all(alpn: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols([alpn])
    return context


async def test_work_that_waits_says_so_once_and_goes_on() -> None:
    told: list[str] = []

    async def work(times: int) -> None:
        for _ in range(times):
            await trio.lowlevel.checkpoint()
        told.append("done")

    waits = [await until_it_waits(work(times), lambda: told.append("waits")) for times in (0, 1, 3)]

    assert waits == [False, True, True]
    assert told == ["done", "waits", "done", "waits", "done"]


async def test_a_cancelled_wait_is_cancelled_within() -> None:
    told: list[str] = []

    async def work() -> None:
        try:
            await trio.sleep_forever()
        except trio.Cancelled:
            told.append("cancelled")
            raise

    with trio.CancelScope() as scope:
        await until_it_waits(work(), scope.cancel)

    assert scope.cancelled_caught
    assert told == ["cancelled"]
