"""Claims, renews and ends leases: looks the rows up, decides, and puts them down."""

from collections.abc import Sequence
from uuid import UUID

import msgspec

from sexton_storage.decisions.claim import ClaimRows, claim
from sexton_storage.decisions.end import EndRows, end, may_end
from sexton_storage.decisions.renew import RenewRows, renew
from sexton_storage.decisions.rows import Head
from sexton_storage.errors import RowRefused
from sexton_storage.memory.apply_improvement import add_proposals
from sexton_storage.memory.apply_memories import remember
from sexton_storage.memory.tables import Tables
from sexton_storage.records.events import Event
from sexton_storage.records.leases import Lease
from sexton_storage.records.metering import MeteringPeriod, Slice
from sexton_storage.refusals import Lost
from sexton_storage.rules import LIVE_LEASE
from sexton_storage.writes import (
    Claimed,
    ClaimEvent,
    Ended,
    EndLease,
    Exhausted,
    NothingToClaim,
    Renewed,
    RenewLease,
)

MAX_BIGINT = 2**63 - 1


def claim_event(tables: Tables, write: ClaimEvent) -> Claimed | NothingToClaim | Exhausted:
    zombie_id = write.zombie_id
    agent = tables.zombies.get(zombie_id)
    waiting = tables.received(zombie_id)
    rows = ClaimRows(
        agent=agent,
        head=tables.heads.get(zombie_id),
        freed_at=_freed_at(tables, tables.heads.get(zombie_id)),
        tenant=None if agent is None else tables.tenants[agent.tenant_id],
        paused=agent is not None and tables.workspaces[agent.workspace_id].paused,
        runner=tables.runners.get(write.runner_id),
        runner_holds=_held_by(tables, write.runner_id),
        next=tables.event_row(waiting[0].id) if waiting else None,
        more=len(waiting) > 1,
        spent=tables.spent(zombie_id, write.now),
        endowed=_is_endowed(tables, zombie_id),
    )
    return tables.put(claim(rows, write))


def _freed_at(tables: Tables, head: Head | None) -> int | None:
    return next(
        (
            lease.ended_at
            for lease in tables.leases.values()
            if head is not None and (lease.zombie_id, lease.fencing_token) == (head.zombie_id, head.fence)
        ),
        None,
    )


def _held_by(tables: Tables, runner_id: UUID) -> int:
    return sum(
        lease.runner_id == runner_id and lease.status in LIVE_LEASE for lease in tables.leases.values()
    )


def _is_endowed(tables: Tables, zombie_id: UUID) -> bool:
    return bool(tables.memories.get(zombie_id)) or any(
        grant.zombie_id == zombie_id for grant in tables.grants.values()
    )


def renew_lease(tables: Tables, write: RenewLease) -> Renewed | Lost:
    lease = tables.leases.get(write.lease.id)
    rows = RenewRows(
        lease=lease,
        tenant=None if lease is None else tables.tenants[lease.tenant_id],
        spent=tables.spent(write.lease.zombie_id, write.now),
        clock=tables.now(),
    )
    decided = renew(rows, write)
    if isinstance(decided.answer, Renewed):
        _check(tables, write.lease, write.slice)
    return tables.put(decided)


def _check(tables: Tables, lease: Lease, part: Slice) -> None:
    """Refuse what the table's constraints refuse."""
    if any(isinstance(v, int) and not 0 <= v <= MAX_BIGINT for v in msgspec.structs.astuple(part)):
        raise RowRefused(f"a slice with a value out of range: {part}")
    if (lease.attempt, part.seq) in tables.metering.get(lease.event_id, {}):
        raise RowRefused(f"slice {part.seq} of lease {lease.id} is there already")


def end_lease(tables: Tables, write: EndLease) -> Ended | Lost:
    lease = tables.leases.get(write.lease_id)
    lost = may_end(lease, write, tables.now())
    if lost is not None or lease is None:
        return lost or Lost()
    if write.continuation is not None and write.continuation.id in tables.events:
        raise RowRefused(f"event {write.continuation.id} is there already")
    if write.slice is not None:
        _check(tables, lease, write.slice)
    ended = tables.put(end(_end_rows(tables, lease, write), write))
    if write.proposals:
        add_proposals(tables, write.proposals)
    if write.continuation is not None:
        tables.put_event(write.continuation)
    if write.memory:
        remember(tables, lease.zombie_id, write.memory, write.now)
    return ended


def _end_rows(tables: Tables, lease: Lease, write: EndLease) -> EndRows:
    row = tables.event_row(lease.event_id)
    if row is None:
        raise LookupError(f"lease {lease.id} is of no event")
    agent = tables.zombies.get(lease.zombie_id)
    return EndRows(
        lease=lease,
        event=row,
        head=tables.heads[lease.zombie_id],
        tenant=tables.tenants[lease.tenant_id],
        gates=[gate for gate in tables.gates.values() if gate.event_id == lease.event_id],
        parked_gate=None if write.parked_gate_id is None else tables.gates.get(write.parked_gate_id),
        periods=_periods(tables, lease.event_id),
        spent=tables.spent(lease.zombie_id, write.now),
        next=_next(tables, lease),
        handed=[p for p in tables.proposals.values() if p.handed_lease_id == lease.id],
        scored=lease.event_id in tables.scores,
        agent_version=None if agent is None else agent.version,
    )


def _periods(tables: Tables, event_id: UUID) -> Sequence[MeteringPeriod]:
    return list(tables.metering.get(event_id, {}).values())


def _next(tables: Tables, lease: Lease) -> Event | None:
    return next((event for event in tables.received(lease.zombie_id) if event.id != lease.event_id), None)
