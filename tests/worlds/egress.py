"""A world of the egress proxy: a proxy, servers on loopback under names of the test's own, and programs."""

import base64
import contextlib
import datetime as dt
import gzip
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

import h11
import trio

from sexton_runner.egress.certificates import RunAuthority
from sexton_runner.egress.policy import Binding, Bounds, Place, Policy, Rule
from sexton_runner.egress.proxy import Proxy, open_proxy
from sexton_runner.egress.seen import Answer, Asked, Seen
from sexton_runner.redact import Redactor

LOOPBACK = "127.0.0.1"
ANSWER_S = 10
SECRET = "canary-6f1e9c2b7d"
PLACEHOLDER = "sxt_5d0c8a"
BOUND = Binding(name="api", placeholder=PLACEHOLDER, secret=SECRET, hosts=("bound.example",))
PASSWORD = Binding(
    name="git", placeholder=PLACEHOLDER, secret=SECRET, hosts=("bound.example",), place=Place.BASIC
)
QUERY = Binding(
    name="old",
    placeholder=PLACEHOLDER,
    secret=SECRET,
    hosts=("bound.example",),
    place=Place.QUERY,
    field="key",
)

NAMES = ("plain.example", "open.example", "bound.example", "ruled.example", "shut.example")
PLAIN = ("plain.example", "shut.example")
Serve = Callable[[trio.abc.Stream], Awaitable[None]]


@dataclass
class Origin:
    """A server that keeps all that it hears. ``port`` is of loopback."""

    port: int = 0
    heard: list[bytes] = field(default_factory=list)
    connections: int = 0
    requests: list[tuple[h11.Request, bytes]] = field(default_factory=list)

    @property
    def text(self) -> bytes:
        return b"".join(self.heard)


@dataclass
class Reply:
    """An answer as a program reads it; ``whole`` tells whether it ended as announced."""

    status: int
    headers: dict[str, str]
    body: bytes
    whole: bool = True

    def problem(self) -> dict[str, Any]:
        assert self.headers["content-type"] == "application/problem+json"
        found: dict[str, Any] = json.loads(self.body)
        assert found["status"] == self.status
        return found


