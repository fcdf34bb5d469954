"""Metering rows: what each slice of a lease was charged."""

from collections.abc import Sequence
from typing import Protocol
from uuid import UUID

import msgspec

from sexton_storage.records.leases import ModelShare


class Slice(msgspec.Struct, frozen=True, gc=False):
    """One metering row as it is asked for; what is charged is clamped at the balance when it is saved."""

    seq: int
    d_input_tokens: int
    d_cached_tokens: int
    d_output_tokens: int
    run_ms: int
    run_fee_nanos: int
    token_cost_nanos: int
    d_cache_write_tokens: int = 0
    shares: tuple[ModelShare, ...] | None = None
    """The shares of the lease after this slice; kept with the lease."""


class MeteringPeriod(msgspec.Struct, frozen=True, gc=False):
    event_id: UUID
    attempt: int
    slice_seq: int
    d_input_tokens: int
    d_cached_tokens: int
    d_output_tokens: int
    run_ms: int
    run_fee_nanos: int
    token_cost_nanos: int
    charged_nanos: int
    created_at: int
    d_cache_write_tokens: int = 0


class Compacted(msgspec.Struct, frozen=True, gc=False):
    """What one compaction dealt with."""

    what: str
    """The partition that was dropped, or the table that a page was taken of."""
    slices: int
    """Metering rows that there were."""
    runs: int
    """Those that there are now: one for each attempt at an event."""
    more: bool
    """There may be more to compact."""


class MeteringStore(Protocol):
    async def make_ready(self, days: int) -> int:
        """Make the partitions of today and of the days after it, as many as ``days``; how many are new."""
        ...

    async def compact(self, *, keep_ms: int, limit: int) -> Compacted | None:
        """Keep one row for each attempt at the events of a day that ended so long ago; None: nothing is due.

        What was metered is added up before and after, by tenant, in the transaction that changes the rows.
        Raises SumsDiffer, with nothing changed, where a sum would not be the same. Slices of runs that go on
        stay as they are. ``limit``: events of a page, where they are not dropped with their partition.
        """
        ...

    async def list(self, tenant_id: UUID, event_id: UUID) -> Sequence[MeteringPeriod]:
        """Oldest first; none for another tenant's event."""
        ...
