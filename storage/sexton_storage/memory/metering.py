"""Metering rows in memory."""

from collections.abc import Iterable, Sequence
from itertools import groupby
from uuid import UUID

from msgspec.structs import replace

from sexton_storage.memory.base import MemoryStore
from sexton_storage.records.metering import Compacted, MeteringPeriod
from sexton_storage.rules import LIVE_LEASE

_ADDED = (
    *("d_input_tokens", "d_cached_tokens", "d_output_tokens", "d_cache_write_tokens", "run_ms"),
    *("run_fee_nanos", "token_cost_nanos", "charged_nanos"),
)


class MemoryMetering(MemoryStore):
    async def list(self, tenant_id: UUID, event_id: UUID) -> Sequence[MeteringPeriod]:
        await self._round_trip()
        if self._tables.metered_tenants.get(event_id) != tenant_id:
            return ()
        return [row for _, row in sorted(self._tables.metering[event_id].items())]

    async def make_ready(self, days: int) -> int:  # noqa: ARG002 - nothing here is in partitions
        await self._round_trip()
        return 0

    async def compact(self, *, keep_ms: int, limit: int) -> Compacted | None:
        await self._round_trip()
        before = self._tables.now() - keep_ms
        live = {lease.event_id for lease in self._tables.leases.values() if lease.status in LIVE_LEASE}
        due = [
            event_id
            for event_id, rows in self._tables.metering.items()
            if event_id not in live
            and len(rows) > len({attempt for attempt, _ in rows})
            and max(row.created_at for row in rows.values()) < before
        ][:limit]
        if not due:
            return None
        slices = runs = 0
        for event_id in due:
            rows = self._tables.metering[event_id]
            attempts = [list(keys) for _, keys in groupby(sorted(rows), key=lambda key: key[0])]
            kept = {keys[-1]: _sum(rows[key] for key in keys) for keys in attempts}
            slices, runs = slices + len(rows), runs + len(kept)
            self._tables.metering[event_id] = kept
        return Compacted("metering", slices, runs, more=len(due) == limit)


def _sum(rows: Iterable[MeteringPeriod]) -> MeteringPeriod:
    """Give the last of an attempt's slices with the sums of all."""
    slices = list(rows)
    sums = {name: sum(getattr(one, name) for one in slices) for name in _ADDED}
    return replace(slices[-1], created_at=max(one.created_at for one in slices), **sums)
