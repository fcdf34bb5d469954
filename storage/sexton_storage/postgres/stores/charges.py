"""Charges in PostgreSQL."""

from collections.abc import Mapping, Sequence
from typing import Final
from uuid import UUID

from sexton_storage.paging import Page
from sexton_storage.postgres.sql.rows import Rows
from sexton_storage.postgres.stores.base import Conditions, PostgresStore
from sexton_storage.records.charges import Charge, ChargeTotal, TotalsBy

CHARGES: Final = Rows(Charge)
_COUNTED = "SELECT coalesce((SELECT events FROM event_counts WHERE tenant_id = $1 AND day = $2), 0)"

FIGURES: Final = 5
"""Columns that are sums, behind the key."""
_KEYS: Final = {
    TotalsBy.AGENT: "zombie_id::text",
    TotalsBy.MODEL: "coalesce(model, '')",
    TotalsBy.DAY: "to_char(to_timestamp(recorded_at / 1000) AT TIME ZONE 'UTC', 'YYYY-MM-DD')",
}
_TOTALS: Final = """
SELECT {key} COLLATE "C" AS key, count(*), sum(credit_deducted_nanos) AS charged_nanos,
       sum(token_count_input), sum(token_count_output), sum(wall_ms)
  FROM charges WHERE tenant_id = $1 AND recorded_at >= $2 AND recorded_at < $3 GROUP BY 1
"""


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

    async def totals(
        self, tenant_id: UUID, by: TotalsBy, *, since: int, until: int, limit: int
    ) -> Sequence[ChargeTotal]:
        order = "key DESC" if by is TotalsBy.DAY else "charged_nanos DESC, key"
        query = f"{_TOTALS.format(key=_KEYS[by])} ORDER BY {order} LIMIT $4"
        rows = await self._rows(query, tenant_id, since, until, limit)
        named = {} if by is not TotalsBy.AGENT else await self._names([UUID(row["key"]) for row in rows])
        return [
            ChargeTotal(row["key"], named.get(row["key"]), *(int(row[at]) for at in range(1, FIGURES + 1)))
            for row in rows
        ]

    async def _names(self, ids: Sequence[UUID]) -> Mapping[str, str]:
        rows = await self._rows("SELECT id::text, name FROM zombies WHERE id = ANY($1::uuid[])", list(ids))
        return {row[0]: row[1] for row in rows}

    async def events_of_day(self, tenant_id: UUID, day: int) -> int:
        counted: int = await self._value(_COUNTED, tenant_id, day)
        return counted
