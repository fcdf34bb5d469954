"""Moves the files that requests send and save between a run's sandbox and the runner."""

from collections.abc import AsyncIterator, Mapping
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from typing import IO, Any, Final

import trio

from sexton_runner.run import Run
from sexton_runner.run_files.file_names import fault_of_name
from sexton_runner.tools.answer_file import AnswerFile
from sexton_runner.tools.fetch import FileBody, NotFetched, Wanted
from sexton_runner.tools.folder_files import FolderFiles, NotMoved, nameless, scratch

MAX_FILE_BYTES: Final = 256 << 20


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

    def __init__(self, run: Run, folder_files: FolderFiles) -> None:
        self._run, self._folder_files = run, folder_files
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
            with ExitStack() as stack:
                if body_from is not None:
                    files.body = await self._taken(body_from, stack.enter_context(nameless(self._run.folder)))
                if save_to is None:
                    yield files
                    return
                workspace = await self._folder_files.workspace()
                file, source = stack.enter_context(scratch(workspace.run_dir))
                files.saving = AnswerFile(file, self._run.redactor, self.max_bytes)
                yield files
                if files.saving.is_whole:
                    try:
                        await self._folder_files.place(workspace, source, save_to)
                    except NotMoved as fault:
                        told = f"the server answered, but nothing was saved to {save_to}: {fault}"
                        raise NotFetched(told) from fault

    async def _taken(self, name: str, file: IO[bytes]) -> Body:
        try:
            sha256, size = await self._folder_files.read(name, file, self.max_bytes)
        except NotMoved as fault:
            raise NotFetched(f"body_from: {fault}") from fault
        return Body(FileBody(file.fileno(), size), sha256)
