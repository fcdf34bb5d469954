"""How events are searched, and what is told of one: what became of it, and all that it could wait for."""

from uuid import UUID

import trio
from msgspec.structs import replace

from sexton_storage.event_filter.parse import parse_filter
from sexton_storage.records.events import EventStatus, Found
from sexton_storage.records.frames import FramePlace, place_of
from sexton_storage.records.insights import (
    AHEAD_CAP,
    MINUTE_MS,
    SLACK_BAND_MS,
    EventSituation,
    RunnerState,
    TagsWaiting,
)
from sexton_storage.records.runners import AdminState
from sexton_storage.records.zombies import ZombieStatus
from sexton_storage.writes import AppendFrames, CancelEvent, EventEnd, OpenGate
from tests.patience import PATIENCE_S
from tests.worlds.storage import HOUR_MS, StorageWorld, new_id


async def test_a_search_goes_through_its_events_newest_first(world: StorageWorld) -> None:
    agent, other = await world.agent(), await world.agent()
    foreign = await world.beside()
    await foreign.append(await foreign.agent(), event_type="push")
    at = world.now
    events = [
        await world.append(agent, event_type="push" if i % 3 == 0 else "pull", created_at=at + i)
        for i in range(10)
    ]
    await world.append(other, event_type="push", created_at=at - 5)
    await world.storage.journal.write(CancelEvent(agent.id, events[3].id, at, ()))

    async def search(text: str, **more: object) -> Found:
        found = parse_filter(text, now=at)
        return await world.storage.events.search(world.workspace_id, found, limit=9, **more)  # type: ignore[arg-type] # one option each

    async def types(text: str, **more: object) -> list[UUID]:
        return [event.id for event in (await search(text, **more)).events]

    pushes = [events[9].id, events[6].id, events[3].id, events[0].id]
    assert await types("type:push", zombie_id=agent.id) == pushes
    assert await types(f"type:push agent:{agent.name}") == pushes
    assert await types(f"type:push agent:{agent.id}") == pushes
    assert await types("type:push agent:no-such-agent") == []
    assert await types("type:push status:cancelled") == [events[3].id]
    assert await types("type:push status:received", zombie_id=agent.id) == [pushes[0], pushes[1], pushes[3]]
    assert await types("status:received status:cancelled") == []
    assert await types(f"id:{events[4].id}") == [events[4].id]
    assert await types(f"after:{at + 3} before:{at + 7} type:push") == [events[6].id, events[3].id]

    # It stops where it has looked through enough, found or not, and goes on from there.
    first = await search("type:push", zombie_id=agent.id, look_through=2)
    assert [event.id for event in first.events] == pushes[:1]
    assert first.stopped_at is not None
    assert first.stopped_at.id == events[8].id

    none = await search("type:push", zombie_id=agent.id, look_through=2, before=first.stopped_at)
    assert [event.id for event in none.events] == [events[6].id]

    nothing = await search("text:absent", look_through=3)
    assert (nothing.events, nothing.stopped_at is not None) == ([], True)
    assert (await search("text:absent")).stopped_at is None

    among = await world.storage.events.picked_among(
        [events[0].id, events[1].id, new_id()], parse_filter("type:push", now=at)
    )
    assert among == {events[0].id}


async def test_what_became_of_an_event_is_told_attempt_by_attempt(world: StorageWorld) -> None:
    agent = await world.agent()
    event = await world.append(agent)
    first = (await world.claim(agent)).lease
    gate = world.gate_of(event, first)
    await world.storage.journal.write(OpenGate(gate, first.fencing_token, ()))
    renewed, _ = await world.renew(first, nanos=70)
    await world.end(renewed, EventEnd(EventStatus.RECEIVED), nanos=30)
    second = (await world.claim(agent)).lease
    await world.end(second, EventEnd(EventStatus.PROCESSED, response_text="done"), nanos=5)

    history = await world.storage.insights.history(event.id)

    assert [(one.lease.id, one.lease.attempt, one.charged_nanos) for one in history.attempts] == [
        (first.id, 1, 100),
        (second.id, 2, 5),
    ]
    assert [one.id for one in history.gates] == [gate.id]
    assert (await world.storage.insights.history(new_id())).attempts == ()


