"""The fleet as operators look at it: histories, live leases, and the census."""

from msgspec.structs import replace

from sexton_storage.paging import Page
from sexton_storage.records.events import EventStatus
from sexton_storage.records.fleet import HistoryItem, HistoryKind, LabelDemand, Liveness, RunnerGroup
from sexton_storage.records.leases import LeaseStatus
from sexton_storage.records.runners import AdminState, Runner, RunnerChange
from sexton_storage.records.zombies import ZombieStatus
from sexton_storage.terms import CHANGES_KEEP_MS, ONLINE_MS
from sexton_storage.writes import EventEnd
from tests.worlds.storage import HOUR_MS, StorageWorld, new_id


async def enrolled(world: StorageWorld, **changes: object) -> Runner:
    runner = world.runner_record(**changes)
    assert await world.storage.runners.enrol(runner, enrolment_hash=None)
    return runner


async def cordoned(world: StorageWorld, runner: Runner, at: int) -> RunnerChange:
    change = RunnerChange(new_id(), runner.id, at, AdminState.ACTIVE, AdminState.CORDONED, "user:ann")
    wanted = replace(runner, admin_state=AdminState.CORDONED, version=runner.version + 1)
    await world.storage.runners.save(wanted, change)
    return change


async def test_a_runners_history_tells_its_leases_its_standing_and_its_beginning(world: StorageWorld) -> None:
    runner = await enrolled(world, created_at=world.now - 10_000)
    lease = await world.lease(runner_id=runner.id)
    await world.end(lease, EventEnd(EventStatus.PROCESSED))
    await world.lease()
    change = await cordoned(world, runner, world.now + 1_000)
    found = await world.storage.fleet.history(runner.id, limit=10)
    assert [item.kind for item in found] == [HistoryKind.ADMIN_STATE, HistoryKind.LEASE, HistoryKind.ENROLLED]

    standing, held, begun = found
    assert standing.data == {"from": "active", "to": "cordoned", "by": "user:ann"}
    assert (standing.id, standing.at) == (change.id, change.at)
    assert held.at == lease.granted_at
    assert held.data["status"] == "reported"
    assert held.data["event_id"] == str(lease.event_id)
    assert held.data["ended_at"] >= lease.granted_at
    assert begun.data == {
        "host_id": runner.host_id,
        "sandbox_tier": "bubblewrap",
        "labels": ["gpu", "eu"],
        "slots": 4,
    }


async def test_a_history_is_read_page_by_page_without_a_gap_or_a_repeat(world: StorageWorld) -> None:
    runner = await enrolled(world, created_at=world.now - 10_000, slots=5)
    for _ in range(5):
        await world.lease(runner_id=runner.id)
    await cordoned(world, runner, world.now)
    whole = await world.storage.fleet.history(runner.id, limit=100)
    paged: list[HistoryItem] = []
    place: Page | None = None
    while page := await world.storage.fleet.history(runner.id, limit=2, before=place):
        paged += page
        place = Page(page[-1].at, page[-1].id)

    assert paged == list(whole)
    assert len(paged) == 7
    assert await world.storage.fleet.history(new_id(), limit=2) == []


async def test_live_leases_come_with_the_least_time_left_first(world: StorageWorld) -> None:
    late, soon = await world.lease(term_ms=30_000), await world.lease(term_ms=10_000)
    ended = await world.lease()
    await world.end(ended, EventEnd(EventStatus.RECEIVED), status=LeaseStatus.RELEASED)
    found = await world.storage.fleet.live_leases(limit=10)
    runner = world.runner_record()
    await world.storage.runners.enrol(runner, enrolment_hash=None)

    assert await world.storage.runners.hosts([runner.id, new_id()]) == {runner.id: runner.host_id}
    assert found[0].metered_at == found[0].granted_at
    assert [lease.lease_id for lease in found] == [soon.id, late.id]
    assert (found[0].runner_id, found[0].expires_at) == (soon.runner_id, soon.expires_at)
    assert not found[0].cancelling
    assert [lease.lease_id for lease in await world.storage.fleet.live_leases(limit=1)] == [soon.id]


async def test_the_census_counts_what_waits_and_what_is_held(world: StorageWorld) -> None:
    empty = await world.storage.fleet.census()
    assert (empty.queued, empty.leases, empty.gates) == (0, 0, 0)
    assert (empty.oldest_event_at, empty.oldest_gate_at, empty.runners) == (None, None, ())

    agent = await world.agent()
    oldest = await world.append(agent, created_at=world.now - 60_000)
    await world.append(agent)
    lease = await world.lease()
    told = await world.storage.fleet.census()
    assert (told.queued, told.oldest_event_at, told.leases) == (2, oldest.created_at, 1)
    assert abs(told.at - world.now) < 60_000

    await world.end(lease, EventEnd(EventStatus.PROCESSED))
    assert (await world.storage.fleet.census()).leases == 0


