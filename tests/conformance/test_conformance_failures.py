"""Groups of failures: each failure is counted once, and groups go with their agent."""

from collections.abc import Sequence
from uuid import UUID

from sexton_storage.paging import Page
from sexton_storage.records.events import EventStatus
from sexton_storage.records.failures import END_CHARS, HOUR_MS, Failure, FailureStatus, Sorted
from sexton_storage.records.jobs import JobKind
from sexton_storage.records.zombies import Zombie
from sexton_storage.terms import HOURS_KEEP
from sexton_storage.writes import EventEnd
from tests.conformance.test_conformance_jobs import found, selection
from tests.worlds.storage import StorageWorld, new_id

LONG = "a" * 1000 + "\x00z"


async def fail(
    world: StorageWorld, agent: Zombie, text: str | None, status: EventStatus = EventStatus.AGENT_ERROR
) -> UUID:
    event = await world.append(agent)
    lease = (await world.claim(agent)).lease
    end = EventEnd(status, failure_label="agent_run", error_code="UZ-EXEC-013", response_text=text)
    await world.end(lease, end)
    return event.id


def put(failures: Sequence[Failure], message: str = "it broke") -> list[Sorted]:
    return [Sorted(failure, message.encode()[:32].ljust(32), message, new_id()) for failure in failures]


async def test_each_failure_comes_into_one_group_once(world: StorageWorld) -> None:
    store, agent = world.storage.failures, await world.agent()
    first, last = await fail(world, agent, "it broke"), await fail(world, agent, LONG)
    await fail(world, agent, "fine", EventStatus.PROCESSED)
    unsorted = await store.unsorted(limit=9)
    assert [(f.event_id, f.zombie_id, f.failure_label, f.error_code) for f in unsorted] == [
        (event_id, agent.id, "agent_run", "UZ-EXEC-013") for event_id in (first, last)
    ]
    assert [f.message for f in unsorted] == ["it broke", f"{'a' * END_CHARS}\n{'a' * (END_CHARS - 2)}\ufffdz"]

    assert await store.sort(put(unsorted)) == 2
    assert await store.sort(put(unsorted)) == 0
    assert await store.unsorted(limit=9) == []

    [group] = await store.list(world.workspace_id, limit=9, now=world.now)
    assert (group.count, group.message, group.sample_event_id) == (2, "it broke", last)
    assert (group.first_seen_at, group.last_seen_at) == (unsorted[0].at, unsorted[1].at)
    assert await store.load(group.id) == group

    third = await fail(world, agent, "it broke")
    await store.sort(put(await store.unsorted(limit=9)))
    [grown] = await store.list(world.workspace_id, limit=9, now=world.now)
    assert (grown.id, grown.count, grown.sample_event_id) == (group.id, 3, third)

    hours = await store.hours([group.id, agent.id], since_hour=0)
    assert (sum(hours[group.id].values()), hours[agent.id]) == (3, {})
    assert await found(world, selection(world, JobKind.REPLAY, "after:0", group.id)) == [first, last, third]

    await world.storage.instance.sweep(world.now + (HOURS_KEEP + 2) * HOUR_MS)
    assert await store.hours([group.id], since_hour=0) == {group.id: {}}


async def test_groups_are_listed_by_what_people_said_of_them(world: StorageWorld) -> None:
    store, agent, other = world.storage.failures, await world.agent(), await world.agent()
    now = world.now
    for one, text in ((agent, "a"), (agent, "b"), (other, "c")):
        await fail(world, one, text)
        await store.sort(put(await store.unsorted(limit=9), text))
    groups = await store.list(world.workspace_id, limit=9, now=now)
    c, b, a = groups
    assert [group.message for group in groups] == ["c", "b", "a"]
    assert await store.list(world.workspace_id, limit=9, now=now, before=Page(b.last_seen_at, b.id)) == [a]
    assert await store.list(world.workspace_id, limit=9, now=now, zombie_id=other.id) == [c]

    known = await store.acknowledge(a.id, "api:1", a.last_seen_at)
    muted = await store.mute(b.id, "api:2", now + 10)
    assert known is not None
    assert muted is not None
    assert (known.acknowledged_by, muted.muted_by, muted.muted_until) == ("api:1", "api:2", now + 10)

    async def listed(status: FailureStatus, at: int) -> list[str]:
        found = await store.list(world.workspace_id, limit=9, now=at, status=status)
        return [group.message for group in found]

    assert await listed(FailureStatus.OPEN, now) == ["c"]
    assert await listed(FailureStatus.ACKNOWLEDGED, now) == ["a"]
    assert await listed(FailureStatus.MUTED, now) == ["b"]
    assert await listed(FailureStatus.OPEN, now + 10) == ["c", "b"]
    assert await store.acknowledge(agent.id, "api:1", now) is None


async def test_groups_go_with_their_agent(world: StorageWorld) -> None:
    store, agent, other = world.storage.failures, await world.agent(), await world.agent()
    for one in (agent, agent, other):
        await fail(world, one, "it broke")
    first, *rest = await store.unsorted(limit=9)
    await store.sort(put([first]))
    await world.storage.zombies.delete(agent.id)

    assert await store.sort(put(rest)) == 1

    [left] = await store.list(world.workspace_id, limit=9, now=world.now)
    assert (left.zombie_id, left.count) == (other.id, 1)
    assert await store.unsorted(limit=9) == []
