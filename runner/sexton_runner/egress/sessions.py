"""Serves the requests of one program on one connection, and passes them on."""

import hashlib
from collections.abc import Awaitable, Callable
from http import HTTPStatus

import h11
import trio
from trio.abc import Stream

from sexton_runner.egress.answers import AnswerFilter
from sexton_runner.egress.heads import (
    BadTarget,
    Origin,
    Target,
    end_to_end,
    is_host,
    judge_upgrade,
    read_target,
)
from sexton_runner.egress.hosts import write_authority
from sexton_runner.egress.placeholders import Filled, NotSendable, fill
from sexton_runner.egress.policy import bindings_for, judge_request, reads_requests
from sexton_runner.egress.programs import Program, ProgramGone, bad_request
from sexton_runner.egress.records import Ask, Connection
from sexton_runner.egress.refusals import Refusal, Refused
from sexton_runner.egress.seen import Asked, Reason
from sexton_runner.egress.servers import Server, answer_fault, open_server
from sexton_runner.tools.addresses import is_loopback

MAX_HASHED_BYTES = 1 << 16
_NO_RANGES = frozenset({b"range", b"if-range"})


class Session:
    """One connection that speaks HTTP/1.1: to a proxy, or ``within`` a tunnel to one origin."""

    def __init__(self, connection: Connection, stream: Stream, within: Origin | None = None) -> None:
        self._connection = connection
        self._run = connection.run
        self._within = within
        self._program = Program(connection, stream)
        self._server: Server | None = None
        self._answering = False
        self._method = b""

    def __repr__(self) -> str:
        return f"<Session of {self._program!r}>"

    async def serve(self) -> tuple[str, bytes] | None:
        """Serve until one side ends; gives the target of a CONNECT, and what followed it, to go on with."""
        try:
            return await self._serve()
        except Refused as refused:
            await self.refuse(refused.refusal)
            return None
        except ProgramGone:
            if not self._connection.record.seen.host:
                self._connection.record.drop()  # It asked for nothing.
            self._connection.record.finish(why="the program ended the connection")
            return None
        finally:
            if self._server is not None:
                await self._server.aclose()

    async def refuse(self, refusal: Refusal) -> None:
        """Tell the program why, as long as no other answer has begun, and end."""
        self._connection.record.finish(refusal)
        with_body = self._method != b"HEAD"
        await self._program.refuse(refusal, with_body=with_body, answering=self._answering)

    async def _serve(self) -> tuple[str, bytes] | None:
        while (request := await self._program.next_request()) is not None:
            self._method, self._answering = request.method, False
            if request.method == b"CONNECT":
                found = self._tunnel(request)
                # From here on the bytes are the tunnel's: no words of HTTP may come between them.
                self._answering = True
                return found
            await self._pass_on(request)
            self._connection.record.finish()
            if not self._program.rest():
                return None
        return None

    def _tunnel(self, request: h11.Request) -> tuple[str, bytes]:
        if self._within is not None:
            raise Refused(bad_request("a tunnel cannot lead through a tunnel"))
        if _has_body(request):
            raise Refused(bad_request("CONNECT has no body"))
        return request.target.decode("ascii"), self._program.read_ahead

    async def _pass_on(self, request: h11.Request) -> None:
        run, record = self._run, self._connection.record
        target = self._read(request)
        origin, method = target.origin, request.method.decode("ascii")
        record.note(host=origin.host, port=origin.port, method=method, path=target.path)
        names = [name for name, _ in request.headers]
        refusal = judge_request(run.policy, origin.host, origin.port, method, target.path, headers=names)
        if refusal := refusal or judge_upgrade(request.headers):
            raise Refused(refusal)
        await run.meter.pace()
        if _has_body(request):
            await self._program.let_go_on()
        body: list[h11.Data | h11.EndOfMessage] = []
        if run.policy.inspects and run.ask is not None:
            body = await self._leave(run.ask, request, target)
        filled = await self._fill(request, target)
        server = await self._reach(origin)
        record.reach(server.stream, server.address)
        await server.send(self._outgoing(request, target, filled))
        answer = AnswerFilter(run.redactor, method=request.method, secret_sent=bool(filled.names))
        await _first_ends(
            lambda: self._answer(server, answer),
            lambda: self._upload(server, body),
        )
        if not server.rest():
            self._server = None
            await server.aclose()

    def _read(self, request: h11.Request) -> Target:
        try:
            target = read_target(request.target.decode("ascii"), self._within)
        except BadTarget as fault:
            raise Refused(bad_request(str(fault))) from fault
        if request.method == b"TRACE":
            raise Refused(bad_request("TRACE is not passed on"))
        hosts = [value for name, value in request.headers if name == b"host"]
        if any(not is_host(value, target.origin) for value in hosts):
            self._connection.record.note(host=target.origin.host, port=target.origin.port)
            raise Refused(
                Refusal(
                    reason=Reason.HOST_HEADER,
                    why=f"the Host header names another host than {target.origin.host}",
                    advice="Ask each host by its own name",
                )
            )
        return target

    async def _leave(
        self, ask: Ask, request: h11.Request, target: Target
    ) -> list[h11.Data | h11.EndOfMessage]:
        """Ask for leave; a short body is read first, so that what is allowed is what is sent."""
        body: list[h11.Data | h11.EndOfMessage] = []
        digest = None
        if _length(request) <= MAX_HASHED_BYTES:
            while not body or not isinstance(body[-1], h11.EndOfMessage):
                body.append(await self._program.body_event())
            pieces = (bytes(event.data) for event in body if isinstance(event, h11.Data))
            digest = hashlib.sha256(b"".join(pieces)).hexdigest()
        asked = Asked(
            method=request.method.decode("ascii"),
            host=target.origin.host,
            port=target.origin.port,
            path=target.path,
            body_sha256=digest if _has_body(request) else None,
        )
        self._connection.pulse.pause()
        answer = await ask(asked)
        self._connection.pulse.touch()
        if not answer.allowed:
            why = answer.why or "a gate refused the request"
            raise Refused(Refusal(reason=Reason.GATE, why=why, advice="Do without it, or ask a person"))
        return body

    async def _fill(self, request: h11.Request, target: Target) -> Filled:
        headers = end_to_end(request.headers.raw_items())
        bindings = bindings_for(self._run.policy.bindings, target.origin.host)
        try:
            filled = fill(bindings, headers, target.query)
        except NotSendable as fault:
            raise Refused(_no_secret(str(fault))) from fault
        if filled.names and target.origin.scheme == "http":
            addresses = await self._run.names.addresses(target.origin.host, target.origin.port)
            if not all(map(is_loopback, addresses)):
                raise Refused(_no_secret("a credential goes out over https only"))
        return filled

    async def _reach(self, origin: Origin) -> Server:
        """Give the connection of the last request if it leads there and is still good, else a new one."""
        if self._server is not None:
            if self._server.origin == origin and self._server.is_fresh():
                return self._server
            await self._server.aclose()
            self._server = None
        self._server = await open_server(self._connection, origin)
        return self._server

    def _outgoing(self, request: h11.Request, target: Target, filled: Filled) -> h11.Request:
        origin = target.origin
        headers = [(b"Host", write_authority(origin.host, origin.port, origin.scheme).encode())]
        dropped = {b"host"} | (_NO_RANGES if filled.names else frozenset())
        if self._run.redactor.secrets:
            dropped |= {b"accept-encoding"}
            headers.append((b"Accept-Encoding", b"identity"))
        headers += [(name, value) for name, value in filled.headers if name.lower() not in dropped]
        if _is_chunked(request):
            headers.append((b"Transfer-Encoding", b"chunked"))
        strict = reads_requests(self._run.policy, origin.host, origin.port)
        path = target.path if strict else target.raw_path
        query = "" if filled.query is None else f"?{filled.query}"
        return h11.Request(method=request.method, target=f"{path}{query}".encode(), headers=headers)

    async def _upload(self, server: Server, ready: list[h11.Data | h11.EndOfMessage]) -> None:
        for event in ready:
            await server.send(event)
        if ready:
            return
        while isinstance(event := await self._program.body_event(), h11.Data):
            await server.send(h11.Data(data=event.data))
        await server.send(h11.EndOfMessage())

    async def _answer(self, server: Server, answer: AnswerFilter) -> None:
        while isinstance(event := await server.next_event(), h11.InformationalResponse):
            if event.status_code == HTTPStatus.SWITCHING_PROTOCOLS:
                raise Refused(answer_fault("the server left HTTP, which nobody asked for"))
        if not isinstance(event, h11.Response):
            raise Refused(answer_fault("the server sent no answer"))
        head = answer.head(event)
        self._answering = True
        await self._program.send(head)
        while isinstance(event := await server.next_event(), h11.Data):
            for piece in answer.data(bytes(event.data)):
                if answer.unpacks:
                    self._run.meter.count_in(len(piece))
                await self._program.send(h11.Data(data=piece))
        if rest := answer.end():
            await self._program.send(h11.Data(data=rest))
        await self._program.send(h11.EndOfMessage())


