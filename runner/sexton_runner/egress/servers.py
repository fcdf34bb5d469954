"""Speaks HTTP/1.1 to a server on behalf of a program."""

import ssl
from http import HTTPStatus

import h11
import trio
from trio.abc import Stream

from sexton_runner.egress.heads import MAX_HEAD_BYTES, Origin
from sexton_runner.egress.names import CONNECT_S
from sexton_runner.egress.records import Connection
from sexton_runner.egress.refusals import Refusal, Refused
from sexton_runner.egress.seen import Reason, Verdict
from sexton_runner.egress.streams import PIECE_BYTES, ServerStream
from sexton_runner.trust import untrusted

_BROKEN = (trio.BrokenResourceError, trio.ClosedResourceError, ssl.SSLError, OSError)


class Server:
    """A connection to one origin. Whatever fails there is raised as ``Refused``."""

    def __init__(self, origin: Origin, address: str, sock: trio.SocketStream, stream: ServerStream) -> None:
        self.origin = origin
        self.address = address
        self.stream = stream
        self._sock = sock
        self._conn = h11.Connection(h11.CLIENT, max_incomplete_event_size=MAX_HEAD_BYTES)

    def __repr__(self) -> str:
        return f"<Server {self.origin.host}:{self.origin.port} {self._conn.states}>"

    async def send(self, event: h11.Event) -> None:
        """Send one event of a request."""
        try:
            data = self._conn.send(event)
            if data:
                await self.stream.send_all(data)
        except (*_BROKEN, h11.ProtocolError) as fault:
            raise self._failed("the server ended the connection") from fault

    async def next_event(self) -> h11.Event:
        """Give the next event of the answer."""
        try:
            while (event := self._conn.next_event()) is h11.NEED_DATA:
                self._conn.receive_data(await self.stream.receive_some(PIECE_BYTES))
        except h11.ProtocolError as fault:
            raise self._failed(f"the server's answer cannot be read: {fault}") from fault
        except _BROKEN as fault:
            raise self._failed("the server ended the connection") from fault
        if not isinstance(event, h11.Event):
            raise self._failed("the server left HTTP")
        if isinstance(event, h11.ConnectionClosed):
            raise self._failed("the server ended the connection")
        return event

    def rest(self) -> bool:
        """Make ready for the next request; False when the connection must not be used again."""
        if self._conn.states != {h11.CLIENT: h11.DONE, h11.SERVER: h11.DONE}:
            return False
        if self._conn.trailing_data[0]:
            # An answer to what nobody asked would be taken for the next one.
            return False
        self._conn.start_next_cycle()
        return True

    def is_fresh(self) -> bool:
        """Tell whether nothing came since the last answer, not even an end."""
        return not self._sock.socket.is_readable()

    async def aclose(self) -> None:
        await self.stream.aclose()

    def _failed(self, why: str) -> Refused:
        return Refused(answer_fault(f"{self.origin.host}: {why}"))


def answer_fault(why: str) -> Refusal:
    """Blame the server."""
    return Refusal(
        status=HTTPStatus.BAD_GATEWAY,
        reason=Reason.ANSWER,
        why=why,
        advice="Try again, or look at the server",
        verdict=Verdict.FAILED,
    )


async def open_server(connection: Connection, origin: Origin) -> Server:
    """Connect, and for https verify the certificate. Raises ``Refused``."""
    run = connection.run
    sock, address = await run.names.connect(origin.host, origin.port)
    stream: Stream = sock
    try:
        if origin.scheme == "https":
            stream = trio.SSLStream(
                sock, run.roots.context(), server_hostname=origin.host, https_compatible=True
            )
            with trio.fail_after(CONNECT_S):
                await stream.do_handshake()
    except (*_BROKEN, trio.TooSlowError) as fault:
        await trio.aclose_forcefully(sock)
        raise Refused(_no_tls(origin, fault)) from fault
    except BaseException:
        await trio.aclose_forcefully(sock)
        raise
    return Server(origin, address, sock, ServerStream(stream, run.meter, connection.pulse))


def _no_tls(origin: Origin, fault: Exception) -> Refusal:
    why = untrusted(fault)
    if why is None:
        return answer_fault(f"no TLS with {origin.host}:{origin.port}")
    return Refusal(
        status=HTTPStatus.BAD_GATEWAY,
        reason=Reason.CERTIFICATE,
        why=f"the certificate of {origin.host} does not count: {why}",
        advice="The operator of the runner can name a bundle with its authority",
        verdict=Verdict.FAILED,
    )
