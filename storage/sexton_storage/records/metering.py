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


class MeteringStore(Protocol):
    async def list(self, tenant_id: UUID, event_id: UUID) -> Sequence[MeteringPeriod]:
        """Oldest first; none for another tenant's event."""
        ...
