"""HTTP/1.1 over TLS beside plain sockets: requests of the size of a renewal, and the time of the server.

The handler does nothing, so the ratio is the cost of TLS alone, and the least favourable that there can be.
"""

import socket
import ssl
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import trio

sys.path.insert(0, str(Path(__file__).parents[1]))  # so that the file also runs by itself

from bench import harness, machine
from bench.wire import parse, post_json
from sexton_http.wire.server import open_doors, serve
from sexton_http.wire.tls import Tls
from tests.worlds.certificates import make_certificate

CONNECTIONS = 8
REQUESTS = 4000
"""A round; each connection has one request under way."""
ROUNDS = 5
ROOT = Path(__file__).parents[1]
ANSWER = b'{"lease_expires_at": 1700000000000, "fencing_token": 1}'


async def app(_scope: dict[str, Any], receive: Any, send: Any) -> None:
    """Answer what a renewal is answered."""
    await receive()
    head = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(ANSWER))]
    await send({"type": "http.response.start", "status": 200, "headers": head})
    await send({"type": "http.response.body", "body": ANSWER, "more_body": False})


async def run_server(tls: Tls | None) -> None:
    doors = await open_doors("127.0.0.1", 0, secure=tls is not None)
    print(doors.port, flush=True)
    await serve(app, doors, stop=trio.Event(), tls=tls)


class Contender:
    """A server in a process of its own, and the connections to it."""

    def __init__(self, process: subprocess.Popen[bytes], context: ssl.SSLContext | None) -> None:
        assert process.stdout is not None
        address = ("127.0.0.1", int(process.stdout.readline()))
        self._pid = process.pid
        self._request = post_json("/v1/renewals", {"x": "y" * 48}, host="localhost", token="zrn_" + "0" * 64)
        self._sockets: list[socket.socket] = []
        self.server_us: list[float] = []
        for _ in range(CONNECTIONS):
            plain = socket.create_connection(address)
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._sockets.append(plain if context is None else context.wrap_socket(plain))

    async def round(self) -> float:
        """Requests a second."""
        before, begun = machine.processor_s(self._pid), perf_counter()
        await trio.to_thread.run_sync(self._ask)
        took = perf_counter() - begun
        self.server_us.append(1e6 * (machine.processor_s(self._pid) - before) / REQUESTS)
        return REQUESTS / took

    def _ask(self) -> None:
        for _ in range(REQUESTS // CONNECTIONS):
            for line in self._sockets:
                line.sendall(self._request)
            for line in self._sockets:
                data = line.recv(65_536)
                while (whole := parse(data)) is None:
                    data += line.recv(65_536)
                assert whole[0] == 200

    def close(self) -> None:
        for line in self._sockets:
            line.close()


@contextmanager
def open_contender(tls: Tls | None) -> Iterator[Contender]:
    context = None
    if tls is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.load_verify_locations(tls.certificate)
    files = [] if tls is None else [str(tls.certificate), str(tls.key)]
    command = [sys.executable, "-m", "bench.tls", "--serve", *files]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT)
    try:
        contender = Contender(process, context)
        yield contender
        contender.close()
    finally:
        process.terminate()
        process.wait()


async def measure() -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        tls = make_certificate(Path(folder), "localhost")
        with open_contender(None) as plain, open_contender(tls) as secure:
            contenders = {"plain": plain.round, "tls": secure.round}
            samples = await harness.alternate(contenders, rounds=ROUNDS)
    figures = [
        harness.Figure("plain", harness.Spread.of(samples["plain"]), "requests/s"),
        harness.Figure(
            "over TLS",
            harness.Spread.of(samples["tls"]),
            "requests/s",
            "plain",
            harness.ratios(samples["tls"], samples["plain"]),
        ),
        harness.Figure("plain: server's processor time", harness.Spread.of(plain.server_us), "µs/request"),
        harness.Figure(
            "over TLS: server's processor time", harness.Spread.of(secure.server_us), "µs/request"
        ),
    ]
    return harness.report("tls", machine.describe(), figures)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        trio.run(partial(run_server, Tls(*map(Path, sys.argv[2:])) if sys.argv[2:] else None))
    else:
        print(harness.line(trio.run(measure)))
