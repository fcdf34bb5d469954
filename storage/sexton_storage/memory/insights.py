"""What people ask of one event, in memory."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any
from uuid import UUID

from sexton_storage.memory.base import MemoryStore
from sexton_storage.memory.overview import slack_of
from sexton_storage.records.events import Event, EventStatus
from sexton_storage.records.gates import Gate, GateStatus
from sexton_storage.records.insights import (
    AHEAD_CAP,
    ATTEMPTS_CAP,
    LONGEST_CAP,
    MINUTE_MS,
    RUNNERS_CAP,
    STARTS_CAP,
    STARTS_WINDOW_MS,
    AgentWaiting,
    Attempt,
    EventHistory,
    EventSituation,
    MinuteOfEvents,
    QueueLook,
    RunnerState,
    TagsMinute,
    TagsWaiting,
)
from sexton_storage.records.runners import AdminState, Runner
from sexton_storage.records.zombies import Zombie, ZombieStatus
from sexton_storage.rules import LIVE_LEASE
from sexton_storage.scopes import is_within, scope_of


class MemoryInsights(MemoryStore):
    async def history(self, event_id: UUID) -> EventHistory:
        await self._round_trip()
        leases = sorted(
            (lease for lease in self._tables.leases.values() if lease.event_id == event_id),
            key=lambda lease: lease.fencing_token,
        )
        metering = self._tables.metering.get(event_id, {})
        attempts = (
            Attempt(lease, sum(row.charged_nanos for (of, _), row in metering.items() if of == lease.attempt))
            for lease in leases[-ATTEMPTS_CAP:]
        )
        return EventHistory(tuple(attempts), tuple(self._gates(event_id)[-ATTEMPTS_CAP:]))

    def _gates(self, event_id: UUID) -> list[Gate]:
        found = (gate for gate in self._tables.gates.values() if gate.event_id == event_id)
        return sorted(found, key=lambda gate: (gate.requested_at, gate.id))

    async def situation(self, event_id: UUID) -> EventSituation | None:
        await self._round_trip()
        tables = self._tables
        event = tables.events.get(event_id)
        if event is None:
            return None
        agent, now = tables.zombies[event.zombie_id], tables.now()
        waiting = tables.received(agent.id)
        before = [e for e in waiting if tables.arrivals[e.id] < tables.arrivals[event_id]]
        spent, tenant = tables.spent(agent.id, now), tables.tenants[agent.tenant_id]
        return EventSituation(
            event=event,
            agent=agent,
            at=now,
            workspace_paused=tables.workspaces[agent.workspace_id].paused,
            has_credit=tenant.has_credit,
            spent_day=spent.day,
            spent_month=spent.month,
            running=tables.live_lease(agent.id),
            ahead_of_agent=min(AHEAD_CAP, len(before)),
            first_of_agent=waiting[0].id if waiting else None,
            first_retry_at=waiting[0].retry_at if waiting else None,
            ahead=self._ahead(agent, event.created_at),
            gates=tuple(gate for gate in self._gates(event_id) if gate.status is GateStatus.PENDING),
            runners=tuple(self._state(runner, now) for runner in self._runners(agent)),
        )

    async def throughput(self, workspace_id: UUID, *, since: int, limit: int) -> Sequence[MinuteOfEvents]:
        await self._round_trip()
        of_workspace = (
            event
            for event in self._tables.events.values()
            if event.workspace_id == workspace_id and event.created_at >= since
        )
        newest = sorted(of_workspace, key=lambda event: (event.created_at, event.id))[-limit:]
        minutes = groupby(newest, key=lambda event: event.created_at // MINUTE_MS * MINUTE_MS)
        return [_minute(at, list(events)) for at, events in minutes]

    async def queue(self, workspace_id: UUID, *, since: int, limit: int) -> QueueLook:
        await self._round_trip()
        tables = self._tables
        events = sorted(
            (event for event in tables.events.values() if event.workspace_id == workspace_id),
            key=lambda event: (event.created_at, tables.arrivals[event.id]),
        )
        newest = [event for event in events if event.created_at >= since][-limit:]
        waiting = [event for event in events if event.status is EventStatus.RECEIVED][:limit]
        live = [one for one in tables.leases.values() if one.status in LIVE_LEASE]
        return QueueLook(
            tables.now(),
            tuple(self._waiting(tags, found) for (tags,), found in self._grouped(waiting, lambda _: ())),
            self._longest(waiting),
            tuple(
                _waited(tags, found)
                for (tags, _), found in self._grouped(newest, lambda event: (event.created_at // MINUTE_MS,))
            ),
            tuple(slack_of([one for one in live if one.workspace_id == workspace_id], tables.now())),
        )

    def _grouped(
        self, events: Sequence[Event], more: Callable[[Event], tuple[int, ...]]
    ) -> list[tuple[tuple[Any, ...], list[Event]]]:
        groups: dict[tuple[Any, ...], list[Event]] = defaultdict(list)
        for event in events:
            groups[tuple(self._tables.zombies[event.zombie_id].required_tags), *more(event)].append(event)
        return sorted(groups.items(), key=lambda group: group[0])

    def _waiting(self, tags: tuple[str, ...], events: Sequence[Event]) -> TagsWaiting:
        zombies, workspaces = self._tables.zombies, self._tables.workspaces
        may_run = (
            event.created_at
            for event in events
            if zombies[event.zombie_id].status is ZombieStatus.ACTIVE
            and not workspaces[event.workspace_id].paused
        )
        return TagsWaiting(tags, len(events), min(may_run, default=None))

    def _longest(self, events: Sequence[Event]) -> tuple[AgentWaiting, ...]:
        """The agents whose oldest event comes first in ``events``, and how many events of each wait."""
        of_agents: dict[UUID, list[Event]] = defaultdict(list)
        for event in events:
            of_agents[event.zombie_id].append(event)
        return tuple(
            AgentWaiting(
                agent, self._tables.zombies[agent].name, len(found), found[0].id, found[0].created_at
            )
            for agent, found in list(of_agents.items())[:LONGEST_CAP]
        )

    def _ahead(self, agent: Zombie, created_at: int) -> int:
        tables = self._tables
        older = sorted(
            (
                e
                for e in tables.events.values()
                if e.status is EventStatus.RECEIVED and e.created_at < created_at
            ),
            key=lambda e: e.created_at,
        )
        others = (tables.zombies[e.zombie_id] for e in older[:AHEAD_CAP])
        return sum(
            other.id != agent.id
            and frozenset(other.required_tags) == frozenset(agent.required_tags)
            and other.allows_unsandboxed is agent.allows_unsandboxed
            and other.status is ZombieStatus.ACTIVE
            and not tables.workspaces[other.workspace_id].paused
            for other in others
        )

    def _runners(self, agent: Zombie) -> list[Runner]:
        mine = [
            runner
            for runner in self._tables.runners.values()
            if runner.admin_state is not AdminState.REVOKED
            and is_within(scope_of(runner), agent.tenant_id, agent.workspace_id)
        ]
        newest = sorted(mine, key=lambda runner: runner.created_at, reverse=True)[:RUNNERS_CAP]
        return sorted(newest, key=lambda runner: runner.id)

    def _state(self, runner: Runner, now: int) -> RunnerState:
        leases = [lease for lease in self._tables.leases.values() if lease.runner_id == runner.id]
        since = now - STARTS_WINDOW_MS
        granted = sorted((lease.granted_at for lease in leases if lease.granted_at >= since), reverse=True)[
            :STARTS_CAP
        ]
        return RunnerState(
            id=runner.id,
            abilities=(*runner.labels, *runner.offers),
            sandbox_tier=runner.sandbox_tier,
            admin_state=runner.admin_state,
            last_seen_at=runner.last_seen_at,
            slots=runner.slots,
            held=sum(lease.status in LIVE_LEASE for lease in leases),
            starts=len(granted),
            starts_since=since if len(granted) < STARTS_CAP else granted[-1],
        )


def _waited(tags: tuple[str, ...], events: Sequence[Event]) -> TagsMinute:
    waits = any(event.first_leased_at is None and event.status is EventStatus.RECEIVED for event in events)
    left = (event.first_leased_at or event.completed_at or event.updated_at for event in events)
    return TagsMinute(tags, events[0].created_at, None if waits else max(left))


def _minute(at: int, events: Sequence[Event]) -> MinuteOfEvents:
    return MinuteOfEvents(
        at=at,
        came=len(events),
        done=sum(event.status is EventStatus.PROCESSED for event in events),
        failed=sum(event.status in {EventStatus.AGENT_ERROR, EventStatus.DEAD_LETTERED} for event in events),
        charged_nanos=sum(event.charged_nanos for event in events),
        longest_wait_ms=max(
            (e.first_leased_at - e.created_at for e in events if e.first_leased_at is not None), default=0
        ),
    )
