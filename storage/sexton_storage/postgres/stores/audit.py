"""The audit log in PostgreSQL; what writes it are the triggers of the tables, and the journal."""

from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

from sexton_storage.decisions.audit import GENESIS
from sexton_storage.globs import like_pattern
from sexton_storage.postgres.connections.audit_entries import APPEND, entry_json
from sexton_storage.postgres.sql.rows import Rows
from sexton_storage.postgres.stores.base import Conditions, PostgresStore
from sexton_storage.records.audit import AuditEntry, AuditFilter, AuditHead, AuditLine

LINES: Final = Rows(AuditLine)
_SELECT: Final = f"SELECT {LINES.columns()} FROM audit_log"


class PostgresAudit(PostgresStore):
    async def append(self, entry: AuditEntry) -> None:
        await self._database.change(lambda c: c.execute(APPEND, entry_json(entry)))

    async def list(
        self, log_id: UUID, wanted: AuditFilter, *, limit: int, before: int | None = None
    ) -> Sequence[AuditLine]:
        where = Conditions("log_id = $1", log_id)
        clauses: Sequence[tuple[str, Any]] = (
            ("workspace_id = {}", wanted.workspace_id),
            ("actor = {}", wanted.actor),
            ("action LIKE {}", None if wanted.action is None else like_pattern(wanted.action)),
            ("target = {}", wanted.target),
            ("at >= {}", wanted.since),
            ("at < {}", wanted.until),
            ("seq < {}", before),
        )
        for clause, value in clauses:
            if value is not None:
                where.add(clause, value)
        query = f"{_SELECT} WHERE {where} ORDER BY seq DESC LIMIT {int(limit)}"
        return LINES.many(await self._rows(query, *where.args))

    async def read(self, log_id: UUID, *, limit: int, after: int = 0) -> Sequence[AuditLine]:
        query = f"{_SELECT} WHERE log_id = $1 AND seq > $2 ORDER BY seq LIMIT {int(limit)}"
        return LINES.many(await self._rows(query, log_id, after))

    async def head(self, log_id: UUID) -> AuditHead:
        row = await self._row("SELECT seq, hash FROM audit_heads WHERE log_id = $1", log_id)
        return GENESIS if row is None else AuditHead(row["seq"], row["hash"])
