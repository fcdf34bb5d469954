"""Bulk jobs in memory, and the events that they are about."""

from collections.abc import Sequence
from uuid import UUID

from msgspec.structs import replace

from sexton_storage.errors import Conflict
from sexton_storage.event_filter.predicate import Subject, picks
from sexton_storage.memory.base import MemoryStore
from sexton_storage.memory.tables import Tables
from sexton_storage.paging import Page
from sexton_storage.records.events import Event
from sexton_storage.records.jobs import OVER, Candidate, Job, JobKind, JobStatus, Selection, Survey
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

    def _found(self, selection: Selection, after: tuple[int, int], until: int) -> Sequence[Event]:
        tables = self._tables
        ended = selection.kind is JobKind.REPLAY
        found = [
            event
            for event in tables.events.values()
            if event.workspace_id == selection.workspace_id
            and (event.completed_at is not None) is ended
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
