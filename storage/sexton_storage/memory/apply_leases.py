"""Claims, renews and ends leases."""

from uuid import UUID

import msgspec
from msgspec.structs import replace

from sexton_storage.documents import copied, storable
from sexton_storage.errors import RowRefused
from sexton_storage.memory.apply_charges import record_charge
from sexton_storage.memory.apply_improvement import add_proposals, settle_score
from sexton_storage.memory.apply_memories import remember
from sexton_storage.memory.tables import Head, Tables
from sexton_storage.records.events import Event, EventStatus
from sexton_storage.records.gates import GateStatus
from sexton_storage.records.leases import Lease, LeaseStatus
from sexton_storage.records.metering import Slice
from sexton_storage.records.zombies import ZombieStatus
from sexton_storage.refusals import (
    EMPTY,
    FENCED,
    GONE,
    LEASED,
    NOT_ACTIVE,
    OUT_OF_SCOPE,
    OVER_BUDGET,
    PAUSED,
    RUNNER_FULL,
    STALE,
    Lost,
)
from sexton_storage.rules import BALANCE_EXHAUSTED, BALANCE_EXHAUSTED_CODE, FINISHED_EVENT, LIVE_LEASE
from sexton_storage.scopes import is_within, scope_of
from sexton_storage.streams import leased_frame
from sexton_storage.writes import (
    Claimed,
    ClaimEvent,
    Ended,
    EndLease,
    EventEnd,
    Exhausted,
    NothingToClaim,
    Renewed,
    RenewLease,
)

MAX_BIGINT = 2**63 - 1


def claim_event(tables: Tables, write: ClaimEvent) -> Claimed | NothingToClaim | Exhausted:
    if _is_out_of_scope(tables, write):
        return NothingToClaim(OUT_OF_SCOPE)
    if reason := _held_back(tables, write.zombie_id):
        return NothingToClaim(reason)
    waiting = tables.received(write.zombie_id)
    if not waiting:
        return NothingToClaim(EMPTY)
    if _is_over_budget(tables, write):
        return NothingToClaim(OVER_BUDGET)
    event = waiting[0]
    if not tables.tenants[event.tenant_id].has_credit:
        _block(tables, event, write.now)
        return Exhausted(event.id)
    if _is_full(tables, write.runner_id):
        return NothingToClaim(RUNNER_FULL)
    return _grant(tables, write, event, more=len(waiting) > 1)


def _held_back(tables: Tables, zombie_id: UUID) -> str | None:
    zombie = tables.zombies.get(zombie_id)
    if zombie is None:
        return GONE
    if zombie.status is not ZombieStatus.ACTIVE:
        return NOT_ACTIVE
    if tables.heads[zombie_id].live_lease_id is not None:
        return LEASED
    return PAUSED if tables.workspaces[zombie.workspace_id].paused else None


def _is_out_of_scope(tables: Tables, write: ClaimEvent) -> bool:
    zombie, runner = tables.zombies.get(write.zombie_id), tables.runners.get(write.runner_id)
    if zombie is None or runner is None:
        return False
    return not is_within(scope_of(runner), zombie.tenant_id, zombie.workspace_id)


def _is_full(tables: Tables, runner_id: UUID) -> bool:
    runner = tables.runners.get(runner_id)
    held = (lease.runner_id == runner_id and lease.status in LIVE_LEASE for lease in tables.leases.values())
    return runner is not None and sum(held) >= runner.slots


def _is_over_budget(tables: Tables, write: ClaimEvent) -> bool:
    day, month = tables.spent(write.zombie_id, write.now)
    daily, monthly = write.budget_daily_nanos, write.budget_monthly_nanos
    return (daily is not None and day >= daily) or (monthly is not None and month >= monthly)


def _block(tables: Tables, event: Event, now: int) -> None:
    blocked = replace(
        event,
        status=EventStatus.GATE_BLOCKED,
        failure_label=BALANCE_EXHAUSTED,
        error_code=BALANCE_EXHAUSTED_CODE,
        updated_at=now,
    )
    tables.put_event(blocked)


def _grant(tables: Tables, write: ClaimEvent, event: Event, *, more: bool) -> Claimed:
    head = tables.heads[write.zombie_id]
    number = tables.lease_counts[event.id] = tables.lease_counts.get(event.id, 0) + 1
    running = _running(event, write.now)
    lease = _new_lease(write, running, head.fence + 1, number)
    tables.put_event(running)
    tables.leases[lease.id] = lease
    head.fence = lease.fencing_token
    head.live_lease_id = lease.id
    head.last_runner_id = write.runner_id
    tables.append_frames((leased_frame(lease),))
    endowed = bool(tables.memories.get(write.zombie_id)) or any(
        grant.zombie_id == write.zombie_id for grant in tables.grants.values()
    )
    return Claimed(running, lease, more, endowed)


def _running(event: Event, now: int) -> Event:
    parked_ms = 0 if event.parked_at is None else max(0, now - event.parked_at)
    return replace(
        event,
        status=EventStatus.RUNNING,
        attempts=event.attempts + 1,
        first_leased_at=now if event.first_leased_at is None else event.first_leased_at,
        parked_ms=event.parked_ms + parked_ms,
        parked_at=None,
        updated_at=now,
    )


def _new_lease(write: ClaimEvent, event: Event, token: int, number: int) -> Lease:
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
        attempt=number,
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
    )


