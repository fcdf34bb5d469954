"""The pipe through which a sandbox sends the files of its run, and what is put inside for that."""

import os
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import trio

from sexton_runner.sandbox import file_sender
from sexton_runner.sandbox.jobs import Sandbox

PIPE: Final = "files"
SENDER: Final = Path(file_sender.__file__).resolve()


def put_sender(sandbox: Sandbox, run_dir: Path) -> None:
    """Put what sends the files of a run into the folder that is seen inside."""
    folder = run_dir / "bin"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / SENDER.name).write_bytes(SENDER.read_bytes())
    walls = "walled" if sandbox.tier.walls.own_root else "open"
    python = shlex.join(sandbox.interpreter("python", "")[:-1])
    words = f'exec {python} "$SEXTON_RUN/bin/{SENDER.name}" {sandbox.limits.disk_bytes} {walls} "$@"\n'
    (folder / "send-files").write_text(words, encoding="utf-8")


class FilesPipe:
    """The runner's end. It is opened for both ways, so that nobody waits for the other to open."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._over = False
        self._waiting = trio.CancelScope()

    async def receive_some(self, max_bytes: int | None = None, /) -> bytes:
        """Give the next piece; empty when nothing is left and ``end`` was told."""
        while True:
            await trio.lowlevel.checkpoint()
            try:
                return os.read(self._descriptor, max_bytes or 65_536)
            except BlockingIOError:
                if self._over:
                    return b""
            with trio.CancelScope() as self._waiting:
                await trio.lowlevel.wait_readable(self._descriptor)

    def end(self) -> None:
        """Take note that nobody is there any more who could send."""
        self._over = True
        self._waiting.cancel()


@contextmanager
def open_files_pipe(run_dir: Path) -> Iterator[FilesPipe]:
    """Make the pipe in the folder that is seen inside."""
    os.mkfifo(run_dir / PIPE, 0o600)
    descriptor = os.open(run_dir / PIPE, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        yield FilesPipe(descriptor)
    finally:
        os.close(descriptor)
