"""HTTP/2 beside HTTP/1.1: the same requests, as many under way, and the time of the server for each.

Over HTTP/1.1 each request under way has a connection; over HTTP/2 all share one, or each has one as well.
"""

import socket
import ssl
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, ExitStack, contextmanager
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any, Final, NamedTuple

import trio

sys.path.insert(0, str(Path(__file__).parents[1]))  # so that the file also runs by itself

from bench import harness, machine, server
from bench.http_renewal import SLOTS
from bench.load import open_client
from bench.product import payload, renew
from bench.wire import parse, post_json, request
from sexton_http.wire.server import open_doors, serve
from sexton_http.wire.tls import Tls
from tests.worlds.certificates import make_certificate

UNDER_WAY = 32
ROUNDS = 7
LEASES = 256
LARGE: Final = 256 * 1024
ANSWER = b'{"lease_expires_at": 1700000000000, "fencing_token": 1}'
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, GOAWAY, WINDOW_UPDATE = 0, 1, 3, 4, 7, 8
END_STREAM, ACK, END_HEADERS = 1, 1, 4
OPEN = (1 << 31) - 1
LATER, AT_ONCE, TURNS, FIRST_BYTES = 1500, 100, 4, 64 * 1024
"""A large answer that is asked for first, and small ones after it."""
ROOT = Path(__file__).parents[1]
Requests = Sequence[bytes]
"""As bytes of HTTP/1.1, from which those of HTTP/2 are made."""


async def app(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """Answer with as many bytes as the path names, else what a renewal is answered."""
    await receive()
    size = scope["path"][1:]
    body = bytes(int(size)) if size.isdigit() else ANSWER
    head = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 200, "headers": head})
    await send({"type": "http.response.body", "body": body, "more_body": False})


async def run_server(tls: Tls | None) -> None:
    doors = await open_doors("127.0.0.1", 0, secure=tls is not None)
    print(doors.port, flush=True)
    await serve(app, doors, stop=trio.Event(), tls=tls)


@contextmanager
def open_server(tls: Tls | None) -> Iterator[tuple[tuple[str, int], int]]:
    """Its address and process."""
    files = [] if tls is None else [str(tls.certificate), str(tls.key)]
    command = [sys.executable, "-m", "bench.http2", "--serve", *files]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT)
    try:
        assert process.stdout is not None
        yield ("127.0.0.1", int(process.stdout.readline())), process.pid
    finally:
        process.terminate()
        process.wait()


def frame(kind: int, flags: int, stream_id: int, body: bytes = b"") -> bytes:
    return struct.pack(">I", len(body))[1:] + bytes((kind, flags)) + struct.pack(">I", stream_id) + body


def as_http2(one: bytes) -> tuple[bytes, bytes]:
    """A request's block of fields, good for any stream, and its body."""
    head, _, body = one.partition(b"\r\n\r\n")
    first, *lines = head.split(b"\r\n")
    method, path, _ = first.split(b" ")
    fields = [tuple(line.split(b": ", 1)) for line in lines]
    host = next(value for name, value in fields if name.lower() == b"host")
    pseudo = [(b":method", method), (b":scheme", b"http"), (b":authority", host), (b":path", path)]
    rest = [(name.lower(), value) for name, value in fields if name.lower() not in {b"host", b"connection"}]
    return b"".join(b"\0" + text(name) + text(value) for name, value in (*pseudo, *rest)), body


def text(value: bytes) -> bytes:
    """As HPACK spells it, without a code (RFC 7541, 5.2).

    A field that may not be indexed would be marked as a secret, which no client does with all of them.
    """
    short = 127
    if len(value) < short:
        return bytes((len(value),)) + value
    more = len(value) - short
    assert more < 1 << 14
    head = bytes((short, more)) if more < 1 << 7 else bytes((short, more & 127 | 128, more >> 7))
    return head + value


def connect(address: tuple[str, int], context: ssl.SSLContext | None) -> socket.socket:
    plain = socket.create_connection(address)
    plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return plain if context is None else context.wrap_socket(plain)


