"""Events, leases and gates, read from memory."""

from collections import Counter
from collections.abc import Sequence
from uuid import UUID

from msgspec.structs import replace

from sexton_storage.decisions.append import seen
from sexton_storage.decisions.charge import with_sums
from sexton_storage.documents import json_or_none
from sexton_storage.event_filter.predicate import Subject, picks
from sexton_storage.globs import matches
from sexton_storage.memory.apply_events import dedup_rows
from sexton_storage.memory.base import MemoryStore
from sexton_storage.memory.tables import Tables
from sexton_storage.paging import Page
from sexton_storage.records.event_filters import LOOKED_THROUGH, EventFilter
from sexton_storage.records.events import (
    WHOLE_BYTES,
    AgentBacklog,
    Event,
    EventStatus,
    EventWaits,
    Found,
    ListedEvent,
    ReadyAgent,
)
from sexton_storage.records.gates import Gate, GateOrder, GateStatus, place_of
from sexton_storage.records.leases import Lease
from sexton_storage.records.zombies import ZombieStatus
from sexton_storage.rules import LIVE_LEASE, waits_for_credit


class MemoryEvents(MemoryStore):
    async def load(self, event_id: UUID) -> Event | None:
        await self._round_trip()
        event = self._tables.events.get(event_id)
        return None if event is None else self._so_far(event)

    async def load_requests(self, event_ids: Sequence[UUID]) -> Sequence[Event]:
        await self._round_trip()
        found = [self._tables.events[i] for i in event_ids if i in self._tables.events]
        return [replace(e, checkpoint=None, response_text=None, evidence=None) for e in found]

    def _so_far(self, event: Event) -> Event:
        if event.status is not EventStatus.RUNNING:
            return event
        return with_sums(event, tuple(self._tables.metering.get(event.id, {}).values()))

    async def list(
        self,
        workspace_id: UUID,
        *,
        limit: int,
        zombie_id: UUID | None = None,
        before: Page | None = None,
        since: int | None = None,
        actor_glob: str | None = None,
        status: EventStatus | None = None,
        whole_bytes: int = WHOLE_BYTES,
    ) -> Sequence[ListedEvent]:
        await self._round_trip()
        arrivals = self._tables.arrivals
        found = [
            e
            for e in self._tables.events.values()
            if e.workspace_id == workspace_id
            and (zombie_id is None or e.zombie_id == zombie_id)
            and (before is None or self._place(e) < (before.created_at, arrivals.get(before.id, 0)))
            and (since is None or e.created_at >= since)
            and (actor_glob is None or matches(actor_glob, e.actor))
            and (status is None or e.status is status)
        ]
        found.sort(key=self._place, reverse=True)
        kept = self._tables.zombies
        return [_listed(self._so_far(e), kept[e.zombie_id].name, whole_bytes) for e in found[:limit]]

    async def search(
        self,
        workspace_id: UUID,
        picked: EventFilter,
        *,
        limit: int,
        zombie_id: UUID | None = None,
        before: Page | None = None,
        look_through: int = LOOKED_THROUGH,
    ) -> Found:
        everything = max(1, len(self._tables.events))
        listed = await self.list(workspace_id, limit=everything, zombie_id=zombie_id, before=before)
        looked = listed[:look_through]
        found = [e for e in looked if picks(picked, self._subject(self._tables.events[e.id]))]
        last = looked[-1] if len(looked) == look_through and len(found) < limit else None
        return Found(found[:limit], None if last is None else Page(last.created_at, last.id))

    async def picked_among(self, event_ids: Sequence[UUID], picked: EventFilter) -> frozenset[UUID]:
        await self._round_trip()
        found = (self._tables.events.get(event_id) for event_id in event_ids)
        return frozenset(e.id for e in found if e is not None and picks(picked, self._subject(e)))

    def _subject(self, event: Event) -> Subject:
        agent = self._tables.zombies[event.zombie_id]
        runners = {lease.runner_id for lease in self._tables.leases.values() if lease.event_id == event.id}
        return Subject(event, agent.name, agent.required_tags, frozenset(runners))

    def _place(self, event: Event) -> tuple[int, int]:
        return event.created_at, self._tables.arrivals[event.id]

    async def seen(
        self, zombie_id: UUID, dedup_key: bytes, body_key: bytes | None, *, now: int
    ) -> UUID | None:
        await self._round_trip()
        return seen(*dedup_rows(self._tables, zombie_id, dedup_key, body_key), now)

    async def ready(self, *, after: UUID | None, limit: int) -> Sequence[ReadyAgent]:
        await self._round_trip()
        with_work = sorted(
            z for z, waiting in self._tables.waiting.items() if waiting and (after is None or z > after)
        )
        return [ready for z in with_work if (ready := self._ready(z))][:limit]

    async def ready_agent(self, zombie_id: UUID) -> ReadyAgent | None:
        await self._round_trip()
        return self._ready(zombie_id)

    async def waits(self, zombie_id: UUID) -> EventWaits:
        await self._round_trip()
        tables = self._tables
        if zombie_id not in tables.zombies:
            return EventWaits()
        return EventWaits(
            received=bool(tables.received(zombie_id)),
            blocked=any(e.zombie_id == zombie_id and waits_for_credit(e) for e in tables.events.values()),
            approval=any(
                g.zombie_id == zombie_id and g.status is GateStatus.PENDING for g in tables.gates.values()
            ),
            running=tables.heads[zombie_id].live_lease_id is not None,
        )

    async def backlog(self) -> Sequence[AgentBacklog]:
        await self._round_trip()
        found = ((zombie, self._tables.received(zombie.id)) for zombie in self._tables.zombies.values())
        return [
            AgentBacklog(
                zombie.id, zombie.workspace_id, len(events), min(event.created_at for event in events)
            )
            for zombie, events in found
            if events
        ]

    def _ready(self, zombie_id: UUID) -> ReadyAgent | None:
        zombie, waiting = self._tables.zombies.get(zombie_id), self._tables.received(zombie_id)
        if zombie is None or not waiting or zombie.status is not ZombieStatus.ACTIVE:
            return None
        if (waiting[0].retry_at or 0) > self._tables.now():
            return None
        head = self._tables.heads[zombie_id]
        if head.live_lease_id is not None or self._tables.workspaces[zombie.workspace_id].paused:
            return None
        return ReadyAgent(
            zombie_id=zombie_id,
            workspace_id=zombie.workspace_id,
            tenant_id=zombie.tenant_id,
            required_tags=zombie.required_tags,
            allows_unsandboxed=zombie.allows_unsandboxed,
            oldest_event_at=waiting[0].created_at,
            last_runner_id=head.last_runner_id,
        )


