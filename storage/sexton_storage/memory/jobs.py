"""Bulk jobs in memory, and the events that they are about."""

from collections import Counter
from collections.abc import Mapping, Sequence
from uuid import UUID

from msgspec.structs import replace

from sexton_storage.errors import Conflict
from sexton_storage.event_filter.predicate import Subject, picks
from sexton_storage.memory.base import MemoryStore
from sexton_storage.memory.tables import Tables
from sexton_storage.paging import Page
from sexton_storage.records.events import Event
from sexton_storage.records.frame_kinds import FrameKind
from sexton_storage.records.jobs import (
    OVER,
    Candidate,
    Job,
    JobKind,
    JobStatus,
    Selection,
    ShadowPair,
    Survey,
)
from sexton_storage.terms import EVENTS_COUNTED, JOBS_KEEP_MS


class MemoryJobs(MemoryStore):
    async def add(self, job: Job, *, limit: int) -> bool:
        await self._round_trip()
        others = [
            one
            for one in self._tables.jobs.values()
            if one.workspace_id == job.workspace_id and one.status not in OVER and one.id != job.id
        ]
        if len(others) >= limit:
            return False
        self._tables.jobs.setdefault(job.id, job)
        return True

    async def load(self, job_id: UUID) -> Job | None:
        await self._round_trip()
        return self._tables.jobs.get(job_id)

    async def save(self, job: Job) -> None:
        await self._round_trip()
        kept = self._tables.jobs.get(job.id)
        if kept is None or kept.version != job.version - 1:
            raise Conflict(f"job {job.id} is not at version {job.version - 1}")
        self._tables.jobs[job.id] = job

    async def list(self, workspace_id: UUID, *, limit: int, before: Page | None = None) -> Sequence[Job]:
        await self._round_trip()
        found = [
            job
            for job in self._tables.jobs.values()
            if job.workspace_id == workspace_id
            and (before is None or (job.created_at, job.id) < (before.created_at, before.id))
        ]
        found.sort(key=lambda job: (job.created_at, job.id), reverse=True)
        return [replace(job, page=(), page_agents=()) for job in found[:limit]]

    async def due(self, *, now: int, limit: int) -> Sequence[UUID]:
        await self._round_trip()
        moving = [job for job in self._tables.jobs.values() if job.status not in {*OVER, JobStatus.PAUSED}]
        moving.sort(key=lambda job: (job.status is JobStatus.WAITING, job.created_at, job.id), reverse=True)
        first = {job.workspace_id: job for job in moving}
        free = sorted((job for job in first.values() if job.held_until <= now), key=lambda j: j.held_until)
        return [job.id for job in free[:limit]]

    async def survey(self, selection: Selection, *, sample: int) -> Survey:
        await self._round_trip()
        until = len(self._tables.arrivals)
        found = self._found(selection, (-1, 0), until)
        return Survey(min(EVENTS_COUNTED, len(found)), until, tuple(event.id for event in found[:sample]))

    async def page(
        self, selection: Selection, *, after: tuple[int, int], until_arrival: int, limit: int
    ) -> Sequence[Candidate]:
        await self._round_trip()
        arrivals = self._tables.arrivals
        return [
            Candidate(e.id, e.zombie_id, e.created_at, arrivals[e.id], len(e.request_json.encode()))
            for e in self._found(selection, after, until_arrival)[:limit]
        ]

    async def known(self, event_ids: Sequence[UUID]) -> frozenset[UUID]:
        await self._round_trip()
        return frozenset(self._tables.events.keys() & set(event_ids))

    async def spent(self, job_id: UUID) -> int:
        await self._round_trip()
        tables = self._tables
        mine = [event for event in tables.events.values() if event.shadow_job == job_id]
        open_ones = [event.id for event in mine if event.completed_at is None]
        rows = [row for event_id in open_ones for row in tables.metering.get(event_id, {}).values()]
        ended = sum(event.charged_nanos for event in mine if event.completed_at is not None)
        return ended + sum(row.charged_nanos for row in rows)

    async def shadows(self, job_id: UUID, *, limit: int, after: Page | None = None) -> Sequence[ShadowPair]:
        await self._round_trip()
        found = [
            event
            for event in self._tables.events.values()
            if event.shadow_job == job_id
            and (after is None or (event.created_at, event.id) > (after.created_at, after.id))
        ]
        found.sort(key=lambda event: (event.created_at, event.id))
        return [self._pair(event) for event in found[:limit]]

    def _pair(self, event: Event) -> ShadowPair:
        tables = self._tables
        original = None if event.resumes_event_id is None else tables.events.get(event.resumes_event_id)
        asked = sorted(
            (gate.requested_at, gate.tool_name, gate.action_name)
            for gate in tables.gates.values()
            if gate.event_id == event.id
        )
        return ShadowPair(
            event,
            original,
            self._tools(event),
            {} if original is None else self._tools(original),
            tuple(f"{tool} {action}" for _, tool, action in asked),
        )

    def _tools(self, event: Event) -> Mapping[str, int]:
        frames = self._tables.frames.get(event.zombie_id, ())
        return Counter(
            str(frame.data.get("name"))
            for frame in frames
            if frame.event_id == event.id and frame.kind == FrameKind.TOOL_CALL_COMPLETED
        )

    def _found(self, selection: Selection, after: tuple[int, int], until: int) -> Sequence[Event]:
        tables = self._tables
        ended = selection.kind is not JobKind.CANCEL
        found = [
            event
            for event in tables.events.values()
            if event.workspace_id == selection.workspace_id
            and (event.completed_at is not None) is ended
            and not (ended and event.shadow_job is not None)
            and tables.arrivals[event.id] <= until
            and (event.created_at, tables.arrivals[event.id]) > after
            and (selection.failure_id is None or tables.failure_of.get(event.id) == selection.failure_id)
            and picks(selection.filter, _subject(tables, event))
        ]
        return sorted(found, key=lambda event: (event.created_at, tables.arrivals[event.id]))


def _subject(tables: Tables, event: Event) -> Subject:
    agent = tables.zombies[event.zombie_id]
    runners = (lease.runner_id for lease in tables.leases.values() if lease.event_id == event.id)
    return Subject(event, agent.name, agent.required_tags, frozenset(runners))


def sweep_jobs(tables: Tables, now: int) -> int:
    """Delete those that are over for long; how many."""
    old = [
        job.id
        for job in tables.jobs.values()
        if job.ended_at is not None and job.ended_at <= now - JOBS_KEEP_MS
    ]
    for job_id in old:
        del tables.jobs[job_id]
    return len(old)
