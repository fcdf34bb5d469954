"""Makes one HTTP request on behalf of a run, to allowed hosts only."""

import contextlib
import os
import socket
import ssl
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Protocol

import httpx2
import trio

from sexton_runner.tools.addresses import is_loopback
from sexton_runner.tools.reach import PORTS, Reach
from sexton_runner.trust import untrusted

MAX_REDIRECTS = 5
MAX_BODY_BYTES = 1 << 20
READ_BYTES = 1 << 16
MAX_TRIED_ADDRESSES = 3
CONNECT_S = 10.0
MAX_PORT = 65_535
REDIRECTS = frozenset({301, 302, 303, 307, 308})
KEEPS_METHOD = frozenset({307, 308})
# Set by the connection itself; from a model they could only disagree with it.
OWN_HEADERS = frozenset(
    {
        "host",
        "content-length",
        "transfer-encoding",
        "connection",
        "keep-alive",
        "te",
        "trailer",
        "upgrade",
        "expect",
        "accept-encoding",
        "proxy-authorization",
        "proxy-connection",
    }
)
# Credentials, whoever put them in: they are meant for one host.
OF_ONE_HOST = frozenset({"authorization", "cookie"})


class NotFetched(Exception):
    """The request was refused here, or no answer came; the text holds no secrets."""


@dataclass(frozen=True, slots=True)
class FileBody:
    """A body that is read from an open file, from its beginning for each request that it goes with."""

    descriptor: int
    size: int


class Sink(Protocol):
    """Where the body of an answer goes instead of into memory. Each step may raise ``NotFetched``."""

    def begin(self, status: int, headers: Mapping[str, str]) -> None:
        """Take note of the answer whose body follows."""
        ...

    def write(self, piece: bytes) -> None:
        """Take the next bytes, as they came."""
        ...

    def end(self) -> None:
        """Take note that the body is whole."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A request as it goes out. ``secret`` tells that a secret of the run was put into it.

    ``sink`` gets the body of an answer of success; that of any other is read as ever.
    """

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes | FileBody | None
    secret: bool
    sink: Sink | None = None


@dataclass(frozen=True, slots=True)
class Fetched:
    """An answer: its body is cut at ``MAX_BODY_BYTES``, and ``whole`` tells whether it was not.

    One that was ``sunk`` went to the sink, and ``body`` is empty.
    """

    status: int
    headers: httpx2.Headers
    body: bytes
    whole: bool
    redirects: int = 0
    sunk: bool = False


async def fetch(wanted: Wanted, reach: Reach, timeout_s: float) -> Fetched:
    """Make the request and follow its redirects, each checked like the first; raises ``NotFetched``."""
    with trio.move_on_after(timeout_s):
        for redirects in range(MAX_REDIRECTS + 1):
            answer = await _once(wanted, reach)
            onward = _onward(wanted, answer)
            if onward is None:
                return replace(answer, redirects=redirects)
            wanted = onward
        raise NotFetched(f"more than {MAX_REDIRECTS} redirects")
    if wanted.sink is not None:
        raise NotFetched(
            f"no whole answer within {timeout_s:g} s; nothing was saved: give it more time by timeout_s"
        )
    raise NotFetched(f"no answer within {timeout_s:g} s")


def host_of(url: str) -> str:
    """Give the host that a url is about, as it is looked up; raises ``NotFetched``."""
    try:
        return httpx2.URL(url).raw_host.decode("ascii")
    except (httpx2.InvalidURL, ValueError) as fault:
        raise NotFetched("the url cannot be read") from fault


async def _once(wanted: Wanted, reach: Reach) -> Fetched:
    try:
        url = httpx2.URL(wanted.url)
    except httpx2.InvalidURL as fault:
        raise NotFetched(f"the url cannot be read: {fault}") from fault
    host = url.raw_host.decode("ascii")
    if url.scheme not in PORTS or not host:
        raise NotFetched("the url must begin with http:// or https:// and name a host")
    if url.port is not None and not 0 < url.port <= MAX_PORT:
        raise NotFetched("the url cannot be read: there is no such port")
    if url.userinfo:
        raise NotFetched("user and password do not belong into a url: use a header")
    if refused := reach.refusal(wanted.method, url):
        raise NotFetched(refused)
    addresses = await _resolve(host, url.port or PORTS[url.scheme], reach)
    if wanted.secret and url.scheme == "http" and not all(map(is_loopback, addresses)):
        raise NotFetched("a secret goes out over https only")
    missed = ""
    for address in addresses[:MAX_TRIED_ADDRESSES]:
        try:
            return await _ask(wanted, url, address, reach)
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as fault:
            if mistrust := untrusted(fault):
                raise NotFetched(f"the certificate of {host} is not trusted: {mistrust}") from fault
            missed = type(fault).__name__
        except (httpx2.HTTPError, httpx2.InvalidURL, ValueError, UnicodeError) as broken:
            raise NotFetched(f"the request failed: {type(broken).__name__}") from broken
    raise NotFetched(f"no connection to {host}: {missed}")