@dataclass
class EgressWorld:
    """What programs of a run can do, and what was seen of it."""

    nursery: trio.Nursery
    folder: Path
    addresses: dict[str, Sequence[str]] = field(default_factory=dict)
    looked_up: list[str] = field(default_factory=list)
    seen: list[Seen] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    answer: Answer = field(default_factory=lambda: Answer(allowed=True))
    origins: dict[str, Origin] = field(default_factory=dict)
    proxy: Proxy | None = None

    async def resolve(self, host: str) -> Sequence[str]:
        self.looked_up.append(host)
        found = self.addresses.get(host, ())
        if not found:
            raise OSError(f"no such name: {host}")
        return found

    async def ask(self, asked: Asked) -> Answer:
        await trio.lowlevel.checkpoint()
        self.asked.append(asked)
        return self.answer

    async def connect(self) -> trio.SocketStream:
        return await trio.open_unix_socket(self.folder / "proxy.sock")

    async def say(self, raw: bytes, *, method: str = "GET") -> Reply:
        """Send bytes on a new connection and read one answer."""
        stream = await self.connect()
        async with stream:
            await send(stream, raw)
            return await read_reply(stream, method)

    async def get(self, name: str, path: str, *headers: str, method: str = "GET", body: bytes = b"") -> Reply:
        """Ask for ``http://`` as a program asks its proxy."""
        host = f"{name}:{self.port(name)}"
        return await self.say(head(method, f"http://{host}{path}", host, *headers, body=body), method=method)

    async def tunnel(self, authority: str) -> tuple[trio.SocketStream, Reply]:
        """Ask for a tunnel; the stream is to be closed by the test."""
        stream = await self.connect()
        await send(stream, f"CONNECT {authority} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        return stream, await read_reply(stream, "CONNECT")

    async def tls(
        self, host: str, *, name: str | None = None, alpn: Sequence[str] = ()
    ) -> trio.SSLStream[trio.SocketStream]:
        """Open a tunnel and begin TLS in it, trusting the run's authority and the servers' own."""
        stream, reply = await self.tunnel(f"{host}:{self.port(host)}")
        assert reply.status == 200, reply.body
        assert self.proxy is not None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(cadata=(self.proxy.ca_pem + SERVERS.ca_pem).decode())
        if alpn:
            context.set_alpn_protocols(list(alpn))
        tls = trio.SSLStream(stream, context, server_hostname=name or host, https_compatible=True)
        with trio.fail_after(ANSWER_S):
            await tls.do_handshake()
        return tls

    async def get_tls(
        self, host: str, path: str, *headers: str, method: str = "GET", body: bytes = b""
    ) -> Reply:
        """Ask for ``https://``."""
        stream = await self.tls(host)
        try:
            await send(stream, head(method, path, f"{host}:{self.port(host)}", *headers, body=body))
            return await read_reply(stream, method)
        finally:
            await trio.aclose_forcefully(stream)

    def port(self, name: str) -> int:
        return self.origins[name].port

    def authority(self, name: str) -> str:
        return f"{name}:{self.port(name)}"

    async def serve(self, name: str, *, tls: bool, handler: Serve) -> None:
        """Start a server on loopback that this name leads to."""
        origin = self.origins[name] = Origin()
        listeners = await trio.open_tcp_listeners(0, host=LOOPBACK)
        origin.port = listeners[0].socket.getsockname()[1]
        self.addresses[name] = (LOOPBACK,)
        context = SERVERS.context_for(name) if tls else None

        async def talk(stream: trio.SocketStream) -> None:
            origin.connections += 1
            try:
                inner: trio.abc.Stream = stream
                if context is not None:
                    inner = trio.SSLStream(stream, context, server_side=True, https_compatible=True)
                await handler(Listening(inner, origin))
            except (trio.BrokenResourceError, trio.ClosedResourceError, h11.ProtocolError):
                pass
            finally:
                await trio.aclose_forcefully(stream)

        self.nursery.start_soon(trio.serve_listeners, talk, listeners)


class Listening(trio.abc.Stream):
    """Keeps what comes in."""

    def __init__(self, stream: trio.abc.Stream, origin: Origin) -> None:
        self._stream = stream
        self.origin = origin

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        data = bytes(await self._stream.receive_some(max_bytes or 65536))
        self.origin.heard.append(data)
        return data

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        await self._stream.send_all(data)

    async def wait_send_all_might_not_block(self) -> None:
        await self._stream.wait_send_all_might_not_block()

    async def aclose(self) -> None:
        await self._stream.aclose()


@asynccontextmanager
async def open_egress(
    folder: Path,
    *,
    bindings: Sequence[Binding] = (),
    inspects: bool = False,
    bounds: Bounds = Bounds(),  # noqa: B008  (it is frozen)
    further: Sequence[Rule] = (),
    private: bool = True,
    handlers: Mapping[str, Serve] = MappingProxyType({}),
) -> AsyncIterator[EgressWorld]:
    """Open a proxy, and servers under the names of ``NAMES``.

    All of them are allowed but ``shut.example``. Of ``ruled.example`` only GET below ``/docs`` is.
    """
    async with trio.open_nursery() as nursery:
        world = EgressWorld(nursery, folder)
        (folder / "roots.pem").write_bytes(SERVERS.ca_pem)
        for name in NAMES:
            await world.serve(name, tls=name not in PLAIN, handler=handlers.get(name, echo))
        rules = [
            Rule(
                host=name,
                ports=(world.port(name),),
                methods=("GET",) if name == "ruled.example" else (),
                paths=("/docs",) if name == "ruled.example" else (),
            )
            for name in NAMES
            if name != "shut.example"
        ]
        policy = Policy(
            rules=(*rules, *further),
            bindings=tuple(bindings),
            private_hosts=frozenset(NAMES if private else ()),
            inspects=inspects,
            bounds=bounds,
        )
        sock = trio.socket.socket(trio.socket.AF_UNIX)
        await sock.bind(str(folder / "proxy.sock"))
        sock.listen(64)
        async with open_proxy(
            policy,
            trio.SocketListener(sock),
            observe=world.seen.append,
            ask=world.ask,
            redactor=Redactor({}),
            extra_roots=folder / "roots.pem",
            resolve=world.resolve,
        ) as proxy:
            world.proxy = proxy
            yield world
        nursery.cancel_scope.cancel()


def head(method: str, target: str, host: str, *headers: str, body: bytes = b"") -> bytes:
    lines = [f"{method} {target} HTTP/1.1", f"Host: {host}", *headers]
    if body:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode() + body


async def read_all(stream: trio.abc.Stream) -> bytes:
    """Read until the end, however it comes."""
    data = b""
    with contextlib.suppress(trio.BrokenResourceError):
        while piece := await stream.receive_some(65536):
            data += bytes(piece)
    return data


async def send(stream: trio.abc.Stream, data: bytes) -> None:
    """Send it all, unless the other side has had enough."""
    with trio.fail_after(ANSWER_S), contextlib.suppress(trio.BrokenResourceError):
        await stream.send_all(data)


async def read_reply(stream: trio.abc.Stream, method: str = "GET") -> Reply:
    """Read one answer; an answer that is cut short is given as far as it came, status 0 is none at all."""
    conn = h11.Connection(h11.CLIENT)
    conn.send(h11.Request(method=method, target="/", headers=[("host", "x")]))
    conn.send(h11.EndOfMessage())
    reply = Reply(0, {}, b"")
    try:
        with trio.fail_after(ANSWER_S):
            while True:
                event = conn.next_event()
                match event:
                    case h11.NEED_DATA:
                        conn.receive_data(bytes(await stream.receive_some(65536)))
                    case h11.Response():
                        fields = {name.decode(): value.decode("latin-1") for name, value in event.headers}
                        reply = Reply(event.status_code, fields, b"")
                    case h11.Data():
                        reply.body += bytes(event.data)
                    case h11.EndOfMessage() | h11.PAUSED:
                        return reply
                    case h11.ConnectionClosed():
                        reply.whole = False
                        return reply
                    case _:
                        pass
    except (trio.BrokenResourceError, h11.RemoteProtocolError):
        reply.whole = False
        return reply


async def echo(stream: trio.abc.Stream) -> None:
    """Answer each request with what came, in the spelling that the path asks for."""
    conn = h11.Connection(h11.SERVER, max_incomplete_event_size=1 << 17)
    request, body = None, b""
    while True:
        event = conn.next_event()
        match event:
            case h11.NEED_DATA:
                conn.receive_data(bytes(await stream.receive_some(65536)))
            case h11.Request():
                request, body = event, b""
            case h11.Data():
                body += bytes(event.data)
            case h11.EndOfMessage():
                assert request is not None
                if isinstance(stream, Listening):
                    stream.origin.requests.append((request, body))
                await _echo_answer(stream, conn, request, body)
                if conn.our_state is not h11.DONE:
                    return
                conn.start_next_cycle()
            case _:
                return


async def _echo_answer(
    stream: trio.abc.Stream, conn: h11.Connection, request: h11.Request, body: bytes
) -> None:
    lines = [request.method + b" " + request.target, *(b"%s: %s" % pair for pair in request.headers)]
    said = b"\n".join(lines) + b"\n\n" + body
    headers: list[tuple[str, str]] = []
    pieces = [said]
    match request.target.decode().partition("?")[0].rpartition("/")[2]:
        case "base64":
            pieces = [base64.b64encode(said)]
        case "percent":
            pieces = [quote(said, safe="").encode()]
        case "hex":
            pieces = [said.hex().encode()]
        case "json":
            pieces = [json.dumps(said.decode("utf-8", "replace")).encode()]
        case "bytewise":
            pieces = [said[at : at + 1] for at in range(len(said))]
        case "gzip":
            headers, pieces = [("content-encoding", "gzip")], [gzip.compress(said)]
        case "brotli":
            headers, pieces = [("content-encoding", "br")], [said]
        case "header":
            text = b" ".join(said.split()).decode("ascii", "replace").encode("ascii", "replace").decode()
            headers, pieces = [("x-echo", text), ("set-cookie", f"was={text}")], [b"ok"]
        case "redirect":
            headers, pieces = [("location", request.target.decode().partition("?to=")[2])], [b"moved"]
        case _:
            pass
    status = 302 if request.target.partition(b"?")[0].endswith(b"/redirect") else 200
    if len(pieces) == 1:
        headers.append(("content-length", str(len(pieces[0]))))
    await stream.send_all(conn.send(h11.Response(status_code=status, headers=headers)) or b"")
    if request.method != b"HEAD":
        for piece in pieces:
            await stream.send_all(conn.send(h11.Data(data=piece)) or b"")
    await stream.send_all(conn.send(h11.EndOfMessage()) or b"")


SERVERS = RunAuthority(dt.datetime.now(dt.UTC), "servers of the tests")
"""Vouches for the servers of the tests."""
