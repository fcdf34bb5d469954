"""Moves the files that requests send and save between a run's sandbox and the runner."""

import hashlib
import os
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any, Final

import trio

from sexton_runner.run import Run
from sexton_runner.run_files.file_names import fault_of_name
from sexton_runner.run_files.secret_search import SecretSearch
from sexton_runner.run_files.sent_files import Garbled, SentFile, SentFiles
from sexton_runner.sandbox import file_receiver
from sexton_runner.sandbox.workspace import Workspace, WorkspaceGone
from sexton_runner.sandbox.workspace_command import run_command
from sexton_runner.tools.answer_file import AnswerFile
from sexton_runner.tools.fetch import FileBody, NotFetched, Wanted
from sexton_runner.tools.tool_sandbox import ToolSandbox

MAX_FILE_BYTES: Final = 256 << 20
MOVE_S: Final = 120.0
"""Into the sandbox, or out of it."""
READ_BYTES: Final = 1 << 18
ERROR_CHARS: Final = 256
RECEIVER: Final = Path(file_receiver.__file__).resolve()
READABLE: Final = 0o644
"""A run may have another user than its runner."""


@dataclass(frozen=True, slots=True)
class Body:
    """A file that was read out of the sandbox."""

    content: FileBody
    sha256: str


class FilesOfRequest:
    """What one request sends and saves; of either there may be none."""

    def __init__(self, body_from: str | None, save_to: str | None) -> None:
        self.body_from, self.save_to = body_from, save_to
        self.body: Body | None = None
        self.saving: AnswerFile | None = None

    def added_to(self, wanted: Wanted) -> Wanted:
        """Give the request with its files."""
        body = wanted.body if self.body is None else self.body.content
        return replace(wanted, body=body, sink=self.saving)

    def sent(self) -> Mapping[str, Any]:
        """Give what the evidence says of the file that was sent."""
        if self.body is None:
            return {}
        size = self.body.content.size
        return {"body_from": self.body_from, "body_bytes": size, "body_sha256": self.body.sha256}


class RequestFiles:
    """The files of one run's requests: one request with files at a time, so the host's disk holds no more."""

    def __init__(self, run: Run, tool_sandbox: ToolSandbox) -> None:
        self._run, self._tool_sandbox = run, tool_sandbox
        self._turn = trio.Lock()

    @property
    def max_bytes(self) -> int:
        """Give the length of the largest file."""
        return min(MAX_FILE_BYTES, self._run.sandbox.limits.disk_bytes)

    @asynccontextmanager
    async def opened(self, body_from: str | None, save_to: str | None) -> AsyncIterator[FilesOfRequest]:
        """Hold what a request sends and saves. What it saves appears in the sandbox on the way out.

        Raises ``NotFetched``, and ``SandboxUnavailable`` when no sandbox can be made to stand.
        """
        files = FilesOfRequest(body_from, save_to)
        if body_from is None and save_to is None:
            yield files
            return
        for argument, name in (("body_from", body_from), ("save_to", save_to)):
            if name is not None and (fault := fault_of_name(name)):
                raise NotFetched(f"{argument}: {fault}")
        async with self._turn:
            workspace = await self._tool_sandbox.workspace()
            with ExitStack() as stack:
                if body_from is not None:
                    held = stack.enter_context(_nameless(self._run.folder))
                    files.body = await self._taken(workspace, body_from, held)
                if save_to is None:
                    yield files
                    return
                file, source = stack.enter_context(_scratch(workspace.run_dir))
                files.saving = AnswerFile(file, self._run.redactor, self.max_bytes)
                yield files
                if files.saving.is_whole:
                    await self._place(workspace, source, save_to)

    async def _taken(self, workspace: Workspace, name: str, file: IO[bytes]) -> Body:
        """Read a file out of the sandbox, as its sender gives it."""
        try:
            with trio.fail_after(MOVE_S):
                sha256, size = await self._copy(workspace, name, file)
        except Garbled as fault:
            raise NotFetched(f"body_from: {name} could not be read: {fault}") from fault
        except WorkspaceGone as gone:
            raise NotFetched(_ended(gone)) from gone
        except OSError as fault:
            raise NotFetched(f"body_from: the runner cannot hold {name}: {fault.strerror}") from fault
        except trio.TooSlowError as late:
            raise NotFetched(f"body_from: {name} was not read within {MOVE_S:.0f} s") from late
        return Body(FileBody(file.fileno(), size), sha256)

    async def _copy(self, workspace: Workspace, name: str, file: IO[bytes]) -> tuple[str, int]:
        words = ["/bin/sh", f"{workspace.inside.run_dir}/bin/send-files", name]
        digest, search = hashlib.sha256(), SecretSearch(self._run.redactor)
        async with workspace.work(words) as work:
            work.stderr.ignore()
            frames = SentFiles(work.stdout)
            sent = await frames.next()
            if not isinstance(sent, SentFile):
                raise NotFetched(f"body_from: {name}: {sent.why if sent else 'nothing was read'}")
            if sent.size > self.max_bytes:
                raise NotFetched(f"body_from: {name} is larger than {self.max_bytes >> 20} MiB")
            left = sent.size
            while left:
                part = await frames.read(min(left, READ_BYTES))
                if search.finds(part):
                    raise NotFetched(
                        f"body_from: {name} holds a secret that this run was lent; "
                        "name it by its place in headers or body"
                    )
                digest.update(part)
                file.write(part)
                left -= len(part)
            if digest.hexdigest() != sent.sha256:
                raise NotFetched(f"body_from: {name} was changed while it was read; try again")
            await frames.next()
            await work.ended()
        file.flush()
        return sent.sha256, sent.size

    async def _place(self, workspace: Workspace, source: Path, name: str) -> None:
        """Have a program inside copy what was saved to its place."""
        inside = workspace.inside.run_dir
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
            raise NotFetched(f"the server answered, but nothing was saved: {_ended(gone)}") from gone
        if not done.ok:
            why = done.err.text().strip()[:ERROR_CHARS] or done.told()
            raise NotFetched(f"the server answered, but nothing was saved to {name}: {why}")


def _ended(gone: WorkspaceGone) -> str:
    return f"the sandbox was ended ({gone}); the next call finds a new one, with an empty folder"


@contextmanager
def _nameless(folder: Path) -> Iterator[IO[bytes]]:
    """Open a new file that nobody else can open, and that is gone with this process."""
    with tempfile.TemporaryFile(dir=folder) as file:
        yield file


@contextmanager
def _scratch(folder: Path) -> Iterator[tuple[IO[bytes], Path]]:
    """Open a new file in what a sandbox is shown, and take it away in the end."""
    held, name = tempfile.mkstemp(prefix="answer-", dir=folder)
    try:
        with os.fdopen(held, "wb") as file:
            os.fchmod(held, READABLE)
            yield file, Path(name)
    finally:
        Path(name).unlink(missing_ok=True)
