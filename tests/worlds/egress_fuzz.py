"""Sends the egress proxy requests that chance made, and looks for a leak or a pass in what came of them."""

import base64
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar
from urllib.parse import parse_qsl

import h11
import trio

from sexton_runner.egress.policy import Bounds
from sexton_runner.redact import forms
from tests.worlds.client_hello import client_hello
from tests.worlds.egress import BOUND, NAMES, PASSWORD, PLACEHOLDER, QUERY, SECRET, EgressWorld, send

T = TypeVar("T")
MANY = 1 << 50
UNBOUND = Bounds(
    connections=10_000, connections_total=MANY, bytes_in=MANY, bytes_out=MANY, requests_per_s=1e9
)
BOUND_HOSTS = ("bound.example", "plain.example")
BINDINGS = tuple(replace(one, hosts=BOUND_HOSTS) for one in (BOUND, PASSWORD, QUERY))
BATCH = 200
WORKERS = 8
PATIENCE_S = 3.0
CANARY = tuple(form.encode() for form in forms(SECRET))
METHODS = ("HEAD", "OPTIONS", "PUT", "CONNECT", "TRACE", "get", "PRI", "G\tET", "")
VERSIONS = ("HTTP/1.0", "HTTP/2.0", "HTTP/1.1 ", "http/1.1", "HTTP/1.10", "")
ODD = 0.07
"""The chance of each part of a request to be of the odd ones."""
PATHS = (
    *("/", "/docs", "/docs/a", f"/?key={PLACEHOLDER}", f"/docs?a=b&key={PLACEHOLDER}"),
    *("/base64", "/gzip", "/bytewise", "/header", "/brotli", "/redirect?to=/", f"/x?other={PLACEHOLDER}"),
)
ODD_PATHS = (
    *("/docs/../x", "/docs/%2e%2e/x", "/docs/..;/x", "//docs", "*", "", "/a#b", f"/{PLACEHOLDER}"),
    *(f"/?k%65y={PLACEHOLDER}", f"/?key={PLACEHOLDER}&key={PLACEHOLDER}&", f"/?key=a%26{PLACEHOLDER}"),
)
SPELLINGS = (
    *(
        "{0}.",
        "{0}..",
        "{0}%2e",
        "x@{0}",
        "{0}@127.0.0.1",
        "{0}\\",
        "{0}/",
        " {0}",
        "{0}\t",
        "\x00{0}",
        "{0}#",
    ),
    *(
        "a.{0}",
        "127.0.0.1",
        "[::1]",
        "0x7f.1",
        "2130706433",
        "[::ffff:127.0.0.1]",
        "localhost",
        "SHUT.EXAMPLE",
    ),
)
HEADERS = (
    f"Authorization: Bearer {PLACEHOLDER}",
    f"authorization: {PLACEHOLDER}{PLACEHOLDER}",
    f"X-Key: {PLACEHOLDER}",
    f"Cookie: a={PLACEHOLDER}",
    "Authorization: Basic " + base64.b64encode(f"u:{PLACEHOLDER}".encode()).decode(),
    "Authorization: Basic " + base64.b64encode(f"{PLACEHOLDER}:u".encode()).decode(),
    "Connection: close",
    "Expect: 100-continue",
    "Range: bytes=0-4",
    "Accept-Encoding: gzip, br",
    "TE: trailers",
    "Upgrade: h2c",
)
ODD_HEADERS = (
    "Authorization: Basic ====",
    "Connection: keep-alive, authorization, host",
    "Connection: upgrade",
    "Upgrade: websocket",
    "Transfer-Encoding: chunked",
    "Transfer-Encoding:\tchunked",
    "Transfer-Encoding : chunked",
    "Transfer-Encoding: chunked, identity",
    "Content-Length: 0",
    "Content-Length: 5",
    "Content-Length: 00005",
    "Content-Length: -1",
    "Content-Length: 5, 5",
    "X-HTTP-Method-Override: DELETE",
    "Proxy-Authorization: Basic eDp5",
    " folded: x",
    "X-A: b\nX-C: d",
    "X-A: b\rX-C: d",
    "X-\xe9: y",
    ":",
)
BODIES = (
    "5\r\nhello\r\n0\r\n\r\n",
    f"{len(PLACEHOLDER):x};x=y\r\n{PLACEHOLDER}\r\n0\r\nX-T: 1\r\n\r\n",
    "5\nhello\n0\n\n",
    "-5\r\nhello\r\n0\r\n\r\n",
    "0\r\n\r\nGET http://shut.example/ HTTP/1.1\r\nHost: shut.example\r\n\r\n",
)
SPLICES = (b"\r", b"\n", b"\r\n", b"\r\n\r\n", b"\0", b" ", b"\t", b":", b"%0d", b"\xff", b"@", b"/", b"..")


