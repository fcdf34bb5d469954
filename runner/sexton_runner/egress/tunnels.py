"""Leads CONNECT to its host: as it is, or with its TLS ended here."""

from http import HTTPStatus

import trio
from trio.abc import HalfCloseableStream, Stream

from sexton_runner.egress.client_hello import HANDSHAKE, UNRECOGNISED_NAME, Malformed, read_hello
from sexton_runner.egress.heads import BadTarget, Origin, read_tunnel, same_name
from sexton_runner.egress.hosts import is_address
from sexton_runner.egress.policy import judge_host, opens_tls
from sexton_runner.egress.programs import HEAD_S
from sexton_runner.egress.records import Connection
from sexton_runner.egress.refusals import Refusal, Refused, write_problem
from sexton_runner.egress.seen import Reason, Verdict
from sexton_runner.egress.sessions import Session
from sexton_runner.egress.streams import PIECE_BYTES, ReadAhead, ServerStream, say_and_close

ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"
HTTP_PORT, HTTPS_PORT = 80, 443
_GONE = (trio.BrokenResourceError, trio.ClosedResourceError)


class Tunnel:
    """One CONNECT. States and refusals stand in docs/reference/egress.md."""

    def __init__(self, connection: Connection, stream: Stream, target: str, first: bytes) -> None:
        self._connection = connection
        self._run = connection.run
        self._stream = ReadAhead(stream, first)
        self._raw = stream
        self._target = target

    async def serve(self) -> None:
        """Serve until one side ends."""
        record = self._connection.record
        try:
            host, port = read_tunnel(self._target)
        except BadTarget as fault:
            await self._refuse(_bad_tunnel(str(fault)))
            return
        record.note(host=host, port=port, method="CONNECT")
        if refusal := judge_host(self._run.policy, host, port):
            await self._refuse(refusal)
            return
        opened = opens_tls(self._run.policy, host, port) or port == HTTP_PORT
        try:
            # A name that leads nowhere is told here, where the program still reads HTTP.
            await self._run.names.addresses(host, port)
            server = None if opened else await self._connect(host, port)
        except Refused as refused:
            await self._refuse(refused.refusal)
            return
        if server is None:
            await self._serve_requests(host, port)
        else:
            await self._relay(host, port, server)

    async def _refuse(self, refusal: Refusal) -> None:
        self._connection.record.finish(refusal)
        await say_and_close(self._raw, write_problem(refusal))

    async def _connect(self, host: str, port: int) -> ServerStream:
        sock, address = await self._run.names.connect(host, port)
        server = ServerStream(sock, self._run.meter, self._connection.pulse)
        self._connection.record.reach(server, address)
        return server

    async def _serve_requests(self, host: str, port: int) -> None:
        """End TLS here and read the requests, or read them as they come where there is no TLS."""
        record = self._connection.record
        try:
            await self._stream.send_all(ESTABLISHED)
            stream = await self._judge_first_bytes(host, port)
            if stream.is_tls and not opens_tls(self._run.policy, host, port):
                await self._relay(host, port, await self._connect(host, port), stream)
                return
        except Refused as refused:
            await self._cut(refused.refusal)
            return
        except _GONE:
            record.finish(why="the program ended the connection")
            return
        scheme = "http"
        inner: Stream = stream
        if stream.is_tls:
            scheme = "https"
            tls = trio.SSLStream(
                stream, self._run.authority.context_for(host), server_side=True, https_compatible=True
            )
            try:
                with trio.fail_after(HEAD_S):
                    await tls.do_handshake()
            except (*_GONE, trio.TooSlowError):
                record.finish(_untrusted(host))
                return
            inner = tls
        record.drop()
        await Session(self._connection, inner, Origin(scheme=scheme, host=host, port=port)).serve()

    async def _relay(
        self, host: str, port: int, server: ServerStream, judged: "Judged | None" = None
    ) -> None:
        """Pass bytes both ways; the first ones of the program are judged before any of them goes on."""
        faults: list[Exception] = []

        async def carry(source: Stream | None, sink: HalfCloseableStream) -> None:
            try:
                source = source or await self._judge_first_bytes(host, port)
                while data := await source.receive_some(PIECE_BYTES):
                    await sink.send_all(data)
                    self._connection.pulse.touch()
                await sink.send_eof()
            except (Refused, *_GONE) as fault:
                faults.append(fault)
                nursery.cancel_scope.cancel()

        try:
            if judged is None:
                await self._stream.send_all(ESTABLISHED)
            async with trio.open_nursery() as nursery:

                async def inward() -> None:
                    await carry(server, self._stream)

                nursery.start_soon(inward)
                await carry(judged, server)
        except _GONE as fault:
            faults.append(fault)
        finally:
            await server.aclose()
        refused = next((fault.refusal for fault in faults if isinstance(fault, Refused)), None)
        if refused is not None:
            await self._cut(refused)
        else:
            self._connection.record.finish(why="one side broke the connection" if faults else "")

    async def _judge_first_bytes(self, host: str, port: int) -> "Judged":
        """Read the beginning of what the program says; raises ``Refused`` unless it may go to this host."""
        first = b""
        with trio.move_on_after(HEAD_S if port in (HTTP_PORT, HTTPS_PORT) else float("inf")) as limit:
            while not first:
                first = await self._more()
            limit.deadline = trio.current_time() + HEAD_S
            if first[0] != HANDSHAKE:
                if port == HTTPS_PORT or (port != HTTP_PORT and opens_tls(self._run.policy, host, port)):
                    raise Refused(_not_tls(host, port))
                return Judged(self._stream, first, is_tls=False)
            while True:
                try:
                    hello = read_hello(first)
                except Malformed as fault:
                    raise Refused(_wrong_name(f"the TLS of the program begins with {fault}")) from fault
                if hello is not None:
                    break
                first += await self._more()
            _judge_name(hello.server_name, host)
            return Judged(self._stream, first, is_tls=True)
        raise Refused(_wrong_name(f"no TLS began within {HEAD_S:g} s"))

    async def _more(self) -> bytes:
        data = await self._stream.receive_some(PIECE_BYTES)
        if not data:
            raise trio.BrokenResourceError
        self._connection.pulse.touch()
        return data

    async def _cut(self, refusal: Refusal) -> None:
        """End a tunnel that was established: where TLS began, the alert is all that can be told."""
        self._connection.record.finish(refusal)
        if refusal.reason is Reason.NOT_TLS:
            await say_and_close(self._raw, write_problem(refusal))
        elif refusal.reason is Reason.SNI:
            await say_and_close(self._raw, UNRECOGNISED_NAME)
        else:
            await trio.aclose_forcefully(self._raw)