async def _resolve(host: str, port: int, reach: Reach) -> list[str]:
    """Look a name up once: the connection goes to what was checked here, never to a second answer."""
    try:
        found = await trio.socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as fault:
        raise NotFetched(f"the host {host} cannot be found") from fault
    addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
    for address in addresses:
        # One closed address among open ones is a trick, not a host.
        if why := reach.closed(host, port, address):
            raise NotFetched(f"the host {host} stands for {why}, which a run must not reach")
    if not addresses:
        raise NotFetched(f"the host {host} cannot be found")
    return addresses


async def _ask(wanted: Wanted, url: httpx2.URL, address: str, reach: Reach) -> Fetched:
    headers = [("host", url.netloc.decode("ascii")), ("accept-encoding", "identity")]
    headers += [(name, value) for name, value in wanted.headers.items() if name.lower() not in OWN_HEADERS]
    if isinstance(wanted.body, FileBody):
        headers.append(("content-length", str(wanted.body.size)))
    # Reading the authorities takes 50 ms: once a run, and for nothing that goes out in the clear.
    verify = reach.authorities() if url.scheme == "https" else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    transport = httpx2.AsyncHTTPTransport(verify=verify, trust_env=False, retries=0)
    async with httpx2.AsyncClient(
        transport=transport, trust_env=False, timeout=httpx2.Timeout(None, connect=CONNECT_S)
    ) as client:
        request = client.build_request(
            wanted.method,
            url.copy_with(host=address),
            headers=headers,
            content=None if isinstance(wanted.body, FileBody) else wanted.body,
            extensions={"sni_hostname": url.raw_host.decode("ascii")},
        )
        if isinstance(wanted.body, FileBody):
            # Given as content it would be read by a generator, which a broken connection leaves unfinished.
            request.stream = _FileStream(wanted.body)
        answer = await client.send(request, stream=True, follow_redirects=False)
        sink = wanted.sink if answer.is_success else None
        try:
            body, whole = await _read(answer) if sink is None else await _sink(answer, sink)
        finally:
            await answer.aclose()
    return Fetched(answer.status_code, answer.headers, body, whole, sunk=sink is not None)


class _FileStream(httpx2.AsyncByteStream):
    def __init__(self, body: FileBody) -> None:
        self._body = body

    def __aiter__(self) -> AsyncIterator[bytes]:
        return _FilePieces(self._body.descriptor)


class _FilePieces:
    def __init__(self, descriptor: int) -> None:
        self._descriptor, self._at = descriptor, 0

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        await trio.lowlevel.checkpoint()
        piece = os.pread(self._descriptor, READ_BYTES, self._at)
        if not piece:
            raise StopAsyncIteration
        self._at += len(piece)
        return piece


async def _sink(answer: httpx2.Response, sink: Sink) -> tuple[bytes, bool]:
    sink.begin(answer.status_code, answer.headers)
    pieces = answer.aiter_raw()
    async for piece in pieces:
        try:
            sink.write(piece)
        except NotFetched:
            await _leave(answer, pieces)
            raise
    sink.end()
    return b"", True


async def _read(answer: httpx2.Response) -> tuple[bytes, bool]:
    # As it came: what was compressed all the same is not unpacked, so it cannot swell.
    body = bytearray()
    pieces = answer.aiter_raw()
    async for piece in pieces:
        body += piece
        if len(body) > MAX_BODY_BYTES:
            await _leave(answer, pieces)
            return bytes(body[:MAX_BODY_BYTES]), False
    return bytes(body), True


async def _leave(answer: httpx2.Response, pieces: AsyncIterator[bytes]) -> None:
    # The client's own generators end by meeting the closed connection, not by being left alone.
    await answer.aclose()
    with contextlib.suppress(httpx2.HTTPError, StopAsyncIteration):
        await anext(pieces)


def _onward(wanted: Wanted, answer: Fetched) -> Wanted | None:
    """Give the request that a redirect asks for; None when there is none, or it is not to be followed."""
    target = answer.headers.get("location")
    if answer.status not in REDIRECTS or target is None:
        return None
    try:
        here = httpx2.URL(wanted.url)
        there = here.join(target)
    except (httpx2.InvalidURL, ValueError, UnicodeError):
        return None
    if here.scheme == "https" and there.scheme != "https":
        raise NotFetched("a redirect leads from https to http")
    headers = wanted.headers
    if _origin(here) != _origin(there):
        if wanted.secret:
            # Who reads the answer may ask the other host by itself, if that host is allowed.
            return None
        headers = {name: value for name, value in headers.items() if name.lower() not in OF_ONE_HOST}
    if answer.status in KEEPS_METHOD or wanted.method in ("GET", "HEAD"):
        return replace(wanted, url=str(there), headers=headers)
    if answer.status != HTTPStatus.SEE_OTHER and wanted.method != "POST":
        return replace(wanted, url=str(there), headers=headers)
    return replace(wanted, method="GET", url=str(there), headers=headers, body=None)


def _origin(url: httpx2.URL) -> tuple[str, bytes, int]:
    return url.scheme, url.raw_host, url.port or PORTS.get(url.scheme, 0)