@dataclass
class Findings:
    """What came of a run of requests. ``leaks`` and ``passes`` say what went wrong, and should be empty."""

    sent: int = 0
    leaks: list[str] = field(default_factory=list)
    passes: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    verdicts: Counter[str] = field(default_factory=Counter)
    secrets_delivered: int = 0


async def fuzz(world: EgressWorld, count: int, seed: int) -> Findings:
    """Send ``count`` requests, some of them within tunnels. The same seed makes the same requests."""
    findings = Findings()
    chance = random.Random(seed)
    while findings.sent < count:
        cases = [make_case(world, chance) for _ in range(min(BATCH, count - findings.sent))]
        heard: list[bytes] = []
        async with trio.open_nursery() as nursery:
            for first in range(WORKERS):
                nursery.start_soon(_work, world, cases[first::WORKERS], heard)
        findings.sent += len(cases)
        _judge(world, heard, findings)
    return findings


@dataclass(frozen=True)
class Case:
    """Bytes for the proxy, or within the TLS of ``tunnel``, or after a CONNECT to it if they are ``raw``."""

    data: bytes
    tunnel: str | None = None
    raw: bool = False


def make_case(world: EgressWorld, chance: random.Random) -> Case:
    kind = chance.random()
    if kind < 0.88:
        return Case(_mutated(chance, _request(world, chance, None)))
    name = chance.choice(("bound.example", "bound.example", "ruled.example", "open.example"))
    if kind < 0.96:
        return Case(_mutated(chance, _request(world, chance, name)), tunnel=name)
    server_name = chance.choice((name, "shut.example", "bound.example", None, name + "."))
    size = chance.choice((7, 100, 1 << 14))
    hello = client_hello(name=server_name, encrypted=chance.random() < 0.2, record=size)
    return Case(_mutated(chance, hello), tunnel=name, raw=True)


def _request(world: EgressWorld, chance: random.Random, within: str | None) -> bytes:
    def some(usual: Sequence[T], odd: Sequence[T]) -> T:
        return chance.choice(odd if chance.random() < ODD else usual)

    name = within or some(("plain.example",), NAMES)
    port = some((world.port(name),), (80, 443, world.port("shut.example")))
    authority = f"{some((name,), SPELLINGS).format(name)}:{port}"
    method = some(("GET", "GET", "POST"), METHODS)
    path = some(PATHS, ODD_PATHS)
    scheme = some(("http",), ("https", "HTTP", "ws", ""))
    target = path if within else f"{scheme}://{authority}{path}"
    if method == "CONNECT":
        target = authority
    target = some((target,), (authority, path, f"http://{world.authority('shut.example')}/"))
    lines = [f"Host: {some((authority,), ('shut.example', 'bound.example', name))}"]
    lines += chance.sample(HEADERS, chance.choice((0, 1, 1, 2, 3)))
    lines += [line for line in ODD_HEADERS if chance.random() < ODD / 8]
    body = some(("", "", "", "hello", f"key={PLACEHOLDER}"), BODIES)
    if body:
        lines.append("Transfer-Encoding: chunked" if "\r\n" in body else f"Content-Length: {len(body)}")
    chance.shuffle(lines)
    first = f"{method} {target} {some(('HTTP/1.1',), VERSIONS)}"
    return "\r\n".join([first, *lines, "", body]).encode("latin-1")


