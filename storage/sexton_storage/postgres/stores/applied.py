"""What folders have applied to workspaces, in PostgreSQL."""

from uuid import UUID

from sexton_storage.postgres.sql.rows import Rows
from sexton_storage.postgres.stores.base import PostgresStore
from sexton_storage.records.applied import Applied

APPLIED = Rows(Applied)
_LOAD = f"SELECT {APPLIED.columns()} FROM applied WHERE workspace_id = $1"
_FIRST = f"{APPLIED.insert('applied')} ON CONFLICT (workspace_id) DO NOTHING RETURNING revision"
_NEXT = """
UPDATE applied SET revision = $2, applying = $3, holder = $4, items = $5, updated_at = $6, updated_by = $7
 WHERE workspace_id = $1 AND revision = $2 - 1
RETURNING revision
"""


class PostgresApplied(PostgresStore):
    async def load(self, workspace_id: UUID) -> Applied | None:
        return APPLIED.maybe(await self._row(_LOAD, workspace_id))

    async def save(self, applied: Applied) -> bool:
        query = _FIRST if applied.revision == 1 else _NEXT
        values = APPLIED.values(applied)
        return await self._database.change(lambda c: c.fetchval(query, *values)) is not None
