"""Sends the files of a run to the control plane, as they come out of its sandbox."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeVar

from sexton_runner.errors import Refused, TokenRejected
from sexton_runner.reports import STALE
from sexton_runner.retries import until_available
from sexton_runner.run import Ending, Outcome, Run
from sexton_runner.run_files.file_names import media_type_of
from sexton_runner.run_files.secret_search import SecretSearch
from sexton_runner.run_files.sent_files import Garbled, LeftOut, SentFile, SentFiles, Source
from sexton_runner.wire import Upload

FAILURE: Final = "files_refused"
"""Why a run failed that did well, but left files that could not be kept."""
SHOWN: Final = 100
"""Files, and again notes, that a report names."""

T = TypeVar("T")


@dataclass(slots=True)
class Left:
    """What became of the files of a run."""

    kept: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


class _Fenced(Exception):
    """The lease is another's: nothing more is sent."""


async def send_files(run: Run, source: Source) -> Left:
    """Send what comes until its end; never raises for what a run does, only ``TokenRejected``."""
    left, files = Left(), SentFiles(source)
    if not await files.begun():
        return left
    try:
        while (sent := await files.next()) is not None:
            if isinstance(sent, LeftOut):
                left.notes.append(f"{sent.name}: {sent.why}" if sent.name else sent.why)
            else:
                await _Sending(run, files, sent).carry_out(left)
    except Garbled as fault:
        left.notes.append(f"the files could not be read: {fault}")
    except _Fenced:
        left.notes.append("the lease was lost")
    return left


def with_files(ending: Ending, left: Left, run: Run) -> Ending:
    """Give the ending of a run after its files were sent: evidence names them, the text what is missing."""
    if left.kept:
        more = {"files": left.kept[:SHOWN], "file_count": len(left.kept)}
        ending = replace(ending, evidence={**(ending.evidence or {}), **run.redactor.json(more)})
    if not left.notes:
        return ending
    shown = "\n".join(f"[not kept: {run.redactor.text(note)}]" for note in left.notes[:SHOWN])
    text = f"{ending.response_text.rstrip()}\n{shown}".lstrip()
    if ending.outcome is not Outcome.PROCESSED:
        return replace(ending, response_text=text)
    return replace(
        ending, outcome=Outcome.AGENT_ERROR, failure_reason=FAILURE, response_text=text, checkpoint=None
    )


class _Sending:
    """One file, from its head to its name."""

    def __init__(self, run: Run, files: SentFiles, sent: SentFile) -> None:
        self._run, self._files, self._sent = run, files, sent
        self._lease = run.live.lease
        self._unread = sent.size

    async def carry_out(self, left: Left) -> None:
        """Send it and note what became of it; whatever that is, it is read to its end."""
        name = self._sent.name
        try:
            artefact = await self._send()
        except TokenRejected:
            raise
        except Refused as refusal:
            if refusal.code in STALE:
                raise _Fenced from refusal
            left.notes.append(f"{name}: {refusal.code}: {refusal.detail}")
        except ValueError as fault:
            left.notes.append(f"{name}: {fault}")
        else:
            facts = {"name": name, "size": self._sent.size, "sha256": self._sent.sha256}
            left.kept.append({**facts, "artefact_id": artefact})
        while self._unread:
            await self._read(1 << 20)

    async def _send(self) -> str:
        sent, plane, lease = self._sent, self._run.plane, self._lease
        upload = await self._patiently(lambda: plane.begin_upload(lease, sha256=sent.sha256, size=sent.size))
        search = SecretSearch(self._run.redactor)
        offset = 0
        while self._unread:
            part = await self._read(upload.part_bytes)
            if search.finds(part):
                raise ValueError("it holds a secret that this run was lent")
            if offset + len(part) > upload.received:
                upload = await self._part(upload, offset, part)
            offset += len(part)
        kind = media_type_of(sent.name)
        upload_id = upload.upload_id
        kept = await self._patiently(lambda: plane.keep_artefact(lease, upload_id, sent.name, kind))
        return kept.artefact_id

    async def _part(self, upload: Upload, offset: int, part: bytes) -> Upload:
        plane, lease = self._run.plane, self._lease
        return await self._patiently(lambda: plane.send_part(lease, upload.upload_id, offset, part))

    async def _read(self, most: int) -> bytes:
        part = await self._files.read(min(most, self._unread))
        self._unread -= len(part)
        return part

    async def _patiently(self, ask: Callable[[], Awaitable[T]]) -> T:
        return await until_available(ask, rng=self._run.rng, timing=self._run.timing)