def renew_lease(tables: Tables, write: RenewLease) -> Renewed | Lost:
    lease = tables.leases.get(write.lease.id)
    if lease is None or lease.version != write.lease.version - 1:
        return Lost(STALE)
    if lease.status not in LIVE_LEASE or lease.expires_at <= tables.now():
        return Lost(FENCED)
    _check(write.slice)
    charged = tables.charge(lease, write.slice, write.now)
    asked = write.lease
    tables.leases[lease.id] = replace(
        lease,
        version=asked.version,
        expires_at=asked.expires_at,
        metered_at=asked.metered_at,
        slice_seq=asked.slice_seq,
        input_tokens=asked.input_tokens,
        cached_input_tokens=asked.cached_input_tokens,
        output_tokens=asked.output_tokens,
        run_ms=asked.run_ms,
    )
    day, month = tables.spent(lease.zombie_id, write.now)
    tenant = tables.tenants[lease.tenant_id]
    return Renewed(charged, tenant.balance_nanos, day, month, tenant.unlimited)


def _check(part: Slice) -> None:
    if any(not 0 <= value <= MAX_BIGINT for value in msgspec.structs.astuple(part)):
        raise RowRefused(f"a slice with a value out of range: {part}")


def end_lease(tables: Tables, write: EndLease) -> Ended | Lost:
    lease = tables.leases.get(write.lease_id)
    if lease is None or lease.version != write.version:
        return Lost(STALE)
    expired = lease.expires_at <= tables.now()
    if lease.status not in LIVE_LEASE or (write.require_unexpired and expired):
        return Lost(FENCED)
    if write.require_expired and not expired:
        return Lost(STALE)
    if write.continuation is not None and write.continuation.id in tables.events:
        raise RowRefused(f"event {write.continuation.id} is there already")
    charged = 0
    if write.slice is not None:
        _check(write.slice)
        charged = tables.charge(lease, write.slice, write.now)
    tables.leases[lease.id] = _ended(lease, write)
    record_charge(tables, lease, write.now)
    event = _after(tables, tables.events[lease.event_id], write)
    if event.completed_at is not None:
        settle_score(tables, event, lease, write.event.failed_checks)
    if write.proposals:
        add_proposals(tables, write.proposals)
    if write.continuation is not None:
        tables.put_event(write.continuation)
    _free(tables.heads[lease.zombie_id], lease.id)
    if write.memory:
        remember(tables, lease.zombie_id, write.memory, write.now)
    tables.append_frames(write.frames)
    balance = tables.tenants[lease.tenant_id].balance_nanos
    waiting = tables.received(lease.zombie_id)
    return Ended(charged, balance, event, waiting[0].created_at if waiting else None)


def _ended(lease: Lease, write: EndLease) -> Lease:
    ended = replace(
        lease,
        status=write.status,
        version=lease.version + 1,
        ended_at=write.now,
        report_digest=write.report_digest,
    )
    if write.slice is None:
        return ended
    return replace(
        ended,
        metered_at=write.now,
        slice_seq=write.slice.seq,
        input_tokens=lease.input_tokens + write.slice.d_input_tokens,
        cached_input_tokens=lease.cached_input_tokens + write.slice.d_cached_tokens,
        output_tokens=lease.output_tokens + write.slice.d_output_tokens,
    )


def _after(tables: Tables, event: Event, write: EndLease) -> Event:
    end, parks = write.event, write.event.status is EventStatus.WAITING_APPROVAL
    status = end.status
    if parks:
        status = _parked(tables, event.id, write.parked_gate_id)
    kept = _kept(event, end)
    after = replace(
        kept,
        status=status,
        attempts=max(0, event.attempts - end.give_attempt_back),
        parked_at=write.now if parks else event.parked_at,
        charged_nanos=tables.metered(event.id),
        updated_at=write.now,
        completed_at=write.now if status in FINISHED_EVENT else None,
    )
    tables.put_event(after)
    return after


def _kept(event: Event, end: EventEnd) -> Event:
    return replace(
        event,
        failure_label=event.failure_label if end.failure_label is None else end.failure_label,
        error_code=event.error_code if end.error_code is None else end.error_code,
        response_text=event.response_text if end.response_text is None else storable(end.response_text),
        evidence=event.evidence if end.evidence is None else copied(end.evidence),
        checkpoint=event.checkpoint if end.checkpoint is None else copied(end.checkpoint),
        input_tokens=event.input_tokens + end.input_tokens,
        cached_input_tokens=event.cached_input_tokens + end.cached_input_tokens,
        output_tokens=event.output_tokens + end.output_tokens,
        wall_ms=event.wall_ms + end.wall_ms,
    )


def _parked(tables: Tables, event_id: UUID, gate_id: UUID | None) -> EventStatus:
    gate = None if gate_id is None else tables.gates.get(gate_id)
    if gate is None or gate.event_id != event_id or gate.status is not GateStatus.PENDING:
        # It was resolved meanwhile: the run goes on and learns the outcome from the gate.
        return EventStatus.RECEIVED
    tables.waits_at[event_id] = gate.id
    return EventStatus.WAITING_APPROVAL


def _free(head: Head, lease_id: UUID) -> None:
    if head.live_lease_id == lease_id:
        head.live_lease_id = None