class Line1:
    """A connection of HTTP/1.1."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock

    def ask(self, ones: Requests) -> None:
        for one in ones:
            self.sock.sendall(one)

    def take(self, count: int) -> None:
        """Wait for that many answers, all of them 200."""
        for _ in range(count):
            data = self.sock.recv(1 << 18)
            while (whole := parse(data)) is None:
                data += self.sock.recv(1 << 18)
            assert whole[0] == 200


class Line2:
    """A connection of HTTP/2 whose windows are always open, unless it is told otherwise."""

    def __init__(self, sock: socket.socket, window: int = OPEN) -> None:
        self.sock = sock
        self._next = 1
        self._rest = b""
        self._blocks: dict[bytes, tuple[bytes, bytes]] = {}
        settings = frame(SETTINGS, 0, 0, struct.pack(">HIHI", 1, 0, 4, window))
        more = frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", OPEN - 65_535))
        sock.sendall(PREFACE + settings + more)

    def ask(self, ones: Requests) -> None:
        sent: list[bytes] = []
        for one in ones:
            if one not in self._blocks:
                self._blocks[one] = as_http2(one)
            block, body = self._blocks[one]
            flags = END_HEADERS if body else END_HEADERS | END_STREAM
            sent.append(frame(HEADERS, flags, self._next, block))
            if body:
                sent.append(frame(DATA, END_STREAM, self._next, body))
            self._next += 2
        self.sock.sendall(b"".join(sent))

    def frames(self) -> Iterator[tuple[int, int, int, int]]:
        """Kind, flags, stream and size of those that the next bytes complete."""
        self._rest += self.sock.recv(1 << 18)
        at, rest = 0, self._rest
        while len(rest) - at >= 9:
            size = int.from_bytes(rest[at : at + 3], "big")
            if len(rest) - at < 9 + size:
                break
            kind, flags = rest[at + 3], rest[at + 4]
            stream_id = int.from_bytes(rest[at + 5 : at + 9], "big")
            assert kind not in {RST_STREAM, GOAWAY}, rest[at : at + 9 + size]
            # With no table, what is said first in an answer is its status: 200 is one byte.
            assert kind != HEADERS or 0x88 in rest[at + 9 : at + 12], rest[at : at + 9 + size]
            if kind == SETTINGS and not flags & ACK:
                self.sock.sendall(frame(SETTINGS, ACK, 0))
            yield kind, flags, stream_id, size
            at += 9 + size
        self._rest = rest[at:]

    def take(self, count: int) -> None:
        while count:
            for kind, flags, _, _ in self.frames():
                count -= kind in {DATA, HEADERS} and bool(flags & END_STREAM)


class Contender:
    """Some lines to one server, over which the same requests are sent again and again."""

    def __init__(self, pid: int, lines: Sequence[Line1 | Line2], ones: Requests, asked: int) -> None:
        self._pid, self._lines = pid, lines
        self._turns = [ones[at : at + UNDER_WAY] for at in range(0, len(ones), UNDER_WAY)]
        self._asked = asked
        self.server_us: list[float] = []

    async def round(self) -> float:
        """Requests a second."""
        before, begun = machine.processor_s(self._pid), perf_counter()
        await trio.to_thread.run_sync(self._ask)
        took = perf_counter() - begun
        self.server_us.append(1e6 * (machine.processor_s(self._pid) - before) / self._asked)
        return self._asked / took

    def _ask(self) -> None:
        lines, share = self._lines, UNDER_WAY // len(self._lines)
        for turn in range(self._asked // UNDER_WAY):
            ones = self._turns[turn % len(self._turns)]
            for number, line in enumerate(lines):
                line.ask(ones[number * share : (number + 1) * share])
            for line in lines:
                line.take(share)


class At(NamedTuple):
    """A server."""

    address: tuple[str, int]
    pid: int
    tls: Tls | None = None


async def compare(name: str, at: At, ones: Requests, asked: int) -> list[harness.Figure]:
    with ExitStack() as stack:

        def dial(alpn: str) -> socket.socket:
            context = None
            if at.tls is not None:
                context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
                context.check_hostname = False
                context.load_verify_locations(at.tls.certificate)
                context.set_alpn_protocols([alpn])
            return stack.enter_context(connect(at.address, context))

        ones = [*ones] * (UNDER_WAY // len(ones) + 1) if len(ones) < UNDER_WAY else ones
        ones = ones[: len(ones) // UNDER_WAY * UNDER_WAY]
        lines: dict[str, list[Any]] = {
            "HTTP/1.1": [Line1(dial("http/1.1")) for _ in range(UNDER_WAY)],
            "HTTP/2, one connection": [Line2(dial("h2"))],
            f"HTTP/2, {UNDER_WAY} connections": [Line2(dial("h2")) for _ in range(UNDER_WAY)],
        }
        rivals = {way: Contender(at.pid, some, ones, asked) for way, some in lines.items()}
        samples = await harness.alternate({way: one.round for way, one in rivals.items()}, rounds=ROUNDS)
    first = "HTTP/1.1"
    figures: list[harness.Figure] = []
    for way, one in rivals.items():
        us, base = one.server_us[1:], rivals[first].server_us[1:]
        against = None if way == first else first
        figures += [
            harness.Figure(
                f"{name}: {way}",
                harness.Spread.of(samples[way]),
                "requests/s",
                against,
                None if against is None else harness.ratios(samples[way], samples[first]),
            ),
            harness.Figure(
                f"{name}: {way}: server's processor time",
                harness.Spread.of(us),
                "µs/request",
                against,
                None if against is None else harness.ratios(us, base),
                () if against is None else (harness.at_most_times(1.3),),
            ),
        ]
    return figures


def place_of_the_first(address: tuple[str, int]) -> int:
    """How many of the small answers come before the large one, which was asked for before them."""

    def path(size: int) -> bytes:
        return request("GET", f"/{size}", host="localhost")

    with connect(address, None) as sock:
        line = Line2(sock, window=FIRST_BYTES // TURNS)
        line.ask([path(FIRST_BYTES)])
        asked = ended = 0
        while True:
            if (room := min(AT_ONCE - (asked - ended), LATER - asked)) > 0:
                line.ask([path(500)] * room)
                asked += room
            for kind, flags, stream_id, size in line.frames():
                if kind == DATA and size and stream_id == 1:
                    sock.sendall(frame(WINDOW_UPDATE, 0, 1, struct.pack(">I", size)))
                if kind in {DATA, HEADERS} and flags & END_STREAM:
                    if stream_id == 1:
                        return ended
                    ended += 1


async def measure() -> dict[str, Any]:
    figures: list[harness.Figure] = []
    small = [post_json("/v1/renewals", {"x": "y" * 48}, host="localhost", token="zrn_" + "0" * 64)]
    before = LATER
    large = [request("GET", f"/{LARGE}", host="localhost", token="zrn_" + "0" * 64)]
    with tempfile.TemporaryDirectory() as folder:
        tls = make_certificate(Path(folder), "localhost")
        for about, files in (("plain", None), ("TLS", tls)):
            with open_server(files) as (address, pid):
                at = At(address, pid, files)
                harness.tell(f"empty handler and large answers, {about}")
                figures += await compare(f"empty handler, {about}", at, small, 3200)
                figures += await compare(f"256 KiB, {about}", at, large, 320)
                if files is None:
                    harness.tell(f"{LATER} small answers behind a large one")
                    before = await trio.to_thread.run_sync(place_of_the_first, address)
    figures.append(
        harness.Figure(
            f"small answers of {LATER} that come before a large one that was asked for first",
            harness.once(before),
            "answers",
            budgets=(harness.at_most(LATER / 2, "answers"),),
        )
    )
    harness.tell("renewals of the product")
    figures += await measure_renewals()
    return harness.report("http2", machine.describe(), figures)


async def measure_renewals() -> list[harness.Figure]:
    """Renewals by the product, committed, on plain sockets."""
    async with AsyncExitStack() as stack:
        client = stack.enter_context(open_client())
        process = await stack.enter_async_context(server.open_folder())
        site = await process.start(*server.UNHURRIED)
        await server.fill_purse(client, site)
        agents = await server.make_agents(client, site, LEASES)
        await server.wake(client, site, server.deliveries_of(site, agents, payload()), 1)
        tokens = await server.make_runners(client, site, LEASES // SLOTS, SLOTS)
        leases = [lease for token in tokens for lease in await server.lease_all(client, site, token, SLOTS)]
        ones = [renew(site, lease) for lease in leases]
        return await compare("renewals", At(site.address, process.pid), ones, 1600)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        trio.run(partial(run_server, Tls(*map(Path, sys.argv[2:])) if sys.argv[2:] else None))
    else:
        print(harness.line(trio.run(measure)))
