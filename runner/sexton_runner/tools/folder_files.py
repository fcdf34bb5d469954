"""Reads and writes files of a run's folder by programs inside its sandbox.

Nobody outside opens a path that a run has made: what is read comes out of a pipe, what is written is copied
to its place from inside, as the run's own user.
"""

import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

import trio

from sexton_runner.run import Run
from sexton_runner.run_files.secret_search import SecretSearch
from sexton_runner.run_files.sent_files import Garbled, SentFile, SentFiles
from sexton_runner.sandbox import file_receiver
from sexton_runner.sandbox.workspace import Workspace, WorkspaceGone
from sexton_runner.sandbox.workspace_command import run_command
from sexton_runner.tools.tool_sandbox import ToolSandbox

MOVE_S: Final = 120.0
"""Into the sandbox, or out of it."""
READ_BYTES: Final = 1 << 18
ERROR_CHARS: Final = 256
RECEIVER: Final = Path(file_receiver.__file__).resolve()
READABLE: Final = 0o644
"""A run may have another user than its runner."""


class NotMoved(Exception):
    """A file was not read or written, and why."""


class FolderFiles:
    """The files of one run's folder."""

    def __init__(self, run: Run, tool_sandbox: ToolSandbox) -> None:
        self._run, self._tool_sandbox = run, tool_sandbox
        # What is being written has one name until it is whole.
        self._turn = trio.Lock()

    async def read(self, name: str, file: IO[bytes], max_bytes: int) -> tuple[str, int]:
        """Copy a file of the run to ``file``; give its SHA-256 in hex, and its length.

        Raises ``NotMoved``, and ``SandboxUnavailable`` when no sandbox can be made to stand.
        """
        workspace = await self._tool_sandbox.workspace()
        try:
            with trio.fail_after(MOVE_S):
                return await self._copy(workspace, name, file, max_bytes)
        except Garbled as fault:
            raise NotMoved(f"{name} could not be read: {fault}") from fault
        except WorkspaceGone as gone:
            raise NotMoved(ended(gone)) from gone
        except OSError as fault:
            raise NotMoved(f"the runner cannot hold {name}: {fault.strerror}") from fault
        except trio.TooSlowError as late:
            raise NotMoved(f"{name} was not read within {MOVE_S:.0f} s") from late

    async def _copy(
        self, workspace: Workspace, name: str, file: IO[bytes], max_bytes: int
    ) -> tuple[str, int]:
        words = ["/bin/sh", f"{workspace.inside.run_dir}/bin/send-files", name]
        digest, search = hashlib.sha256(), SecretSearch(self._run.redactor)
        async with workspace.work(words) as work:
            work.stderr.ignore()
            frames = SentFiles(work.stdout)
            sent = await frames.next()
            if not isinstance(sent, SentFile):
                raise NotMoved(f"{name}: {sent.why if sent else 'nothing was read'}")
            if sent.size > max_bytes:
                raise NotMoved(f"{name} is larger than {_size(max_bytes)}")
            left = sent.size
            while left:
                part = await frames.read(min(left, READ_BYTES))
                if search.finds(part):
                    raise NotMoved(
                        f"{name} holds a secret that this run was lent; "
                        "name it by its place in headers or body"
                    )
                digest.update(part)
                file.write(part)
                left -= len(part)
            if digest.hexdigest() != sent.sha256:
                raise NotMoved(f"{name} was changed while it was read; try again")
            await frames.next()
            await work.ended()
        file.flush()
        return sent.sha256, sent.size

    async def workspace(self) -> Workspace:
        """Give the sandbox that stands; raises ``SandboxUnavailable`` when none can be made to."""
        return await self._tool_sandbox.workspace()

    async def place(self, workspace: Workspace, source: Path, name: str) -> None:
        """Have a program inside copy ``source``, a ``scratch`` file, to its place. Raises ``NotMoved``."""
        inside = workspace.inside.run_dir
        async with self._turn:
            try:
                (workspace.run_dir / "bin" / RECEIVER.name).write_bytes(RECEIVER.read_bytes())
                program = f"{inside}/bin/{RECEIVER.name}"
                words = self._run.sandbox.interpreter("python", program, isolated=True)
                done = await run_command(
                    workspace,
                    [*words, f"{inside}/{source.name}", name],
                    redactor=self._run.redactor,
                    timeout_s=MOVE_S,
                )
            except WorkspaceGone as gone:
                raise NotMoved(ended(gone)) from gone
        if not done.ok:
            raise NotMoved(done.err.text().strip()[:ERROR_CHARS] or done.told())

    async def write(self, name: str, content: bytes) -> None:
        """Write a small file. Raises ``NotMoved`` and ``SandboxUnavailable``."""
        workspace = await self.workspace()
        try:
            with scratch(workspace.run_dir) as (file, source):
                file.write(content)
                file.flush()
                await self.place(workspace, source, name)
        except OSError as fault:
            raise NotMoved(f"the runner cannot hold it: {fault.strerror}") from fault


def ended(gone: WorkspaceGone) -> str:
    """Say what became of a sandbox, and what the next call finds."""
    return f"the sandbox was ended ({gone}); the next call finds a new one, with an empty folder"


def _size(count: int) -> str:
    """Spell a bound.

    >>> _size(2 << 20), _size(3_500_000)
    ('2 MiB', '3500000 bytes')
    """
    return f"{count >> 20} MiB" if count % (1 << 20) == 0 else f"{count} bytes"


@contextmanager
def nameless(folder: Path) -> Iterator[IO[bytes]]:
    """Open a new file that nobody else can open, and that is gone with this process."""
    with tempfile.TemporaryFile(dir=folder) as file:
        yield file


@contextmanager
def scratch(folder: Path) -> Iterator[tuple[IO[bytes], Path]]:
    """Open a new file in what a sandbox is shown, and take it away in the end."""
    held, name = tempfile.mkstemp(prefix="answer-", dir=folder)
    try:
        with os.fdopen(held, "wb") as file:
            os.fchmod(held, READABLE)
            yield file, Path(name)
    finally:
        Path(name).unlink(missing_ok=True)
