"""Whether an agent's next event is leased to a runner, and the lease that is born."""

import msgspec
from msgspec.structs import replace

from sexton_storage.decisions.rows import Decided, EventRow, Head, Spent
from sexton_storage.records.events import Event, EventStatus
from sexton_storage.records.leases import Lease, LeaseStatus
from sexton_storage.records.runners import Runner
from sexton_storage.records.tenants import Tenant
from sexton_storage.records.zombies import Zombie, ZombieStatus
from sexton_storage.refusals import (
    CHANGED,
    EMPTY,
    GONE,
    LEASED,
    NOT_ACTIVE,
    NOT_YET,
    OTHER_VERSION,
    OUT_OF_SCOPE,
    OVER_BUDGET,
    PAUSED,
    RUNNER_FULL,
)
from sexton_storage.rules import BALANCE_EXHAUSTED, BALANCE_EXHAUSTED_CODE
from sexton_storage.scopes import is_within, scope_of
from sexton_storage.streams import leased_frame
from sexton_storage.writes import Claimed, ClaimEvent, Exhausted, NothingToClaim


class ClaimRows(msgspec.Struct, frozen=True, gc=False):
    """What a claim depends on, as it stands when the claim is decided."""

    agent: Zombie | None
    head: Head | None
    freed_at: int | None
    """When the agent's last lease ended; None when it had none."""
    tenant: Tenant | None
    """The agent's."""
    paused: bool
    """The agent's workspace is."""
    runner: Runner | None
    """None when it has no row, and so neither a scope nor a number of slots."""
    runner_holds: int
    """Live leases of the runner."""
    next: EventRow | None
    """The received event of the agent that arrived first."""
    more: bool
    """There are others behind it."""
    spent: Spent
    endowed: bool
    """The agent has grants or memories."""


Outcome = Claimed | NothingToClaim | Exhausted


def claim(rows: ClaimRows, write: ClaimEvent) -> Decided[Outcome]:
    """Lease the event, or say why not; without money the event is set aside until there is a credit."""
    agent, head, tenant, found = rows.agent, rows.head, rows.tenant, rows.next
    if agent is None or head is None or tenant is None:
        return Decided(NothingToClaim(GONE))
    if write.agent_version is not None and write.agent_version != agent.version:
        return Decided(NothingToClaim(CHANGED))
    if reason := held_back(rows, agent, head):
        return Decided(NothingToClaim(reason))
    if found is None:
        return Decided(NothingToClaim(EMPTY))
    if found.event.retry_at is not None and found.event.retry_at > write.now:
        return Decided(NothingToClaim(NOT_YET))
    if found.event.asked != write.asked:
        return Decided(NothingToClaim(OTHER_VERSION, found.event.asked))
    if is_over(rows.spent, write.budget_daily_nanos, write.budget_monthly_nanos):
        return Decided(NothingToClaim(OVER_BUDGET))
    # The slots come last: a runner that is full must not keep an event from being set aside.
    if not tenant.has_credit:
        return Decided(Exhausted(found.event.id), (replace(found, event=blocked(found.event, write.now)),))
    if rows.runner is not None and rows.runner_holds >= rows.runner.slots:
        return Decided(NothingToClaim(RUNNER_FULL))
    return _granted(rows, write, head, found)


def held_back(rows: ClaimRows, agent: Zombie, head: Head) -> str | None:
    """Name what keeps this agent's events from this runner, whatever they are."""
    if rows.runner is not None and not is_within(scope_of(rows.runner), agent.tenant_id, agent.workspace_id):
        return OUT_OF_SCOPE
    if agent.status is not ZombieStatus.ACTIVE:
        return NOT_ACTIVE
    if head.live_lease_id is not None:
        return LEASED
    return PAUSED if rows.paused else None


def over_period(spent: Spent, daily: int | None, monthly: int | None) -> str | None:
    """Name the budget that is spent; None: neither is, or there is none.

    >>> over_period(Spent(5, 9), 6, 10), over_period(Spent(5, 9), 5, 9), over_period(Spent(5, 9), None, 9)
    (None, 'day', 'month')
    """
    if daily is not None and spent.day >= daily:
        return "day"
    return "month" if monthly is not None and spent.month >= monthly else None


def is_over(spent: Spent, daily: int | None, monthly: int | None) -> bool:
    return over_period(spent, daily, monthly) is not None


def blocked(event: Event, now: int) -> Event:
    """Set an event aside because credit ran out; it is still open."""
    return replace(
        event,
        status=EventStatus.GATE_BLOCKED,
        failure_label=BALANCE_EXHAUSTED,
        error_code=BALANCE_EXHAUSTED_CODE,
        updated_at=now,
    )


def unblocked(event: Event, now: int) -> Event:
    """Let an event go on that was set aside: there is credit again."""
    return replace(event, status=EventStatus.RECEIVED, failure_label=None, error_code=None, updated_at=now)


def _granted(rows: ClaimRows, write: ClaimEvent, head: Head, found: EventRow) -> Decided[Outcome]:
    if rows.freed_at is not None and rows.freed_at > write.now:
        # Made before that end, and decided after it: no moment is of two leases, or billed twice.
        write = replace(write, now=rows.freed_at)
    event = running(found.event, write.now, write.ran_version)
    row = replace(found, event=event, lease_count=found.lease_count + 1)
    # The token grows with every lease of the agent, so a late report can never look fresh.
    lease = new_lease(write, row, token=head.fence + 1)
    held = replace(head, fence=lease.fencing_token, live_lease_id=lease.id, last_runner_id=lease.runner_id)
    answer = Claimed(row.event, lease, rows.more, rows.endowed)
    return Decided(answer, (row, lease, held), (leased_frame(lease),))


def running(event: Event, now: int, version: int | None) -> Event:
    """Begin an attempt under a version of the agent.

    The time that the event was parked moves the ceiling of all its leases.
    """
    parked_ms = 0 if event.parked_at is None else max(0, now - event.parked_at)
    return replace(
        event,
        status=EventStatus.RUNNING,
        attempts=event.attempts + 1,
        first_leased_at=now if event.first_leased_at is None else event.first_leased_at,
        parked_ms=event.parked_ms + parked_ms,
        parked_at=None,
        retry_at=None,
        ran_version=version,
        updated_at=now,
    )


def new_lease(write: ClaimEvent, row: EventRow, *, token: int) -> Lease:
    """Make the lease of an event whose attempt has begun.

    The ceiling counts from the first lease of the event, not from this one.
    """
    event = row.event
    first = write.now if event.first_leased_at is None else event.first_leased_at
    ceiling_at = first + write.ceiling_ms + event.parked_ms
    return Lease(
        id=write.lease_id,
        event_id=event.id,
        zombie_id=event.zombie_id,
        workspace_id=event.workspace_id,
        tenant_id=event.tenant_id,
        runner_id=write.runner_id,
        fencing_token=token,
        attempt=row.lease_count,
        status=LeaseStatus.ACTIVE,
        version=1,
        granted_at=write.now,
        expires_at=min(write.now + write.term_ms, ceiling_at),
        ceiling_at=ceiling_at,
        metered_at=write.now,
        rates=write.rates,
        budget_daily_nanos=write.budget_daily_nanos,
        budget_monthly_nanos=write.budget_monthly_nanos,
        config_version_id=write.config_version_id,
        model=write.model,
        own_key=write.own_key,
        shares=write.shares,
        shadow=event.shadow_job is not None,
    )
