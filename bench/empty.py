"""The rival of every figure over HTTP: an empty Quart-Trio handler on plain Hypercorn."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from socket import create_server

import trio
from hypercorn.config import Config
from hypercorn.trio import serve
from quart_trio import QuartTrio

from bench.harness import lasting
from bench.load import Client, Job, Loaded, repeat
from bench.wire import request

PATH = "/empty"
BACKLOG = 128
CONNECTIONS = 32
RUN_S = 3.0
ROOT = Path(__file__).parents[1]


def empty_app() -> QuartTrio:
    """One route that does nothing: no body to read, none to write."""
    app = QuartTrio("empty")

    @app.get(PATH)
    async def empty() -> bytes:
        return b""

    return app


class Rival:
    """The running server."""

    def __init__(self, address: tuple[str, int], pid: int) -> None:
        self._pid = pid
        self._address = address
        # With a bearer token of the usual length, so that heads are compared alike.
        host = f"{address[0]}:{address[1]}"
        self._requests = [request("GET", PATH, host=host, token="zrn_" + "0" * 64)]
        self.runs: list[Loaded] = []

    async def round(self, client: Client) -> float:
        """Requests a second, over as many connections as the product gets."""
        job = Job(self._address, repeat, (self._requests,), CONNECTIONS, lasting(RUN_S))
        loaded = await client.run(job, self._pid)
        assert set(loaded.statuses) == {200}, loaded.statuses
        self.runs.append(loaded)
        return loaded.per_second


@contextmanager
def open_empty_server() -> Iterator[Rival]:
    """In a process of its own, as the server it is compared with."""
    with create_server(("127.0.0.1", 0), backlog=BACKLOG) as listener:
        host, port = listener.getsockname()
        descriptor = listener.fileno()
        command = [sys.executable, "-m", "bench.empty", str(descriptor)]
        process = subprocess.Popen(command, pass_fds=[descriptor], cwd=ROOT)
        try:
            yield Rival((host, port), process.pid)
        finally:
            process.terminate()
            process.wait()


def main(descriptor: int) -> None:
    config = Config()
    config.bind = [f"fd://{descriptor}"]
    config.loglevel = "WARNING"
    trio.run(serve, empty_app(), config)


if __name__ == "__main__":
    main(int(sys.argv[1]))
