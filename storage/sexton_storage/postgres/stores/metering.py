"""Metering rows in PostgreSQL: read, and compacted by the functions of the schema."""

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from sexton_storage.errors import SumsDiffer
from sexton_storage.postgres.connections.connection import Connection
from sexton_storage.postgres.connections.database import LONG_S, Names
from sexton_storage.postgres.sql.schema import METERING
from sexton_storage.postgres.stores.base import PostgresStore
from sexton_storage.records.metering import Compacted, MeteringPeriod

_NAMES: Final[Names] = {"compaction_keeps_sums": SumsDiffer}
# A day may have millions of slices. Nobody waits meanwhile: the lock that others need is taken at the end.
_PATIENTLY: Final = f"SET LOCAL statement_timeout = {int(LONG_S * 1000)}"
_LONGER: Final = (
    "SELECT set_config(name, $1, true) FROM pg_settings WHERE name = 'transaction_timeout'"  # From 17 on.
)


class PostgresMetering(PostgresStore):
    async def list(self, tenant_id: UUID, event_id: UUID) -> Sequence[MeteringPeriod]:
        query = (
            f"SELECT {METERING.columns()} FROM metering WHERE event_id = $2 AND tenant_id = $1"
            " ORDER BY attempt, slice_seq"
        )
        return METERING.many(await self._rows(query, tenant_id, event_id))

    async def make_ready(self, days: int) -> int:
        # What is there already is left alone: no mark is needed.
        made: int = await self._value("SELECT sexton_slices_ahead($1)", days)
        return made

    async def compact(self, *, keep_ms: int, limit: int) -> Compacted | None:
        async def work(connection: Connection) -> Compacted | None:
            await connection.execute(_PATIENTLY)
            await connection.execute(_LONGER, str(int(LONG_S * 1000)))
            row = await connection.fetchrow("SELECT * FROM sexton_compact_slices($1, $2)", keep_ms, limit)
            return None if row is None or row["what"] is None else Compacted(*row)

        return await self._database.change(work, _NAMES, long=True)