async def test_what_became_of_the_events_of_each_minute_is_counted(world: StorageWorld) -> None:
    agent = await world.agent()
    minute = world.now // MINUTE_MS * MINUTE_MS
    await world.append(agent, created_at=minute - 2 * MINUTE_MS)
    await world.end((await world.claim(agent)).lease, EventEnd(EventStatus.AGENT_ERROR), nanos=7)
    first = await world.append(agent, created_at=minute - MINUTE_MS)
    lease = (await world.claim(agent)).lease
    await world.end(lease, EventEnd(EventStatus.PROCESSED), nanos=5)
    await world.append(agent, created_at=minute - 1)
    insights, of = world.storage.insights, world.workspace_id

    found = await insights.throughput(of, since=minute - 2 * MINUTE_MS, limit=9)

    waited = lease.granted_at - first.created_at

    assert [(one.at, one.came, one.done, one.failed, one.charged_nanos) for one in found] == [
        (minute - 2 * MINUTE_MS, 1, 0, 1, 7),
        (minute - MINUTE_MS, 2, 1, 0, 5),
    ]
    assert found[1].longest_wait_ms == waited
    assert [one.came for one in await insights.throughput(of, since=0, limit=1)] == [1]
    assert await insights.throughput(of, since=minute, limit=9) == []
    assert await insights.throughput(new_id(), since=0, limit=9) == []


async def test_what_waits_is_told_by_label_with_what_leases_have_left(world: StorageWorld) -> None:
    minute, insights, of = world.now // MINUTE_MS * MINUTE_MS, world.storage.insights, world.workspace_id
    since = minute - 2 * MINUTE_MS
    plain = await world.agent(required_tags=())
    stopped = await world.agent(required_tags=(), status=ZombieStatus.STOPPED)
    able = await world.agent(required_tags=("gpu",))
    foreign = await world.beside()
    await foreign.append(await foreign.agent())
    first = await world.append(plain, created_at=minute - MINUTE_MS)
    lease = (await world.claim(plain)).lease
    later = await world.append(plain, created_at=minute - MINUTE_MS + 1)
    before = await world.append(able, created_at=since - HOUR_MS)
    gone = await world.append(able, created_at=since)
    await world.storage.journal.write(CancelEvent(able.id, gone.id, minute, ()))
    halted = await world.append(stopped, created_at=minute - 2)

    found = await insights.queue(of, since=since, limit=9)

    assert found.waiting == (
        TagsWaiting((), 2, later.created_at),
        TagsWaiting(("gpu",), 1, before.created_at),
    )
    assert [(one.name, one.events, one.oldest_id) for one in found.longest] == [
        (able.name, 1, before.id),
        (plain.name, 1, later.id),
        (stopped.name, 1, halted.id),
    ]
    assert [(one.required_tags, one.oldest_at, one.left_at is None) for one in found.minutes] == [
        ((), first.created_at, True),
        (("gpu",), gone.created_at, False),
    ]

    [band] = found.slack
    assert band.leases == 1
    assert 0 <= band.least_ms - band.from_ms < SLACK_BAND_MS
    assert abs(lease.expires_at - found.at - band.least_ms) < SLACK_BAND_MS
    assert sum(one.leases for one in await world.storage.fleet.slack()) >= 1

    [longest] = (await insights.queue(of, since=since, limit=1)).longest
    assert longest.oldest_at == before.created_at
    assert (await insights.queue(of, since=since, limit=1)).waiting == (
        TagsWaiting(("gpu",), 1, before.created_at),
    )
    assert (await insights.queue(new_id(), since=0, limit=9)).minutes == ()


