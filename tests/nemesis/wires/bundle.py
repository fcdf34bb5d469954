"""The wires of one process, as a run holds and cuts them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Protocol

import trio

from tests.fakes.tcp_link import LOOPBACK, Address


class Cuttable(Protocol):
    """Something over which connections go."""

    def hold(self) -> None:
        """Let nothing through any more, as a cut cable does: nobody is told."""

    def let_go(self) -> None:
        """Let through what was held, and all that comes."""

    def hang_up(self) -> None:
        """Break every connection now."""


class Door(Cuttable, Protocol):
    """One that clients of HTTP come to."""

    @property
    def base_url(self) -> str: ...


class Wire:
    """One of a bundle."""

    def __init__(self, process: subprocess.Popen[bytes], name: str, port: int) -> None:
        self._process = process
        self._name = name
        self.base_url = f"http://{LOOPBACK}:{port}"

    def hold(self) -> None:
        self._say("hold")

    def let_go(self) -> None:
        self._say("let-go")

    def hang_up(self) -> None:
        self._say("hang-up")

    def _say(self, word: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{word} {self._name}\n".encode())


@asynccontextmanager
async def open_wires(
    wires: Mapping[str, tuple[Path | None, Path | Address]],
) -> AsyncIterator[dict[str, Wire]]:
    """Wires by name, in one process: where each takes connections, and where to it passes them on.

    None: at a port of its own on loopback. A path is a socket's.
    """
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.nemesis.wires"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=0,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        plain = {
            name: (at and str(at), to if isinstance(to, tuple) else str(to))
            for name, (at, to) in wires.items()
        }
        process.stdin.write(json.dumps(plain).encode() + b"\n")
        ports = json.loads(await trio.to_thread.run_sync(process.stdout.readline))
        yield {name: Wire(process, name, port) for name, port in ports.items()}
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()
