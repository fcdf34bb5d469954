"""Charges in PostgreSQL."""

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from sexton_storage.paging import Page
from sexton_storage.postgres.sql.rows import Rows
from sexton_storage.postgres.stores.base import Conditions, PostgresStore
from sexton_storage.records.charges import Charge

CHARGES: Final = Rows(Charge)
_COUNTED = "SELECT coalesce((SELECT events FROM event_counts WHERE tenant_id = $1 AND day = $2), 0)"


class PostgresCharges(PostgresStore):
    async def list(self, tenant_id: UUID, *, limit: int, before: Page | None = None) -> Sequence[Charge]:
        where = Conditions("tenant_id = $1", tenant_id)
        if before is not None:
            where.add("(recorded_at, id) < ({}, {})", before.created_at, before.id)
        query = (
            f"SELECT {CHARGES.columns()} FROM charges WHERE {where}"
            f" ORDER BY recorded_at DESC, id DESC LIMIT {int(limit)}"
        )
        return CHARGES.many(await self._rows(query, *where.args))

    async def events_of_day(self, tenant_id: UUID, day: int) -> int:
        counted: int = await self._value(_COUNTED, tenant_id, day)
        return counted