async def test_the_census_says_what_each_set_of_labels_wants_of_the_fleet(world: StorageWorld) -> None:
    await enrolled(world, labels=("gpu", "eu"))
    await enrolled(world, labels=("tpu",), admin_state=AdminState.REVOKED)
    ready = await world.agent(required_tags=("gpu", "eu"))
    busy = await world.agent(required_tags=("eu", "gpu"))
    stopped = await world.agent(required_tags=("eu", "gpu"), status=ZombieStatus.STOPPED)
    resting = await world.agent(required_tags=())
    unheard = [await world.agent(required_tags=(tag,)) for tag in ("tpu", "x1", "x2")]
    # Those that came first are of agents that may not run, or have been leased: they are no one's wait.
    await world.append(busy, created_at=world.now - 90_000)
    await world.append(stopped, created_at=world.now - 80_000)
    oldest = await world.append(ready, created_at=world.now - 60_000)
    other = await world.append(unheard[0], created_at=world.now - 50_000)
    for agent in (ready, busy, *unheard[1:]):
        await world.append(agent)
    await world.append(resting)
    back = EventEnd(EventStatus.RECEIVED, give_attempt_back=True, retry_at=world.now + HOUR_MS)
    await world.end((await world.claim(resting)).lease, back)
    await world.claim(busy)

    demand = (await world.storage.fleet.census()).demand
    first, *others = demand

    assert (first.required_tags, first.events, first.slots) == ((), 1, 0)
    assert others == [
        LabelDemand(("eu", "gpu"), 4, 2, oldest.created_at),
        LabelDemand(None, 3, 3, other.created_at),
    ]


async def test_events_that_wait_are_counted_by_what_they_need_of_a_runner(world: StorageWorld) -> None:
    assert list(await world.storage.fleet.waiting()) == []

    leased, stopped = await world.agent(), await world.agent()
    oldest = await world.append(leased, created_at=world.now - 60_000)
    await world.append(leased)
    await world.append(stopped, created_at=world.now - 90_000)
    await world.storage.zombies.save(replace(stopped, status=ZombieStatus.STOPPED, version=2), ())
    need = leased.required_tags, leased.allows_unsandboxed
    [group] = await world.storage.fleet.waiting()
    assert (group.required_tags, group.allows_unsandboxed) == need
    assert (group.events, group.oldest_event_at) == (3, oldest.created_at)


async def test_events_of_those_who_have_runners_of_their_own_are_counted_apart(world: StorageWorld) -> None:
    other = await world.beside()
    for owner in (world, other):
        await owner.append(await owner.agent())
    await enrolled(world, tenant_id=world.tenant_id)
    groups = await world.storage.fleet.waiting()
    assert {(group.tenant_id, group.workspace_id, group.events) for group in groups} == {
        (world.tenant_id, None, 1),
        (None, None, 1),
    }

    await enrolled(world, tenant_id=other.tenant_id, workspace_id=other.workspace_id)
    assert {(g.tenant_id, g.workspace_id) for g in await world.storage.fleet.waiting()} == {
        (world.tenant_id, None),
        (other.tenant_id, other.workspace_id),
    }


async def test_an_agent_that_may_not_run_makes_nobody_look_late(world: StorageWorld) -> None:
    stopped, other = await world.agent(), await world.beside()
    await world.append(stopped, created_at=world.now - 60_000)
    changed = replace(stopped, status=ZombieStatus.STOPPED, version=2)
    await world.storage.zombies.save(changed, ())
    paused = await other.agent()
    await other.append(paused, created_at=world.now - 50_000)
    workspace = await world.storage.workspaces.load(other.workspace_id)
    assert workspace is not None
    assert await world.storage.workspaces.save(replace(workspace, paused=True))

    waits = await world.append(await world.agent(), created_at=world.now - 1_000)
    told = await world.storage.fleet.census()
    assert (told.queued, told.oldest_event_at) == (3, waits.created_at)


async def test_the_census_groups_runners_by_liveness_and_standing(world: StorageWorld) -> None:
    now = world.now
    await enrolled(world)
    seen, busy = await enrolled(world), await enrolled(world, slots=8)
    gone = await enrolled(world)
    await world.lease(runner_id=busy.id)
    await world.storage.runners.touch(
        [(seen.id, now), (busy.id, now - 2 * ONLINE_MS), (gone.id, now - 2 * ONLINE_MS)]
    )
    await cordoned(world, gone, now)

    assert (await world.storage.fleet.census()).runners == (
        RunnerGroup(Liveness.BUSY, AdminState.ACTIVE, 1, 8),
        RunnerGroup(Liveness.OFFLINE, AdminState.CORDONED, 1, 4),
        RunnerGroup(Liveness.ONLINE, AdminState.ACTIVE, 1, 4),
        RunnerGroup(Liveness.REGISTERED, AdminState.ACTIVE, 1, 4),
    )


async def test_changes_of_standing_are_swept_when_they_are_old(world: StorageWorld) -> None:
    runner = await enrolled(world)
    change = await cordoned(world, runner, world.now)

    assert await world.storage.instance.sweep(change.at + CHANGES_KEEP_MS - 1) == 0
    assert await world.storage.instance.sweep(change.at + CHANGES_KEEP_MS) == 1
    assert [i.kind for i in await world.storage.fleet.history(runner.id, limit=9)] == [HistoryKind.ENROLLED]
