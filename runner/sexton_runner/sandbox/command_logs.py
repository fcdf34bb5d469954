"""Writes down what the processes print that commands leave running, from inside a sandbox.

It is run there beside the command server, and uses the standard library only.
"""

import contextlib
import os
import select
from collections.abc import Iterable
from pathlib import Path
from typing import IO

from sexton_runner.sandbox.command_processes import bury

READ_BYTES = 32768
BURY_MS = 1000
LOG_BYTES = 1 << 20
"""The size at which a log is put aside, once; so a process that goes on has at most twice that."""


class Logs:
    """What commands that have ended left running still prints: a file for each command, bounded."""

    def __init__(self) -> None:
        self._open: dict[int, tuple[IO[bytes], Path]] = {}
        self._count = 0

    def keep(self, streams: Iterable[IO[bytes]], folder: str) -> Path:
        """Go on reading the streams, into a file of their own below the folder."""
        self._count += 1
        path = Path(folder) / "processes" / f"{self._count}.log"
        with contextlib.suppress(OSError):
            path.parent.mkdir(exist_ok=True)
            path.touch()
        for stream in streams:
            self._open[stream.fileno()] = (stream, path)
        return path

    def descriptors(self) -> tuple[int, ...]:
        """Give what is read from."""
        return tuple(self._open)

    def take(self, descriptor: int) -> bool:
        """Write down what is there to be read; False at its end."""
        stream, path = self._open[descriptor]
        piece = os.read(descriptor, READ_BYTES)
        if not piece:
            stream.close()
            del self._open[descriptor]
            return False
        # Whatever a command did to the file, what is lost is its own.
        with contextlib.suppress(OSError):
            if path.stat().st_size > LOG_BYTES:
                path.replace(path.with_suffix(".old"))
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
            file = os.open(path, flags, 0o600)
            try:
                os.write(file, piece)
            finally:
                os.close(file)
        return True

    def write_until_readable(self, descriptor: int) -> None:
        """Write down what comes until there is something to read from ``descriptor``."""
        while True:
            poller = select.poll()
            for each in (descriptor, *self._open):
                poller.register(each, select.POLLIN | select.POLLHUP)
            ready = [each for each, _ in poller.poll(BURY_MS)]
            if not ready:
                bury()
            for each in ready:
                if each in self._open:
                    self.take(each)
            if descriptor in ready:
                return