def _listed(event: Event, name: str, whole_bytes: int) -> ListedEvent:
    request, response = len(event.request_json.encode()), _bytes_of(event.response_text)
    evidence = _bytes_of(json_or_none(event.evidence))
    kept = {
        **{name: getattr(event, name) for name in Event.__struct_fields__},
        "checkpoint": None,
        "request_json": "null" if request > whole_bytes else event.request_json,
        "response_text": None if (response or 0) > whole_bytes else event.response_text,
        "evidence": None if (evidence or 0) > whole_bytes else event.evidence,
    }
    return ListedEvent(
        **kept,
        request_bytes=request,
        response_bytes=response,
        evidence_bytes=evidence,
        zombie_name=name,
    )


def _bytes_of(text: str | None) -> int | None:
    return None if text is None else len(text.encode())


class MemoryLeases(MemoryStore):
    async def load(self, lease_id: UUID) -> Lease | None:
        await self._round_trip()
        return self._tables.leases.get(lease_id)

    async def load_with_gates(self, lease_id: UUID) -> tuple[Lease, Sequence[Gate]] | None:
        await self._round_trip()
        lease = self._tables.leases.get(lease_id)
        return None if lease is None else (lease, gates_of(self._tables, lease_id))

    def _live(self) -> list[Lease]:
        return [lease for lease in self._tables.leases.values() if lease.status in LIVE_LEASE]

    async def live_of_runner(self, runner_id: UUID) -> Sequence[Lease]:
        await self._round_trip()
        return sorted(
            (lease for lease in self._live() if lease.runner_id == runner_id), key=lambda lease: lease.id
        )

    async def live_of_zombie(self, zombie_id: UUID) -> Lease | None:
        await self._round_trip()
        return next((lease for lease in self._live() if lease.zombie_id == zombie_id), None)

    async def count_live_by_runner(self, runner_ids: Sequence[UUID]) -> dict[UUID, int]:
        await self._round_trip()
        held = Counter(lease.runner_id for lease in self._live())
        return {runner_id: held[runner_id] for runner_id in runner_ids}

    async def expired(self, *, limit: int) -> Sequence[UUID]:
        await self._round_trip()
        now = self._tables.now()
        late = [lease for lease in self._live() if lease.expires_at <= now]
        return [lease.id for lease in sorted(late, key=lambda lease: (lease.expires_at, lease.id))[:limit]]


