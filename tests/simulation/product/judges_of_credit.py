"""What must hold of a balance that runs out: who has nothing left waits, until there is credit again."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final
from uuid import UUID

from sexton_storage.records.events import Event, EventStatus
from sexton_storage.records.tenants import Tenant
from tests.simulation.product.judges_of_books import CLOCKS_APART_MS
from tests.simulation.product.record import Exhausted, Judge, Record


def credited_once(record: Record) -> Iterator[str]:
    """Each credit that was granted is there as it was asked for, and once, however often it was asked for."""
    promises = record.promises
    counted = Counter(reason for _, _, reason, _ in record.tables.credits)
    for _, nanos, reason, _ in record.tables.credits:
        if counted[reason] > 1 or promises.granted.get(reason) != nanos:
            yield f"{reason} of {promises.granted.get(reason)} is there {counted[reason]} times, with {nanos}"
    for reason in promises.credited - counted.keys():
        yield f"{reason} was told to be there, and is not"


def exhausted_since(record: Record) -> Iterator[str]:
    """A tenant is exhausted since the slice that took the last of its balance, and until there is credit."""
    for tenant in record.tables.tenants.values():
        at = tenant.exhausted_at
        if tenant.has_credit:
            if at is not None:
                yield f"tenant {tenant.id} has {tenant.balance_nanos}, and is exhausted since {at}"
            continue
        if at is None:
            yield f"tenant {tenant.id} has {tenant.balance_nanos}, and is not exhausted"
            continue
        before = record.exhausted.get(tenant.id)
        if before is None or before.credits != _credits(record, tenant):
            yield from _not_the_last(record, tenant, at)
        elif before.since != at:
            yield f"tenant {tenant.id} is exhausted since {at}, and was since {before.since}"


def _not_the_last(record: Record, tenant: Tenant, at: int) -> Iterator[str]:
    """Nodes may differ in the moments that they write, so of two slices either may be the last."""
    tables = record.tables
    paid = [
        row.created_at
        for event_id, rows in tables.metering.items()
        if tables.metered_tenants[event_id] == tenant.id
        for row in rows.values()
        if row.charged_nanos
    ]
    if at not in paid or at < max(paid) - CLOCKS_APART_MS:
        yield f"tenant {tenant.id} is exhausted since {at}, and has last paid at {max(paid, default=None)}"


def nothing_for_nothing(record: Record) -> Iterator[str]:
    """A tenant that has nothing left is given no lease until there is credit."""
    tables = record.tables
    exhausted = {tenant.id: tenant for tenant in tables.tenants.values() if not tenant.has_credit}
    still = {
        tenant_id: before
        for tenant_id, before in record.exhausted.items()
        if tenant_id in exhausted and before.credits == _credits(record, exhausted[tenant_id])
    }
    for lease in islice(tables.leases.values(), record.leased, None):
        record.leased += 1
        if lease.tenant_id in still:
            yield f"lease {lease.id} was given out, and tenant {lease.tenant_id} has nothing left"
    record.exhausted = {
        tenant.id: still.get(tenant.id)
        or Exhausted(since=tenant.exhausted_at, credits=_credits(record, tenant))
        for tenant in exhausted.values()
    }


def _credits(record: Record, tenant: Tenant) -> int:
    return sum(tenant_id == tenant.id for tenant_id, _, _, _ in record.tables.credits)


def waits_for_credit(event: Event) -> bool:
    """Whether it is set aside because its tenant has nothing left."""
    return event.status is EventStatus.GATE_BLOCKED and event.failure_label == "balance_exhausted"


def credit_frees_all(record: Record) -> Iterator[str]:
    """What waits for credit does so only as long as there is none, and is not over."""
    rich: set[UUID] = {tenant.id for tenant in record.tables.tenants.values() if tenant.has_credit}
    for event in record.tables.events.values():
        if event.status is not EventStatus.GATE_BLOCKED or not waits_for_credit(event):
            continue
        record.set_aside.add(event.id)
        if event.completed_at is not None:
            yield f"event {event.id} waits for credit, and is over"
        if event.tenant_id in rich:
            yield f"event {event.id} waits for credit, and tenant {event.tenant_id} has some"


OF_CREDIT: Final[Sequence[Judge]] = (
    credited_once,
    exhausted_since,
    nothing_for_nothing,
    credit_frees_all,
)
"""In this order: ``nothing_for_nothing`` notes who was exhausted for the next look of the one before."""
