"""Bulk jobs: kept by version, due one a workspace, and about the events that fit."""

from typing import Any
from uuid import UUID

import pytest
from msgspec.structs import replace

from sexton_storage.errors import Conflict
from sexton_storage.event_filter.parse import parse_filter
from sexton_storage.paging import Page
from sexton_storage.records.events import EventStatus
from sexton_storage.records.jobs import Job, JobKind, JobStatus, Selection
from sexton_storage.records.zombies import Zombie
from sexton_storage.terms import JOBS_KEEP_MS
from sexton_storage.writes import EventEnd
from tests.worlds.storage import StorageWorld, new_id

FIRST = (-1, 0)


def job_of(world: StorageWorld, **changes: Any) -> Job:
    job = Job(
        new_id(),
        world.tenant_id,
        world.workspace_id,
        JobKind.REPLAY,
        JobStatus.WAITING,
        1,
        "status:agent_error",
        "api:1",
        "k",
        world.now,
        world.now,
        10**9,
        3,
        request_json='{"a": 1}',
    )
    return replace(job, **changes)


async def ended(world: StorageWorld, agent: Zombie, status: EventStatus = EventStatus.AGENT_ERROR) -> UUID:
    event = await world.append(agent)
    lease = (await world.claim(agent)).lease
    assert lease.event_id == event.id
    await world.end(lease, EventEnd(status, response_text="it broke", evidence={"n": 1}))
    return event.id


def selection(world: StorageWorld, kind: JobKind, text: str, failure_id: UUID | None = None) -> Selection:
    return Selection(world.workspace_id, kind, parse_filter(text, now=world.now), failure_id)


async def found(world: StorageWorld, wanted: Selection, until: int = 10**9) -> list[UUID]:
    page = await world.storage.jobs.page(wanted, after=FIRST, until_arrival=until, limit=99)
    return [one.event_id for one in page]


async def test_a_shadow_changes_nothing_but_what_was_spent(
    world: StorageWorld,
) -> None:
    agent, job = await world.agent(), job_of(world, kind=JobKind.SHADOW, budget_nanos=9, events_limit=2)
    first = await ended(world, agent, EventStatus.PROCESSED)
    trust = await world.storage.improvement.trust(agent.id)
    await world.storage.jobs.add(job, limit=9)
    for _ in range(2):
        await world.append(agent, shadow_job=job.id, resumes_event_id=first)
        lease = (await world.claim(agent)).lease
        kept = await world.storage.leases.load(lease.id)
        failed = EventEnd(EventStatus.AGENT_ERROR, response_text="worse")
        await world.end(lease, failed, slice=world.slice_of(lease, 5))
        assert kept is not None
        assert (lease.shadow, kept.shadow) == (True, True)
    pairs = await world.storage.jobs.shadows(job.id, limit=9)
    last = pairs[0].shadow
    rest = await world.storage.jobs.shadows(job.id, limit=9, after=Page(last.created_at, last.id))
    scores = await world.storage.improvement.scores(agent.id, limit=9)
    kinds = (JobKind.SHADOW, JobKind.REPLAY)
    repeated = [await found(world, selection(world, kind, f"agent:{agent.id}")) for kind in kinds]

    assert await world.storage.jobs.load(job.id) == job
    assert await world.storage.jobs.spent(job.id) == 10
    assert [pair.original and pair.original.id for pair in pairs] == [first, first]
    assert (len(pairs), rest) == (2, [pairs[1]])
    assert (pairs[0].tools, pairs[0].would_ask) == ({}, ())
    assert repeated == [[first], [first]], "shadows are repeated by nobody"
    assert [score.event_id for score in scores] == [first]
    assert await world.storage.improvement.trust(agent.id) == trust


