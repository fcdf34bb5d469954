"""The egress proxy of a run beside direct connections: requests a second, added time, bytes a second.

The server answers at once with a few bytes, so a ratio is the cost of the proxy alone, and the least
favourable that there can be. Client, proxy and server are processes of their own, over loopback, and each
contender keeps its connections open.
"""

import multiprocessing
import ssl
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import trio

sys.path.insert(0, str(Path(__file__).parents[1]))  # so that the file also runs by itself

from bench import harness, machine
from sexton_runner.egress.policy import Bounds, Policy, Rule
from sexton_runner.egress.proxy import open_proxy
from sexton_runner.redact import Redactor
from tests.worlds.egress import BOUND, PLACEHOLDER, SERVERS

CONNECTIONS = 8
REQUESTS = harness.size("REQUESTS", 2_000)
"""A round, over all connections."""
ALONE = harness.size("ALONE", 300)
"""Requests of a round of one connection, for what the proxy adds to the time of each."""
BODY_MIB = harness.size("BODY_MIB", 64)
ROUNDS = 5
MANY = 1 << 50
BOUNDS = Bounds(connections_total=MANY, bytes_in=MANY, bytes_out=MANY, requests_per_s=1e9)
PIECE = bytes(1 << 16)
SMALL = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
LARGE = f"HTTP/1.1 200 OK\r\nContent-Length: {BODY_MIB << 20}\r\n\r\n".encode()
NAMES = {"plain.example": False, "open.example": True, "bound.example": True}
"""Whether the host has TLS. Towards the last one the proxy puts a credential in."""
FORK = multiprocessing.get_context("fork")


async def answer(stream: trio.abc.Stream) -> None:
    """Serve ``/`` with two bytes and ``/large`` with many."""
    head = b""
    while data := await stream.receive_some(1 << 16):
        head += bytes(data)
        if not head.endswith(b"\r\n\r\n"):
            continue
        if b" /large " in head:
            await stream.send_all(LARGE)
            for _ in range(BODY_MIB << 4):
                await stream.send_all(PIECE)
        else:
            await stream.send_all(SMALL)
        head = b""


async def _serve(ready: Connection) -> None:
    async def talk(name: str, sock: trio.SocketStream) -> None:
        stream: trio.abc.Stream = sock
        if NAMES[name]:
            stream = trio.SSLStream(sock, SERVERS.context_for(name), server_side=True, https_compatible=True)
        try:
            await answer(stream)
        except trio.BrokenResourceError:
            pass
        finally:
            await trio.aclose_forcefully(sock)

    async with trio.open_nursery() as nursery:
        ports = {}
        for name in NAMES:
            listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
            ports[name] = listeners[0].socket.getsockname()[1]
            nursery.start_soon(trio.serve_listeners, partial(talk, name), listeners)
        ready.send(ports)


async def _proxy(ready: Connection, folder: Path, ports: dict[str, int]) -> None:
    async def resolve(_: str) -> list[str]:
        await trio.lowlevel.checkpoint()
        return ["127.0.0.1"]

    policy = Policy(
        rules=tuple(Rule(host=name, ports=(ports[name],)) for name in NAMES),
        bindings=(BOUND,),
        private_hosts=frozenset(NAMES),
        bounds=BOUNDS,
    )
    sock = trio.socket.socket(trio.socket.AF_UNIX)
    await sock.bind(str(folder / "proxy.sock"))
    sock.listen(64)
    async with open_proxy(
        policy,
        trio.SocketListener(sock),
        observe=lambda _: None,
        ask=None,
        redactor=Redactor({}),
        extra_roots=folder / "roots.pem",
        resolve=resolve,
    ) as proxy:
        ready.send(proxy.ca_pem)
        await trio.sleep_forever()


@contextmanager
def running(task: Callable[..., Awaitable[None]], *given: Any) -> Iterator[tuple[Any, int]]:
    """Run it in a process of its own; gives what it sends when it is ready, and its id."""
    here, there = FORK.Pipe()
    process = FORK.Process(target=trio.run, args=(task, there, *given), daemon=True)
    process.start()
    try:
        yield here.recv(), process.pid or 0
    finally:
        process.kill()
        process.join()


