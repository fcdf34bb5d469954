"""What a slice costs its tenant, and what a lease and its event were billed in all."""

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from sexton_storage.decisions.rows import DaySpend, Spent
from sexton_storage.periods import day_of
from sexton_storage.records.charges import STAGE_CHARGE, Charge
from sexton_storage.records.events import Event
from sexton_storage.records.leases import Lease
from sexton_storage.records.metering import MeteringPeriod, Slice
from sexton_storage.records.tenants import Tenant


class Charged(msgspec.Struct, frozen=True, gc=False):
    """A slice that was billed: its metering row, and what it left."""

    period: MeteringPeriod
    tenant: Tenant
    spend: DaySpend

    @property
    def nanos(self) -> int:
        return self.period.charged_nanos


def charge(lease: Lease, part: Slice, tenant: Tenant, spent: Spent, now: int) -> Charged:
    """Bill a slice, at most what is left of the balance; a tenant that is unlimited pays all of it."""
    cost = part.run_fee_nanos + part.token_cost_nanos
    charged = cost if tenant.unlimited else min(cost, max(0, tenant.balance_nanos))
    period = MeteringPeriod(
        event_id=lease.event_id,
        attempt=lease.attempt,
        slice_seq=part.seq,
        d_input_tokens=part.d_input_tokens,
        d_cached_tokens=part.d_cached_tokens,
        d_output_tokens=part.d_output_tokens,
        run_ms=part.run_ms,
        run_fee_nanos=part.run_fee_nanos,
        token_cost_nanos=part.token_cost_nanos,
        charged_nanos=charged,
        created_at=now,
        d_cache_write_tokens=part.d_cache_write_tokens,
    )
    spend = DaySpend(lease.zombie_id, day_of(now), spent.day + charged)
    return Charged(period, debited(tenant, charged, now), spend)


def debited(tenant: Tenant, charged: int, now: int) -> Tenant:
    """Take from the balance; ``exhausted_at`` is when nothing was left for the first time."""
    balance = tenant.balance_nanos - charged
    lasts = tenant.unlimited or balance > 0
    exhausted_at = tenant.exhausted_at if lasts or tenant.exhausted_at is not None else now
    return replace(tenant, balance_nanos=balance, exhausted_at=exhausted_at, updated_at=now)


def bill(lease: Lease, periods: Sequence[MeteringPeriod], now: int) -> Charge | None:
    """Add up what a lease that ends was billed; None when it never was.

    ``periods`` are its event's, those of other leases among them.
    """
    own = [period for period in periods if period.attempt == lease.attempt]
    if not own:
        return None
    return Charge(
        id=lease.id,
        event_id=lease.event_id,
        zombie_id=lease.zombie_id,
        workspace_id=lease.workspace_id,
        tenant_id=lease.tenant_id,
        charge_type=STAGE_CHARGE,
        posture="self_managed" if lease.own_key else "platform",
        model=lease.model,
        credit_deducted_nanos=sum(period.charged_nanos for period in own),
        token_count_input=sum(p.d_input_tokens + p.d_cached_tokens + p.d_cache_write_tokens for p in own),
        token_count_output=sum(period.d_output_tokens for period in own),
        wall_ms=sum(period.run_ms for period in own),
        recorded_at=now,
        models=lease.shares,
    )


def with_sums(event: Event, periods: Sequence[MeteringPeriod]) -> Event:
    """Add up what the event was billed and for how many tokens, so that the two are of the same leases."""
    return replace(
        event,
        charged_nanos=sum(period.charged_nanos for period in periods),
        input_tokens=sum(period.d_input_tokens for period in periods),
        cached_input_tokens=sum(period.d_cached_tokens for period in periods),
        output_tokens=sum(period.d_output_tokens for period in periods),
        cache_write_tokens=sum(period.d_cache_write_tokens for period in periods),
    )