def _mutated(chance: random.Random, data: bytes) -> bytes:
    """Change a few bytes in a quarter of the cases, and send another request behind in some."""
    changed = bytearray(data)
    if chance.random() < 0.25:
        for _ in range(chance.choice((1, 1, 2, 5))):
            at = chance.randrange(len(changed) + 1)
            match chance.randrange(4):
                case 0:
                    changed[at:at] = chance.choice(SPLICES)
                case 1:
                    del changed[at : at + chance.choice((1, 2, 20))]
                case 2:
                    changed[at : at + 1] = bytes([chance.randrange(256)])
                case _:
                    changed[at:at] = changed[max(0, at - 30) : at]
    return bytes(changed) * (2 if chance.random() < 0.1 else 1)


async def _work(world: EgressWorld, cases: list[Case], heard: list[bytes]) -> None:
    for case in cases:
        with trio.move_on_after(PATIENCE_S):
            heard.append(await _send(world, case))


async def _send(world: EgressWorld, case: Case) -> bytes:
    """Send it, half-close, and give all that comes back."""
    if case.tunnel is None:
        stream: trio.abc.Stream = await world.connect()
        ending: trio.SocketStream | None = stream if isinstance(stream, trio.SocketStream) else None
    elif case.raw:
        stream, _ = await world.tunnel(world.authority(case.tunnel))
        ending = stream
    else:
        stream, ending = await world.tls(case.tunnel), None
    data = b""
    try:
        await send(stream, case.data)
        if ending is not None:
            await ending.send_eof()
        with trio.move_on_after(PATIENCE_S if ending is not None else 0.05) as limit:
            while piece := await stream.receive_some(1 << 16):
                data += bytes(piece)
                limit.deadline = trio.current_time() + 0.05
    except (trio.BrokenResourceError, OSError):
        pass
    finally:
        await trio.aclose_forcefully(stream)
    return data


def _judge(world: EgressWorld, heard: list[bytes], findings: Findings) -> None:
    """Look at all that any side heard, and forget it."""
    findings.leaks += [f"to the program: {data[:200]!r}" for data in heard if _shows(data)]
    for seen in world.seen:
        findings.verdicts[f"{seen.verdict} {seen.reason}".strip()] += 1
        if seen.reason == "fault":
            findings.faults.append(repr(seen))
        if SECRET in repr(seen):
            findings.leaks.append(f"in a record: {seen!r}")
    for name, origin in world.origins.items():
        if name == "shut.example" and origin.connections:
            findings.passes.append(f"a connection to {name}: {origin.text[:200]!r}")
        if name not in BOUND_HOSTS and _shows(origin.text):
            findings.leaks.append(f"to {name}: {origin.text[:200]!r}")
        for request, body in origin.requests:
            if name in BOUND_HOSTS:
                findings.secrets_delivered += _is_delivered(request)
                if _is_misplaced(request, body):
                    findings.leaks.append(f"in the wrong place: {request!r} {body!r}")
            if name == "ruled.example" and not _is_ruled(request):
                findings.passes.append(f"against the rules: {request!r}")
        origin.heard.clear()
        origin.requests.clear()
        origin.connections = 0
    world.seen.clear()


def _shows(data: bytes) -> bool:
    return any(form in data for form in CANARY)


def _is_delivered(request: h11.Request) -> bool:
    return _shows(request.target) or any(_shows(value) for _, value in request.headers)


def _is_misplaced(request: h11.Request, body: bytes) -> bool:
    path, _, query = request.target.partition(b"?")
    elsewhere = [value for name, value in request.headers if name != b"authorization"]
    others = [value.encode() for name, value in parse_qsl(query.decode("latin-1")) if name != "key"]
    return any(map(_shows, [path, body, request.method, *elsewhere, *others]))


def _is_ruled(request: h11.Request) -> bool:
    path = request.target.partition(b"?")[0]
    return request.method == b"GET" and (path == b"/docs" or path.startswith(b"/docs/")) and b".." not in path