def gates_of(tables: Tables, lease_id: UUID) -> list[Gate]:
    """The rows of one lease, oldest first."""
    mine = (gate for gate in tables.gates.values() if gate.lease_id == lease_id)
    return sorted(mine, key=lambda gate: (gate.requested_at, gate.id))


class MemoryGates(MemoryStore):
    async def load(self, gate_id: UUID) -> Gate | None:
        await self._round_trip()
        return self._tables.gates.get(gate_id)

    async def find_by_action(self, zombie_id: UUID, action_id: str) -> Gate | None:
        await self._round_trip()
        same = [
            g for g in self._tables.gates.values() if (g.zombie_id, g.action_id) == (zombie_id, action_id)
        ]
        return max(same, key=lambda g: (g.requested_at, g.id), default=None)

    async def list(
        self,
        workspace_id: UUID,
        *,
        limit: int,
        status: GateStatus | None = None,
        zombie_id: UUID | None = None,
        gate_kind: str | None = None,
        order: GateOrder = GateOrder.OLDEST,
        after: Page | None = None,
    ) -> Sequence[Gate]:
        await self._round_trip()
        newest_first = order is not GateOrder.OLDEST

        def place(gate: Gate) -> tuple[int, UUID]:
            page = place_of(gate, order)
            return page.created_at, page.id

        found = [
            g
            for g in self._tables.gates.values()
            if g.workspace_id == workspace_id
            and (status is None or g.status is status)
            and (zombie_id is None or g.zombie_id == zombie_id)
            and (gate_kind is None or g.gate_kind == gate_kind)
            and (order is not GateOrder.DECIDED or g.status is not GateStatus.PENDING)
            and (
                after is None
                or (
                    place(g) != (after.created_at, after.id)
                    and (place(g) < (after.created_at, after.id)) is newest_first
                )
            )
        ]
        return sorted(found, key=place, reverse=newest_first)[:limit]

    async def pending(self, workspace_id: UUID, *, most: int) -> int:
        await self._round_trip()
        found = (
            gate.workspace_id == workspace_id and gate.status is GateStatus.PENDING
            for gate in self._tables.gates.values()
        )
        return min(most, sum(found))

    async def of_lease(self, lease_id: UUID) -> Sequence[Gate]:
        await self._round_trip()
        return gates_of(self._tables, lease_id)

    async def overdue(self, *, limit: int) -> Sequence[UUID]:
        await self._round_trip()
        now = self._tables.now()
        late = [
            g for g in self._tables.gates.values() if g.status is GateStatus.PENDING and g.timeout_at <= now
        ]
        return [g.id for g in sorted(late, key=lambda g: (g.timeout_at, g.id))[:limit]]

    async def orphaned(self, *, limit: int) -> Sequence[UUID]:
        await self._round_trip()
        events = self._tables.events
        return [
            gate.id
            for gate in self._tables.gates.values()
            if gate.status is GateStatus.PENDING
            and (gate.event_id not in events or events[gate.event_id].completed_at is not None)
        ][:limit]

    async def asked(
        self, zombie_id: UUID, tool_name: str, action_name: str, *, since: int, limit: int
    ) -> Sequence[tuple[int, str]]:
        await self._round_trip()
        found = [
            gate
            for gate in self._tables.gates.values()
            if (gate.zombie_id, gate.tool_name, gate.action_name) == (zombie_id, tool_name, action_name)
            and gate.lease_id is not None
            and not self._tables.leases[gate.lease_id].shadow
            and gate.requested_at >= since
        ]
        ordered = sorted(found, key=lambda gate: (gate.requested_at, gate.id))
        return [(gate.requested_at, gate.action_id) for gate in ordered[-limit:]]