async def test_all_that_an_event_could_wait_for_is_told_at_once(world: StorageWorld) -> None:
    tags = ("gpu", f"only-{world.workspace_id}")
    agent = await world.agent(required_tags=tags)
    rival = await world.agent(required_tags=tuple(reversed(tags)))
    stopped, unlike = await world.agent(required_tags=()), await world.agent(required_tags=("gpu",))
    at = world.now
    runner = world.runner_record(tenant_id=world.tenant_id, last_seen_at=None, offers=("cpu<=4",))
    foreign = world.runner_record(tenant_id=new_id())
    revoked = world.runner_record(tenant_id=world.tenant_id)
    for one in (runner, foreign, revoked):
        await world.storage.runners.enrol(one, enrolment_hash=None)
    await world.storage.runners.save(replace(revoked, version=2, admin_state=AdminState.REVOKED))
    running = await world.append(agent, created_at=at - 50)
    ahead = await world.append(agent, created_at=at - 40)
    for other in (rival, stopped, unlike):
        await world.append(other, created_at=at - 30)
    waits = await world.append(agent, created_at=at - 20)
    await world.append(rival, created_at=at - 10)
    lease = (await world.claim(agent, runner_id=runner.id)).lease
    await world.renew(lease, nanos=40)

    found = await world.storage.insights.situation(waits.id)
    assert isinstance(found, EventSituation)
    assert (found.event.id, found.agent.name, found.agent.compiled) == (waits.id, agent.name, agent.compiled)
    assert (found.workspace_paused, found.has_credit) == (False, True)
    assert (found.spent_day, found.spent_month) == (40, 40)
    assert found.running is not None
    assert (found.running.id, found.running.event_id) == (lease.id, running.id)
    assert (found.ahead_of_agent, found.first_of_agent, found.first_retry_at) == (1, ahead.id, None)
    assert found.ahead == 1 <= AHEAD_CAP

    mine = [one for one in found.runners if one.id in {runner.id, foreign.id, revoked.id}]
    assert [replace(one, starts_since=0) for one in mine] == [
        RunnerState(runner.id, ("gpu", "eu", "cpu<=4"), "bubblewrap", AdminState.ACTIVE, None, 4, 1, 1, 0)
    ]
    assert await world.storage.insights.situation(new_id()) is None


async def test_the_frames_of_a_workspace_are_read_in_the_order_of_their_commits(world: StorageWorld) -> None:
    first, second, foreign = await world.agent(), await world.agent(), await world.beside()
    stranger = await foreign.agent()
    frames, journal = world.storage.frames, world.storage.journal
    start = await frames.workspace_head()
    for agent in (second, stranger, first, second):
        await journal.write(AppendFrames(agent.id, tuple(world.frame(agent) for _ in range(2))))
    expected = [
        (agent.id, seq) for agent, seq in ((second, 1), (first, 1), (second, 3)) for seq in (seq, seq + 1)
    ]

    read: list[tuple[UUID, int]] = []
    after = start
    with trio.fail_after(PATIENCE_S):
        # Other databases of the same server may hold commits back for a moment.
        while len(read) < len(expected):
            page = await frames.read_workspace(world.workspace_id, after=after, limit=4)
            read += [(frame.zombie_id, frame.seq) for frame in page.frames]
            assert list(page.places) == sorted(page.places)
            assert page.upto >= after

            after = page.upto if page.frames else after

    assert read == expected
    assert place_of(str(after)) == after

    # Of what is small enough together, and at least one.
    one = await frames.read_workspace(world.workspace_id, after=start, limit=9, max_bytes=1)
    assert len(one.frames) == 1

    async def gap(workspace_id: UUID, place: FramePlace, keep_ms: int = HOUR_MS) -> bool:
        return await frames.has_gap(workspace_id, place, keep_ms=keep_ms, keep_frames=3)

    # What followed a place is gone, or not.
    assert [await gap(world.workspace_id, place) for place in (start, one.upto, after)] == [False] * 3
    assert await gap(world.workspace_id, start, -HOUR_MS)
    assert await gap(foreign.workspace_id, one.upto)

    await frames.prune(keep_ms=10 * HOUR_MS, keep_frames=3, limit=99)

    assert [await gap(world.workspace_id, place) for place in (start, one.upto, after)] == [True, True, False]
