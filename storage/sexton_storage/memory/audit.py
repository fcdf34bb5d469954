"""The audit log in memory."""

from collections.abc import Sequence
from uuid import UUID

from sexton_storage.globs import matches
from sexton_storage.memory.base import MemoryStore
from sexton_storage.records.audit import AuditEntry, AuditFilter, AuditHead, AuditLine


class MemoryAudit(MemoryStore):
    async def append(self, entry: AuditEntry) -> None:
        await self._round_trip()
        self._tables.audit.append(entry)

    async def list(
        self, log_id: UUID, wanted: AuditFilter, *, limit: int, before: int | None = None
    ) -> Sequence[AuditLine]:
        await self._round_trip()
        log = self._tables.audit.logs.get(log_id, ())
        found = [
            line
            for line, entry in log
            if _is_wanted(line, entry, wanted) and (before is None or line.seq < before)
        ]
        return found[::-1][:limit]

    async def read(self, log_id: UUID, *, limit: int, after: int = 0) -> Sequence[AuditLine]:
        await self._round_trip()
        return [line for line, _ in self._tables.audit.logs.get(log_id, ()) if line.seq > after][:limit]

    async def head(self, log_id: UUID) -> AuditHead:
        await self._round_trip()
        return self._tables.audit.head(log_id)


def _is_wanted(line: AuditLine, entry: AuditEntry, wanted: AuditFilter) -> bool:
    return (
        wanted.workspace_id in {None, entry.workspace_id}
        and wanted.actor in {None, entry.actor}
        and (wanted.action is None or matches(wanted.action, entry.action))
        and wanted.target in {None, line.target}
        and (wanted.since is None or line.at >= wanted.since)
        and (wanted.until is None or line.at < wanted.until)
    )
