"""Metering rows, read from PostgreSQL."""

from collections.abc import Sequence
from uuid import UUID

from sexton_storage.postgres.sql.schema import METERING
from sexton_storage.postgres.stores.base import PostgresStore
from sexton_storage.records.metering import MeteringPeriod


class PostgresMetering(PostgresStore):
    async def list(self, tenant_id: UUID, event_id: UUID) -> Sequence[MeteringPeriod]:
        query = (
            f"SELECT {METERING.columns()} FROM metering WHERE event_id = $2 AND tenant_id = $1"
            " ORDER BY attempt, slice_seq"
        )
        return METERING.many(await self._rows(query, tenant_id, event_id))