class Judged(ReadAhead):
    """What a program sends, once its first bytes were found in order."""

    def __init__(self, stream: Stream, first: bytes, *, is_tls: bool) -> None:
        super().__init__(stream, first)
        self.is_tls = is_tls


def _judge_name(name: str | None, host: str) -> None:
    # To an address, clients send no name.
    if name is None and is_address(host):
        return
    if name is None:
        raise Refused(_wrong_name("the TLS of the program names no host"))
    if not same_name(name, host):
        raise Refused(_wrong_name(f"the TLS of the program names another host than {host}"))


def _wrong_name(why: str) -> Refusal:
    return Refusal(reason=Reason.SNI, why=why, advice="Send the host of the tunnel as the server name")


def _not_tls(host: str, port: int) -> Refusal:
    why = f"what goes to {host}:{port} is not TLS"
    return Refusal(reason=Reason.NOT_TLS, why=why, advice="Speak TLS there, or use http:// without CONNECT")


def _bad_tunnel(why: str) -> Refusal:
    return Refusal(
        status=HTTPStatus.BAD_REQUEST,
        reason=Reason.HOST,
        why=why,
        advice="Send CONNECT with the name of a host and its port",
    )


def _untrusted(host: str) -> Refusal:
    return Refusal(
        reason=Reason.TLS,
        why=f"the program did not finish its TLS with the proxy for {host}",
        advice="Let it trust the run's certificate authority",
        verdict=Verdict.FAILED,
    )
