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

from bench.wire import request

PATH = "/empty"
BACKLOG = 128
ROOT = Path(__file__).parents[1]


def empty_app() -> QuartTrio:
    """One route that does nothing: no body to read, none to write."""
    app = QuartTrio("empty")

    @app.get(PATH)
    async def empty() -> bytes:
        return b""

    return app


@contextmanager
def open_empty_server() -> Iterator[tuple[str, int]]:
    """In a process of its own, as the server it is compared with; gives its address."""
    with create_server(("127.0.0.1", 0), backlog=BACKLOG) as listener:
        host, port = listener.getsockname()
        descriptor = listener.fileno()
        command = [sys.executable, "-m", "bench.empty", str(descriptor)]
        process = subprocess.Popen(command, pass_fds=[descriptor], cwd=ROOT)
        try:
            yield host, port
        finally:
            process.terminate()
            process.wait()


def empty_request(address: tuple[str, int]) -> bytes:
    """With a bearer token of the usual length, so that heads are compared alike."""
    return request("GET", PATH, host=f"{address[0]}:{address[1]}", token="zrn_" + "0" * 64)


def main(descriptor: int) -> None:
    config = Config()
    config.bind = [f"fd://{descriptor}"]
    config.loglevel = "WARNING"
    trio.run(serve, empty_app(), config)


if __name__ == "__main__":
    main(int(sys.argv[1]))