async def test_a_job_is_saved_by_the_version_that_was_seen(world: StorageWorld) -> None:
    jobs, job = world.storage.jobs, job_of(world)
    assert await jobs.add(job, limit=2)
    assert await jobs.add(replace(job, filter="another"), limit=2)
    assert await jobs.load(job.id) == job
    assert not await jobs.add(job_of(world), limit=1)

    page = tuple(new_id() for _ in range(3))
    changed = replace(
        job,
        version=2,
        status=JobStatus.RUNNING,
        page=page,
        page_agents=page,
        holder=new_id(),
        held_until=7,
        refused={"UZ-ZMB-012": 2},
        waits_for="busy",
        started_at=5,
        done=1,
        skipped=2,
        failed=2,
    )
    await jobs.save(changed)
    with pytest.raises(Conflict):
        await jobs.save(replace(changed, done=9))
    assert await jobs.load(job.id) == changed
    assert await jobs.list(world.workspace_id, limit=9) == [replace(changed, page=(), page_agents=())]
    assert await jobs.list(world.workspace_id, limit=9, before=Page(job.created_at, job.id)) == []

    await jobs.save(replace(changed, version=3, status=JobStatus.DONE, ended_at=world.now))
    assert await jobs.add(job_of(world), limit=1)

    await world.storage.instance.sweep(world.now + JOBS_KEEP_MS + 1)
    assert await jobs.load(job.id) is None


async def test_one_job_of_a_workspace_is_due_and_none_that_somebody_holds(world: StorageWorld) -> None:
    other = await world.beside()
    first, second = job_of(world), job_of(world, created_at=world.now + 9)
    elsewhere, paused = job_of(other, held_until=5), job_of(other, status=JobStatus.PAUSED, created_at=1)
    for job in (second, first, elsewhere, paused):
        assert await world.storage.jobs.add(job, limit=9)
    assert set(await world.storage.jobs.due(now=5, limit=9)) == {first.id, elsewhere.id}
    assert await world.storage.jobs.due(now=4, limit=9) == [first.id]

    running = replace(second, version=2, status=JobStatus.RUNNING, held_until=5)
    await world.storage.jobs.save(running)

    assert await world.storage.jobs.due(now=4, limit=9) == []
    assert set(await world.storage.jobs.due(now=5, limit=9)) == {second.id, elsewhere.id}


async def test_a_replay_is_about_what_is_over_and_a_cancellation_about_what_is_not(
    world: StorageWorld,
) -> None:
    agent, other = await world.agent(), await (await world.beside()).agent()
    failed, well = await ended(world, agent), await ended(world, agent, EventStatus.PROCESSED)
    again = await ended(world, agent)
    runs, waits = (await world.append(agent)).id, (await world.append(agent)).id
    await world.claim(agent)
    await world.append(other)
    replays, cancels = (
        selection(world, JobKind.REPLAY, "after:0"),
        selection(world, JobKind.CANCEL, "after:0"),
    )

    survey = await world.storage.jobs.survey(replays, sample=2)
    assert (survey.total, survey.sample) == (3, (failed, well))
    assert await found(world, replays) == [failed, well, again]
    assert await found(world, selection(world, JobKind.REPLAY, "status:agent_error")) == [failed, again]
    assert await found(world, cancels) == [runs, waits]
    assert await found(world, selection(world, JobKind.CANCEL, "status:received")) == [waits]
    assert await found(world, selection(world, JobKind.CANCEL, "status:processed")) == []

    late = await ended_beside(world)
    assert late in await found(world, replays)
    assert await found(world, replays, survey.until_arrival) == [failed, well, again]

    page = await world.storage.jobs.page(replays, after=FIRST, until_arrival=10**9, limit=1)
    rest = await world.storage.jobs.page(
        replays, after=(page[0].created_at, page[0].arrival), until_arrival=survey.until_arrival, limit=9
    )
    assert [one.event_id for one in rest] == [well, again]
    assert (page[0].zombie_id, page[0].request_bytes) == (agent.id, len('{"n": 1}'))

    assert await world.storage.jobs.known([failed, IT]) == {failed}

    [asked] = await world.storage.events.load_requests([failed, IT])
    assert (asked.request_json, asked.response_text, asked.evidence) == ('{"n": 1}', None, None)


async def ended_beside(world: StorageWorld) -> UUID:
    return await ended(world, await world.agent())


IT = UUID(int=1)