@dataclass
class Contender:
    """One way to one host. ``proxy`` is the folder of the proxy's socket, or None for the direct way."""

    name: str
    port: int
    trust: ssl.SSLContext
    proxy: Path | None
    proxy_pid: int
    alone_ms: list[float] = field(default_factory=list)
    proxy_us: list[float] = field(default_factory=list)
    mib_s: list[float] = field(default_factory=list)

    async def round(self) -> float:
        """Requests a second over all connections; notes the other figures beside."""
        streams = [await self.open() for _ in range(CONNECTIONS)]
        before, began = machine.processor_s(self.proxy_pid), time.perf_counter()
        async with trio.open_nursery() as nursery:
            for stream in streams:
                nursery.start_soon(self._ask, stream, REQUESTS // CONNECTIONS)
        took = time.perf_counter() - began
        self.proxy_us.append((machine.processor_s(self.proxy_pid) - before) / REQUESTS * 1e6)
        times = await self._ask(streams[0], ALONE)
        self.alone_ms.append(statistics.median(times) * 1000)
        began = time.perf_counter()
        await self._take(streams[0])
        self.mib_s.append(BODY_MIB / (time.perf_counter() - began))
        for stream in streams:
            await trio.aclose_forcefully(stream)
        return REQUESTS / took

    async def open(self) -> trio.abc.Stream:
        if self.proxy is None:
            sock = await trio.open_tcp_stream("127.0.0.1", self.port)
        else:
            sock = await trio.open_unix_socket(self.proxy / "proxy.sock")
        if not NAMES[self.name]:
            return sock
        if self.proxy is not None:
            await sock.send_all(f"CONNECT {self.name}:{self.port} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            established = await sock.receive_some(1 << 16)
            assert established.startswith(b"HTTP/1.1 200 ")
        stream = trio.SSLStream(sock, self.trust, server_hostname=self.name, https_compatible=True)
        await stream.do_handshake()
        return stream

    def _request(self, path: str) -> bytes:
        authority = f"{self.name}:{self.port}"
        target = f"http://{authority}{path}" if self.proxy and not NAMES[self.name] else path
        sent = f"GET {target} HTTP/1.1\r\nHost: {authority}\r\nAuthorization: Bearer {PLACEHOLDER}\r\n\r\n"
        return sent.encode()

    async def _ask(self, stream: trio.abc.Stream, count: int) -> list[float]:
        request, times = self._request("/"), []
        for _ in range(count):
            began = time.perf_counter()
            await stream.send_all(request)
            got = b""
            while not got.endswith(b"\r\n\r\nok"):
                got += bytes(await stream.receive_some(1 << 16))
            times.append(time.perf_counter() - began)
            assert got.startswith(b"HTTP/1.1 200 ")
        return times

    async def _take(self, stream: trio.abc.Stream) -> None:
        await stream.send_all(self._request("/large"))
        got, wanted = 0, BODY_MIB << 20
        while got < wanted:
            data = await stream.receive_some(1 << 18)
            assert data, "the answer is cut short"
            got += len(data)


async def measure(folder: Path, ports: dict[str, int], proxied: tuple[bytes, int], server_pid: int) -> Any:
    ca_pem, pid = proxied
    trust = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trust.load_verify_locations(cadata=(SERVERS.ca_pem + ca_pem).decode())
    ways = {
        "http, direct": Contender("plain.example", ports["plain.example"], trust, None, server_pid),
        "http, proxied": Contender("plain.example", ports["plain.example"], trust, folder, pid),
        "https, direct": Contender("open.example", ports["open.example"], trust, None, server_pid),
        "https, passed through": Contender("open.example", ports["open.example"], trust, folder, pid),
        "https, with a credential": Contender("bound.example", ports["bound.example"], trust, folder, pid),
    }
    samples = await harness.alternate({name: way.round for name, way in ways.items()}, rounds=ROUNDS)
    figures = []
    for name, way in ways.items():
        direct = f"{name.partition(',')[0]}, direct"
        if name == direct:
            figures.append(harness.Figure(name, harness.Spread.of(samples[name]), "requests/s"))
            figures.append(harness.Figure(f"{name}: large", harness.Spread.of(way.mib_s[1:]), "MiB/s"))
            continue
        beside = ways[direct]
        added = [ours - theirs for ours, theirs in zip(way.alone_ms[1:], beside.alone_ms[1:], strict=True)]
        ratio = harness.ratios(samples[name], samples[direct])
        figures += [
            harness.Figure(name, harness.Spread.of(samples[name]), "requests/s", direct, ratio),
            harness.Figure(f"{name}: added, alone", harness.Spread.of(added), "ms"),
            harness.Figure(f"{name}: the proxy's time", harness.Spread.of(way.proxy_us[1:]), "µs/request"),
            harness.Figure(
                f"{name}: large",
                harness.Spread.of(way.mib_s[1:]),
                "MiB/s",
                direct,
                harness.ratios(way.mib_s[1:], beside.mib_s[1:]),
            ),
        ]
    return harness.report("egress", machine.describe(), figures)


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "roots.pem").write_bytes(SERVERS.ca_pem)
        with running(_serve) as (ports, server_pid), running(_proxy, folder, ports) as proxied:
            print(harness.line(trio.run(measure, folder, ports, proxied, server_pid)))


if __name__ == "__main__":
    main()
