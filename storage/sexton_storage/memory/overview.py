"""The fleet as operators look at it, in memory."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Any
from uuid import UUID

from sexton_storage.memory.base import MemoryStore
from sexton_storage.memory.tables import Tables
from sexton_storage.paging import Page
from sexton_storage.records.events import Event, EventStatus
from sexton_storage.records.fleet import (
    COUNT_CAP,
    DEMAND_CAP,
    LOOKED_AT,
    Census,
    HistoryItem,
    HistoryKind,
    LabelDemand,
    LiveLease,
    Liveness,
    RunnerGroup,
    Waiting,
)
from sexton_storage.records.gates import GateStatus
from sexton_storage.records.insights import SLACK_BAND_MS, SLACK_CAP, SlackBand
from sexton_storage.records.leases import Lease, LeaseStatus
from sexton_storage.records.runners import AdminState, Runner
from sexton_storage.records.zombies import ZombieStatus
from sexton_storage.rules import LIVE_LEASE, waits_for_credit
from sexton_storage.terms import CHANGES_KEEP_MS, LAST_BACKUP, ONLINE_MS


class MemoryFleet(MemoryStore):
    async def history(
        self, runner_id: UUID, *, limit: int, before: Page | None = None
    ) -> Sequence[HistoryItem]:
        await self._round_trip()
        items = sorted(_history(self._tables, runner_id), key=lambda item: (item.at, item.id), reverse=True)
        if before is not None:
            items = [item for item in items if (item.at, item.id) < (before.created_at, before.id)]
        return items[:limit]

    async def live_leases(self, *, limit: int) -> Sequence[LiveLease]:
        await self._round_trip()
        live = sorted(_live(self._tables), key=lambda lease: (lease.expires_at, lease.id))
        return [_live_lease(lease) for lease in live[:limit]]

    async def waiting(self) -> Sequence[Waiting]:
        await self._round_trip()
        tables = self._tables
        received = sorted(
            (event for event in tables.events.values() if event.status is EventStatus.RECEIVED),
            key=lambda event: event.created_at,
        )
        tenants = {runner.tenant_id for runner in tables.runners.values()}
        workspaces = {runner.workspace_id for runner in tables.runners.values()}
        groups: dict[tuple[tuple[str, ...], bool, UUID | None, UUID | None], list[Event]] = defaultdict(list)
        for event in received[:COUNT_CAP]:
            zombie = tables.zombies[event.zombie_id]
            tenant_id = event.tenant_id if event.tenant_id in tenants else None
            workspace_id = event.workspace_id if event.workspace_id in workspaces else None
            need = tuple(zombie.required_tags), zombie.allows_unsandboxed
            groups[(*need, tenant_id, workspace_id)].append(event)
        return [
            Waiting(tags, unsandboxed, len(events), next(self._may_run(events), None), *owners)
            for (tags, unsandboxed, *owners), events in sorted(groups.items(), key=_as_ordered)
        ]

    def _may_run(self, events: Sequence[Event]) -> Iterator[int]:
        tables = self._tables
        return (
            event.created_at
            for event in events
            if tables.zombies[event.zombie_id].status is ZombieStatus.ACTIVE
            and not tables.workspaces[event.workspace_id].paused
        )

    async def slack(self) -> Sequence[SlackBand]:
        await self._round_trip()
        return slack_of(_live(self._tables), self._tables.now())

    async def census(self) -> Census:
        await self._round_trip()
        tables = self._tables
        received = sorted(
            (event for event in tables.events.values() if event.status is EventStatus.RECEIVED),
            key=lambda event: event.created_at,
        )
        pending = [gate for gate in tables.gates.values() if gate.status is GateStatus.PENDING]
        may_run = self._may_run(received[:LOOKED_AT])
        return Census(
            at=tables.now(),
            queued=min(len(received), COUNT_CAP),
            oldest_event_at=next(may_run, None),
            leases=min(len(_live(tables)), COUNT_CAP),
            gates=min(len(pending), COUNT_CAP),
            oldest_gate_at=min((gate.requested_at for gate in pending), default=None),
            runners=_groups(tables),
            blocked=min(sum(map(waits_for_credit, tables.events.values())), COUNT_CAP),
            exhausted=sum(tenant.exhausted_at is not None for tenant in tables.tenants.values()),
            overdue_cron_at=min(
                (
                    cron.next_at
                    for cron in tables.crons.values()
                    if cron.next_at is not None and cron.next_at <= tables.now()
                ),
                default=None,
            ),
            demand=tuple(self._demand(received[:DEMAND_CAP])),
            last_backup_at=None if (backup := tables.settings.get(LAST_BACKUP)) is None else int(backup),
        )

    def _demand(self, received: Sequence[Event]) -> Iterator[LabelDemand]:
        tables, now = self._tables, self._tables.now()
        known = {
            ability
            for runner in tables.runners.values()
            if runner.admin_state is not AdminState.REVOKED
            for ability in (*runner.labels, *runner.offers)
        }
        events: Counter[UUID] = Counter(event.zombie_id for event in received)
        running = {lease.zombie_id for lease in _live(tables)}
        due = [event for event in received if event.retry_at is None or event.retry_at <= now]
        ready = {event.zombie_id for event in due if any(self._may_run([event]))}
        oldest: dict[UUID, int] = {}
        for event in received:
            if any(self._may_run([event])):
                oldest.setdefault(event.zombie_id, event.created_at)
        of_labels: dict[tuple[str, ...] | None, list[int]] = defaultdict(lambda: [0, 0])
        oldest_of: dict[tuple[str, ...] | None, int] = {}
        for zombie_id in events.keys() | running:
            tags = tuple(sorted(set(tables.zombies[zombie_id].required_tags)))
            wanted = tags if known.issuperset(tags) else None
            counts = of_labels[wanted]
            counts[0] += events[zombie_id]
            counts[1] += zombie_id in running or zombie_id in ready
            if zombie_id in oldest:
                oldest_of[wanted] = min(oldest[zombie_id], oldest_of.get(wanted, oldest[zombie_id]))
        ordered = sorted(of_labels.items(), key=lambda one: (one[0] is None, one[0] or ()))
        for wanted, (waiting, slots) in ordered:
            yield LabelDemand(wanted, waiting, slots, oldest_of.get(wanted))


def slack_of(leases: Sequence[Lease], now: int) -> list[SlackBand]:
    """What these have left, in bands with leases, the least first."""
    bands: dict[int, list[int]] = defaultdict(list)
    for lease in leases[:SLACK_CAP]:
        left_ms = lease.expires_at - now
        bands[max(left_ms, 0) // SLACK_BAND_MS * SLACK_BAND_MS].append(left_ms)
    return [SlackBand(from_ms, len(left), min(left)) for from_ms, left in sorted(bands.items())]


def sweep_changes(tables: Tables, now: int) -> int:
    """Delete what is past keeping; how many rows."""
    kept = [change for change in tables.runner_changes if change.at > now - CHANGES_KEEP_MS]
    swept = len(tables.runner_changes) - len(kept)
    tables.runner_changes = kept
    return swept


def _history(tables: Tables, runner_id: UUID) -> Iterator[HistoryItem]:
    runner = tables.runners.get(runner_id)
    if runner is not None:
        about = {
            "host_id": runner.host_id,
            "sandbox_tier": runner.sandbox_tier,
            "labels": list(runner.labels),
            "slots": runner.slots,
        }
        yield HistoryItem(runner.id, HistoryKind.ENROLLED, runner.created_at, about)
    for change in tables.runner_changes:
        if change.runner_id == runner_id:
            moved = {"from": str(change.changed_from), "to": str(change.changed_to), "by": change.changed_by}
            yield HistoryItem(change.id, HistoryKind.ADMIN_STATE, change.at, moved)
    for lease in tables.leases.values():
        if lease.runner_id == runner_id:
            yield HistoryItem(lease.id, HistoryKind.LEASE, lease.granted_at, _told(lease))


def _told(lease: Lease) -> dict[str, object]:
    return {
        "lease_id": str(lease.id),
        "event_id": str(lease.event_id),
        "zombie_id": str(lease.zombie_id),
        "workspace_id": str(lease.workspace_id),
        "attempt": lease.attempt,
        "fencing_token": lease.fencing_token,
        "status": str(lease.status),
        "ended_at": lease.ended_at,
    }


def _live(tables: Tables) -> list[Lease]:
    return [lease for lease in tables.leases.values() if lease.status in LIVE_LEASE]


def _live_lease(lease: Lease) -> LiveLease:
    return LiveLease(
        lease_id=lease.id,
        event_id=lease.event_id,
        zombie_id=lease.zombie_id,
        workspace_id=lease.workspace_id,
        runner_id=lease.runner_id,
        attempt=lease.attempt,
        cancelling=lease.status is LeaseStatus.CANCELLING,
        granted_at=lease.granted_at,
        expires_at=lease.expires_at,
        ceiling_at=lease.ceiling_at,
        metered_at=lease.metered_at,
    )


def _groups(tables: Tables) -> tuple[RunnerGroup, ...]:
    busy = {lease.runner_id for lease in _live(tables)}
    found: dict[tuple[Liveness, AdminState], list[int]] = defaultdict(list)
    for runner in tables.runners.values():
        liveness = _liveness(runner, tables.now(), busy=runner.id in busy)
        found[liveness, runner.admin_state].append(runner.slots)
    return tuple(RunnerGroup(*key, len(slots), sum(slots)) for key, slots in sorted(found.items()))


def _liveness(runner: Runner, now: int, *, busy: bool) -> Liveness:
    if runner.last_seen_at is None:
        return Liveness.REGISTERED
    if busy:
        return Liveness.BUSY
    return Liveness.ONLINE if runner.last_seen_at >= now - ONLINE_MS else Liveness.OFFLINE


def _as_ordered(group: tuple[tuple[tuple[str, ...], bool, UUID | None, UUID | None], object]) -> Any:
    tags, unsandboxed, *owners = group[0]
    return tags, unsandboxed, [(owner is None, owner or UUID(int=0)) for owner in owners]