async def _first_ends(first: Callable[[], Awaitable[None]], second: Callable[[], Awaitable[None]]) -> None:
    """Run both until ``first`` is done or one of them fails, and raise what failed."""
    faults: list[Exception] = []
    async with trio.open_nursery() as nursery:

        async def guard(task: Callable[[], Awaitable[None]], *, last: bool) -> None:
            try:
                await task()
            except (Refused, ProgramGone) as fault:
                faults.append(fault)
                nursery.cancel_scope.cancel()
            if last:
                nursery.cancel_scope.cancel()

        async def side() -> None:
            await guard(second, last=False)

        nursery.start_soon(side)
        await guard(first, last=True)
    if faults:
        raise faults[0]


def _has_body(request: h11.Request) -> bool:
    return _is_chunked(request) or _length(request) > 0


def _is_chunked(request: h11.Request) -> bool:
    return any(name == b"transfer-encoding" for name, _ in request.headers)


def _length(request: h11.Request) -> int:
    if _is_chunked(request):
        return MAX_HASHED_BYTES + 1
    return next((int(value) for name, value in request.headers if name == b"content-length"), 0)


def _no_secret(why: str) -> Refusal:
    return Refusal(reason=Reason.SECRET, why=why, advice="Ask the host over https, with a credential for it")
