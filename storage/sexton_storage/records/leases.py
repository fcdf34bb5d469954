"""Leases: who runs an event, until when, and by what rates."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Protocol
from uuid import UUID

import msgspec

from sexton_storage.records.gates import Gate


class LeaseStatus(StrEnum):
    ACTIVE = "active"
    CANCELLING = "cancelling"
    REPORTED = "reported"
    RELEASED = "released"
    PARKED = "parked"
    RECLAIMED = "reclaimed"


class LeaseToken(msgspec.Struct, frozen=True, gc=False):
    """A lease as its holder names it. Writes under a token that is no longer the newest are refused."""

    lease_id: UUID
    fencing_token: int


class Rates(msgspec.Struct, frozen=True, gc=False):
    """What a lease is billed by, fixed when it is granted."""

    run_nanos_per_sec: int
    input_nanos_per_mtok: int = 0
    cached_input_nanos_per_mtok: int = 0
    output_nanos_per_mtok: int = 0
    cache_write_nanos_per_mtok: int = 0


class ModelShare(msgspec.Struct, frozen=True, gc=False):
    """What one model of a lease has used and cost so far, and by which rates; nanos per million tokens."""

    provider: str
    model: str
    own_key: bool = False
    """On the tenant's own key: its rates are 0."""
    input_nanos_per_mtok: int = 0
    cached_input_nanos_per_mtok: int = 0
    cache_write_nanos_per_mtok: int = 0
    output_nanos_per_mtok: int = 0
    input_tokens: int = 0
    cached_input_tokens: int = 0
    cache_write_tokens: int = 0
    output_tokens: int = 0
    token_cost_nanos: int = 0


class Lease(msgspec.Struct, frozen=True, gc=False):
    id: UUID
    event_id: UUID
    zombie_id: UUID
    workspace_id: UUID
    tenant_id: UUID
    runner_id: UUID
    fencing_token: int
    attempt: int
    """Numbers the event's leases from 1, released ones included.

    It keys the metering rows and is never used twice.
    """
    status: LeaseStatus
    version: int
    granted_at: int
    expires_at: int
    ceiling_at: int
    metered_at: int
    """Up to where time has been billed."""
    rates: Rates
    slice_seq: int = 0
    input_tokens: int = 0
    cached_input_tokens: int = 0
    output_tokens: int = 0
    run_ms: int = 0
    """The runner's own cumulative count, as last reported; 0 when it sends none."""
    budget_daily_nanos: int | None = None
    budget_monthly_nanos: int | None = None
    ended_at: int | None = None
    report_digest: bytes | None = None
    """SHA-256 of the report that ended it, so that the same report again is known as such."""
    config_version_id: UUID | None = None
    """What the run was given; what it proposes is based on that."""
    model: str | None = None
    own_key: bool = False
    """The tenant's own model key: its tokens cost nothing here."""
    cache_write_tokens: int = 0
    shares: tuple[ModelShare, ...] | None = None
    """Each model of a run that has more than one, in the order in which they are asked.

    ``model``, ``own_key`` and ``rates`` are the first's, and the lease's counts are the sums of theirs.
    """
    shadow: bool = False
    """Nothing that the run asks for takes effect."""


class LeaseStore(Protocol):
    async def load(self, lease_id: UUID) -> Lease | None: ...
    async def load_with_gates(self, lease_id: UUID) -> tuple[Lease, Sequence[Gate]] | None:
        """A lease and the gates opened under it, oldest first, as they stood at one moment."""
        ...

    async def live_of_runner(self, runner_id: UUID) -> Sequence[Lease]: ...
    async def live_of_zombie(self, zombie_id: UUID) -> Lease | None: ...
    async def count_live_by_runner(self, runner_ids: Sequence[UUID]) -> dict[UUID, int]: ...
    async def expired(self, *, limit: int) -> Sequence[UUID]:
        """Live leases past ``expires_at`` by the database's clock, longest first."""
        ...
