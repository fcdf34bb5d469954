"""Restores the folder of a run from what the agent's run before left, and keeps what it has in the end."""

import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

import trio
import zstandard

from sexton_runner.background_tasks import run_in_background
from sexton_runner.errors import Refused, SandboxUnavailable, TokenRejected
from sexton_runner.reports import STALE
from sexton_runner.retries import until_available
from sexton_runner.run import Ending, Outcome, Run
from sexton_runner.run_files.secret_search import SecretSearch
from sexton_runner.sandbox import folder_archive
from sexton_runner.sandbox.workspace import Work, Workspace, WorkspaceGone
from sexton_runner.sandbox.workspace_command import run_command
from sexton_runner.wire import Snapshot

KEEP: Final = "keep"
LOST: Final = "workspace_lost"
NOT_KEPT: Final = "workspace_refused"
LOST_CODE: Final = "UZ-FILE-011"
ARCHIVE: Final = Path(folder_archive.__file__).resolve()
TAR: Final = "workspace.tar"
HEADS_BYTES: Final = 1 << 27
"""What a tar has beside its files: the heads of as many entries as there may be."""
MAX_WINDOW: Final = 1 << 23
"""The window of the compression, in bytes; ours needs less, and memory is not another's to choose."""
PATIENCE_S: Final = 300.0
READ_BYTES: Final = 1 << 20
ERROR_CHARS: Final = 512

T = TypeVar("T")


class WorkspaceLost(SandboxUnavailable):
    """What the run was to start from is not kept any more, or is damaged."""


class NotKept(Exception):
    """The workspace cannot be kept, and why."""


class KeptWorkspace:
    """The folder of one run whose agent keeps it."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._lease = run.live.lease
        self._max_bytes = run.sandbox.limits.disk_bytes

    @property
    def is_wanted(self) -> bool:
        """Tell whether the agent's files say so."""
        return self._lease.workspace == KEEP

    async def restore(self, workspace: Workspace, run_dir: Path) -> None:
        """Fill the folder of a sandbox that was just opened.

        Raises ``WorkspaceLost`` and ``WorkspaceGone``.
        """
        if not self.is_wanted:
            return
        (run_dir / "bin" / ARCHIVE.name).write_bytes(ARCHIVE.read_bytes())
        try:
            snapshot = await self._patiently(lambda: self._run.plane.start_workspace(self._lease))
            if snapshot is not None:
                await self._unpack(workspace, run_dir, snapshot)
        except TokenRejected:
            raise
        except Refused as refusal:
            raise WorkspaceLost(f"{refusal.code}: {refusal.detail}") from refusal

    async def keep(self, workspace: Workspace) -> str | None:
        """Keep what the folder holds now; why it could not be, in words for the report."""
        if not self.is_wanted:
            return None
        file = self._run.folder / "snapshot.zst"
        try:
            with trio.fail_after(PATIENCE_S):
                packed = await self._pack(workspace, file)
                await self._send(file, packed)
        except TokenRejected:
            raise
        except Refused as refusal:
            # Where the lease is lost there is nobody to tell.
            return None if refusal.code in STALE else f"{refusal.code}: {refusal.detail}"
        except NotKept as fault:
            return str(fault)
        except trio.TooSlowError:
            return f"it took longer than {PATIENCE_S:.0f} s"
        except WorkspaceGone as fault:
            return f"the sandbox is gone: {fault}"
        finally:
            file.unlink(missing_ok=True)
        return None

    async def _unpack(self, workspace: Workspace, run_dir: Path, snapshot: Snapshot) -> None:
        file, tar = self._run.folder / "start.zst", run_dir / TAR
        try:
            await self._fetch(snapshot, file)
            await trio.to_thread.run_sync(decompress, file, tar, self._max_bytes + HEADS_BYTES)
            words = [f"{workspace.inside.run_dir}/{TAR}", workspace.folder, str(self._max_bytes)]
            done = await run_command(
                workspace,
                self._words(workspace, "unpack", *words),
                redactor=self._run.redactor,
                timeout_s=PATIENCE_S,
            )
            if not done.ok:
                why = done.err.text().strip()[:ERROR_CHARS] or done.told()
                raise WorkspaceLost(f"the snapshot is damaged: {why}")
        finally:
            file.unlink(missing_ok=True)
            tar.unlink(missing_ok=True)

    async def _fetch(self, snapshot: Snapshot, file: Path) -> None:
        digest, offset = hashlib.sha256(), 0
        with file.open("wb") as out:
            while offset < snapshot.size:
                part = await self._patiently(partial(self._run.plane.read_workspace, self._lease, offset))
                if not part:
                    break
                digest.update(part)
                out.write(part)
                offset += len(part)
        if offset != snapshot.size or digest.hexdigest() != snapshot.sha256:
            raise WorkspaceLost("the snapshot is damaged: its bytes have another SHA-256")

    async def _pack(self, workspace: Workspace, file: Path) -> "Packed":
        search = SecretSearch(self._run.redactor)
        words = self._words(workspace, "pack", workspace.folder, str(self._max_bytes))
        with file.open("wb") as out:
            writer = _Writer(out.write)
            said = bytearray()
            async with workspace.work(words) as work, run_in_background(partial(_hear, work, said)):
                while piece := await work.stdout.receive_some(READ_BYTES):
                    if search.finds(piece):
                        raise NotKept("it holds a secret that this run was lent")
                    writer.feed(piece)
                status = await work.wait()
            if status != 0:
                why = said.decode("utf-8", "replace").strip()
                raise NotKept(self._run.redactor.text(why[:ERROR_CHARS]) or f"exit status {status}")
            return writer.end()

    async def _send(self, file: Path, packed: "Packed") -> None:
        plane, lease = self._run.plane, self._lease
        begin = partial(plane.begin_upload, lease, sha256=packed.sha256, size=packed.size)
        upload = await self._patiently(begin)
        with file.open("rb") as content:
            while not upload.complete:
                content.seek(upload.received)
                part = content.read(upload.part_bytes)
                send = partial(plane.send_part, lease, upload.upload_id, upload.received, part)
                upload = await self._patiently(send)
        await self._patiently(partial(plane.keep_workspace, lease, upload.upload_id))

    def _words(self, workspace: Workspace, *words: str) -> list[str]:
        program = f"{workspace.inside.run_dir}/bin/{ARCHIVE.name}"
        return [*self._run.sandbox.interpreter("python", program), *words]

    async def _patiently(self, ask: Callable[[], Awaitable[T]]) -> T:
        return await until_available(ask, rng=self._run.rng, timing=self._run.timing)


