"""Speaks HTTP/1.1 to a program on behalf of servers."""

from http import HTTPStatus

import h11
import trio
from trio.abc import Stream

from sexton_runner.egress.heads import END_OF_HEAD, MAX_HEAD_BYTES, judge_head, too_large
from sexton_runner.egress.records import Connection
from sexton_runner.egress.refusals import Refusal, Refused, write_problem
from sexton_runner.egress.seen import Reason
from sexton_runner.egress.servers import answer_fault
from sexton_runner.egress.streams import PIECE_BYTES, say_and_close

HEAD_S = 15.0
"""In this time a head has to be whole, from its first byte on."""
GO_ON = b"HTTP/1.1 100 Continue\r\n\r\n"


class ProgramGone(Exception):
    """The program ended its connection."""


class Program:
    """The connection of a program. What it does wrong is raised as ``Refused``, its end ``ProgramGone``."""

    def __init__(self, connection: Connection, stream: Stream) -> None:
        self._connection = connection
        self._stream = stream
        self._conn = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_HEAD_BYTES)

    def __repr__(self) -> str:
        return f"<Program {self._conn.states}>"

    @property
    def read_ahead(self) -> bytes:
        """Give what came behind the request."""
        return self._conn.trailing_data[0]

    def rest(self) -> bool:
        """Make ready for the next request; False when none can follow."""
        if self._conn.states != {h11.CLIENT: h11.DONE, h11.SERVER: h11.DONE}:
            return False
        self._conn.start_next_cycle()
        return True

    async def refuse(self, refusal: Refusal, *, with_body: bool, answering: bool) -> None:
        """Tell the program why, as long as no other answer has begun, and end."""
        if answering:
            # The program sees an answer that is cut short, not one that looks whole.
            await trio.aclose_forcefully(self._stream)
        else:
            await say_and_close(self._stream, write_problem(refusal, with_body=with_body))

    async def next_request(self) -> h11.Request | None:
        """Read a head whole before the parser sees it; None at the end of the connection."""
        head = bytearray(self._conn.trailing_data[0])
        if not head:
            head += await self._receive()
            if not head:
                return None
            self._feed(bytes(head))
        self._connection.begin()
        with trio.move_on_after(HEAD_S) as limit:
            while END_OF_HEAD not in head:
                if len(head) > MAX_HEAD_BYTES:
                    raise Refused(too_large(f"the head is longer than {MAX_HEAD_BYTES} bytes"))
                data = await self._receive()
                if not data:
                    raise ProgramGone
                self._feed(data)
                head += data
        if limit.cancelled_caught:
            raise Refused(_too_slow())
        raw = bytes(head[: head.index(END_OF_HEAD) + len(END_OF_HEAD)])
        if len(raw) > MAX_HEAD_BYTES:
            raise Refused(too_large(f"the head is longer than {MAX_HEAD_BYTES} bytes"))
        if refusal := judge_head(raw):
            raise Refused(refusal)
        event = self._next_event()
        if not isinstance(event, h11.Request):
            raise Refused(bad_request("there is no request"))
        return event

    async def let_go_on(self) -> None:
        """Tell a program that waits for leave to send its body that it may."""
        if self._conn.they_are_waiting_for_100_continue:
            await self._send_raw(GO_ON)

    async def body_event(self) -> h11.Data | h11.EndOfMessage:
        """Give the next event of the request's body."""
        while (event := self._next_event()) is h11.NEED_DATA:
            data = await self._receive()
            if not data:
                raise ProgramGone
            self._feed(data)
        if isinstance(event, h11.Data | h11.EndOfMessage):
            return event
        raise ProgramGone

    def _next_event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        try:
            return self._conn.next_event()
        except h11.RemoteProtocolError as fault:
            raise Refused(bad_request(f"the request cannot be read: {fault}")) from fault

    def _feed(self, data: bytes) -> None:
        self._conn.receive_data(data)

    async def _receive(self) -> bytes:
        try:
            data = bytes(await self._stream.receive_some(PIECE_BYTES))
        except (trio.BrokenResourceError, trio.ClosedResourceError) as fault:
            raise ProgramGone from fault
        self._connection.pulse.touch()
        return data

    async def send(self, event: h11.Event) -> None:
        """Send one event of an answer."""
        try:
            data = self._conn.send(event)
        except h11.LocalProtocolError as fault:
            raise Refused(answer_fault(f"the server's answer cannot be passed on: {fault}")) from fault
        if data:
            await self._send_raw(data)

    async def _send_raw(self, data: bytes) -> None:
        try:
            await self._stream.send_all(data)
        except (trio.BrokenResourceError, trio.ClosedResourceError) as fault:
            raise ProgramGone from fault
        self._connection.pulse.touch()


def bad_request(why: str) -> Refusal:
    """Blame the program."""
    return Refusal(
        status=HTTPStatus.BAD_REQUEST,
        reason=Reason.SMUGGLING,
        why=why,
        advice="Send a plain request of HTTP/1.1",
    )


def _too_slow() -> Refusal:
    return Refusal(
        status=HTTPStatus.REQUEST_TIMEOUT,
        reason=Reason.HEAD,
        why=f"the head of the request took longer than {HEAD_S:g} s",
        advice="Send it at once",
    )