@dataclass(frozen=True, slots=True)
class Packed:
    """A snapshot that was written."""

    sha256: str
    size: int


class _Writer:
    """Compresses a tar and reckons the hash of what comes of it."""

    def __init__(self, write: Callable[[bytes], object]) -> None:
        self._write = write
        self._digest, self._size = hashlib.sha256(), 0
        self._compressor = zstandard.ZstdCompressor(level=3).compressobj()

    def feed(self, piece: bytes) -> None:
        self._put(self._compressor.compress(piece))

    def end(self) -> Packed:
        self._put(self._compressor.flush())
        return Packed(self._digest.hexdigest(), self._size)

    def _put(self, piece: bytes) -> None:
        self._digest.update(piece)
        self._size += len(piece)
        self._write(piece)


async def _hear(work: Work, said: bytearray) -> None:
    """Keep the beginning of what a command complains of."""
    while piece := await work.stderr.receive_some():
        said.extend(piece[: ERROR_CHARS - len(said)])


def decompress(file: Path, tar: Path, max_bytes: int) -> None:
    """Write the tar of a snapshot, if it has no more than ``max_bytes``. Raises ``WorkspaceLost``."""
    left = max_bytes
    reader = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW)
    try:
        with file.open("rb") as content, tar.open("wb") as out, reader.stream_reader(content) as plain:
            while piece := plain.read(READ_BYTES):
                left -= len(piece)
                if left < 0:
                    raise WorkspaceLost("the snapshot is larger than a workspace may be")
                out.write(piece)
    except zstandard.ZstdError as fault:
        raise WorkspaceLost(f"the snapshot is damaged: {fault}") from fault


def with_workspace(ending: Ending, why: str | None, run: Run) -> Ending:
    """Give the ending of a run after its workspace was to be kept."""
    if why is None:
        return ending
    said = f"{ending.response_text.rstrip()}\n[the workspace is not kept: {run.redactor.text(why)}]".lstrip()
    return replace(
        ending, outcome=Outcome.AGENT_ERROR, failure_reason=NOT_KEPT, response_text=said, checkpoint=None
    )
