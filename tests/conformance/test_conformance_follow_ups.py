"""Follow-ups: asked for under a lease, bounded, and over in the commit of the event that they make."""

from typing import Any

import trio
from msgspec.structs import replace

from sexton_storage.paging import Page
from sexton_storage.records.events import EventStatus
from sexton_storage.records.follow_ups import FollowUp, FollowUpStatus
from sexton_storage.records.leases import Lease, LeaseToken
from sexton_storage.records.zombies import Zombie, ZombieStatus
from sexton_storage.refusals import FENCED, FULL, GONE, STALE, Lost
from sexton_storage.terms import FOLLOW_UPS_KEEP_MS, FOLLOW_UPS_LIMIT
from sexton_storage.writes import Appended, AppendEvent, EventEnd, OverBudget
from tests.worlds.storage import StorageWorld, new_id

SOON = 2_000_000_000_000


def asked(world: StorageWorld, lease: Lease, call_id: str = "c", **changes: Any) -> FollowUp:
    new = FollowUp(new_id(), lease.zombie_id, lease.event_id, call_id, "look again", SOON, world.now)
    return replace(new, **changes)


async def keep(world: StorageWorld, lease: Lease, *args: Any, **changes: Any) -> FollowUp:
    kept = await world.storage.follow_ups.keep(asked(world, lease, *args, **changes), held(lease))
    assert isinstance(kept, FollowUp)
    return kept


def held(lease: Lease) -> LeaseToken:
    return LeaseToken(lease.id, lease.fencing_token)


async def agent_of(world: StorageWorld, lease: Lease) -> Zombie:
    agent = await world.storage.zombies.load(lease.zombie_id)
    assert agent is not None
    return agent


async def firing(world: StorageWorld, follow_up: FollowUp, **changes: Any) -> AppendEvent:
    agent = await world.storage.zombies.load(follow_up.zombie_id)
    assert agent is not None
    write = AppendEvent(world.event_of(agent), None, None, None, (), follow_up_id=follow_up.id)
    return replace(write, **changes)


async def status(world: StorageWorld, follow_up: FollowUp) -> FollowUpStatus | None:
    found = await world.storage.follow_ups.load(follow_up.id)
    return None if found is None else found.status


async def test_the_same_call_of_the_same_event_is_one_follow_up(world: StorageWorld) -> None:
    lease, other = await world.lease(), await world.lease()
    first = await keep(world, lease, "a\x00", message="caf\u00e9\x00")

    assert (first.call_id, first.message) == ("a\ufffd", "caf\u00e9\ufffd")
    assert await keep(world, lease, "a\x00", message="another") == first
    assert await world.storage.follow_ups.find(lease.zombie_id, lease.event_id, "a\x00") == first
    assert await world.storage.follow_ups.find(other.zombie_id, other.event_id, "a\x00") is None
    assert (await keep(world, other, "a\x00")).id != first.id
    assert await world.storage.follow_ups.load(first.id) == first
    assert await world.storage.follow_ups.close(first, FollowUpStatus.CANCELLED, SOON)
    assert (await keep(world, lease, "a\x00")).status is FollowUpStatus.CANCELLED


async def test_two_that_ask_at_once_find_one(world: StorageWorld) -> None:
    lease, found = await world.lease(), []

    async def ask() -> None:
        found.append((await keep(world, lease)).id)

    async with trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(ask)

    assert len(set(found)) == 1


async def test_only_the_lease_that_holds_the_agent_asks(world: StorageWorld) -> None:
    lease, other = await world.lease(), await world.lease()
    store, new = world.storage.follow_ups, asked(world, lease)
    assert await store.keep(new, LeaseToken(lease.id, lease.fencing_token + 1)) == Lost(FENCED)
    assert await store.keep(new, held(other)) == Lost(FENCED)
    assert await store.keep(replace(new, zombie_id=new_id()), held(lease)) == Lost(GONE)

    await world.end(lease, EventEnd(EventStatus.PROCESSED))
    assert await store.keep(new, held(lease)) == Lost(FENCED)
    assert await store.list(lease.zombie_id, limit=9) == []


async def test_so_many_wait_and_no_more(world: StorageWorld) -> None:
    lease = await world.lease()
    kept = [await keep(world, lease, str(n)) for n in range(FOLLOW_UPS_LIMIT)]
    store, more = world.storage.follow_ups, asked(world, lease, "more")
    assert await store.keep(more, held(lease)) == Lost(FULL)
    assert await store.keep(asked(world, lease, "3"), held(lease)) == kept[3]
    assert await store.close(kept[0], FollowUpStatus.CANCELLED, SOON)
    assert await store.keep(more, held(lease)) == more

    await keep(world, await world.lease())


async def test_the_most_overdue_come_first_and_what_is_over_does_not(world: StorageWorld) -> None:
    lease, store = await world.lease(), world.storage.follow_ups
    late, later, never = [await keep(world, lease, str(at), at=at) for at in (SOON, SOON - 1, SOON + 1)]
    assert await store.due(before=SOON, limit=9) == [later, late]
    assert await store.due(before=SOON, limit=1) == [later]
    assert await store.next_at() == SOON - 1
    assert await store.close(later, FollowUpStatus.CANCELLED, SOON)
    assert not await store.close(later, FollowUpStatus.DROPPED, SOON)
    assert await status(world, later) is FollowUpStatus.CANCELLED
    assert await store.next_at() == SOON

    for follow_up in (late, never):
        assert await store.close(follow_up, FollowUpStatus.DROPPED, SOON)
    assert await store.next_at() is None


async def test_they_are_listed_by_pages_newest_first(world: StorageWorld) -> None:
    lease, other = await world.lease(), await world.lease()
    kept = [await keep(world, lease, str(n), created_at=world.now - 50 + n // 2) for n in range(5)]
    await keep(world, other)
    newest, store = kept[::-1], world.storage.follow_ups
    assert await store.list(lease.zombie_id, limit=2) == newest[:2]

    before = Page(newest[1].created_at, newest[1].id)
    assert await store.list(lease.zombie_id, limit=9, before=before) == newest[2:]


async def test_one_fires_with_its_event_and_not_again(world: StorageWorld) -> None:
    lease = await world.lease()
    follow_up = await keep(world, lease)
    write = await firing(world, follow_up)
    assert await world.storage.journal.write(write) == Appended(write.event.id)

    found = await world.storage.follow_ups.load(follow_up.id)
    assert found == replace(follow_up, status=FollowUpStatus.FIRED, closed_at=write.event.created_at)

    again = await firing(world, follow_up)
    assert await world.storage.journal.write(again) == Lost(STALE)
    assert await world.storage.events.load(again.event.id) is None
    assert (await keep(world, lease)).status is FollowUpStatus.FIRED


async def test_of_many_that_fire_it_at_once_one_makes_the_event(world: StorageWorld) -> None:
    follow_up = await keep(world, await world.lease())
    answers: list[Any] = []

    async def fire() -> None:
        answers.append(await world.storage.journal.write(await firing(world, follow_up)))

    async with trio.open_nursery() as nursery:
        for _ in range(6):
            nursery.start_soon(fire)

    assert sum(isinstance(answer, Appended) for answer in answers) == 1
    assert answers.count(Lost(STALE)) == len(answers) - 1


async def test_one_that_was_taken_back_or_is_not_there_makes_no_event(world: StorageWorld) -> None:
    follow_up = await keep(world, await world.lease())
    assert await world.storage.follow_ups.close(follow_up, FollowUpStatus.CANCELLED, SOON)

    for write in (await firing(world, follow_up), await firing(world, follow_up, follow_up_id=new_id())):
        assert await world.storage.journal.write(write) == Lost(STALE)
        assert await world.storage.events.load(write.event.id) is None


async def test_one_that_cannot_be_paid_for_is_dropped(world: StorageWorld) -> None:
    follow_up = await keep(world, await world.lease())
    write = await firing(world, follow_up, budget_daily_nanos=0)

    assert await world.storage.journal.write(write) == OverBudget("day")
    assert await status(world, follow_up) is FollowUpStatus.DROPPED


async def test_those_of_an_agent_that_is_killed_are_dropped(world: StorageWorld) -> None:
    lease, other = await world.lease(), await world.lease()
    follow_up, theirs = await keep(world, lease), await keep(world, other)
    agent = await agent_of(world, lease)
    await world.storage.zombies.kill(replace(agent, status=ZombieStatus.KILLED, version=2), (), SOON)
    found = await world.storage.follow_ups.load(follow_up.id)
    assert found == replace(follow_up, status=FollowUpStatus.DROPPED, closed_at=SOON)
    assert await status(world, theirs) is FollowUpStatus.PENDING

    await world.storage.zombies.delete(agent.id)
    assert await status(world, follow_up) is None
    assert await status(world, theirs) is FollowUpStatus.PENDING


async def test_what_is_over_is_forgotten_in_time_and_what_waits_is_not(world: StorageWorld) -> None:
    lease, store = await world.lease(), world.storage.follow_ups
    over, waits = await keep(world, lease, "over"), await keep(world, lease, "waits")
    assert await store.close(over, FollowUpStatus.CANCELLED, world.now)

    closed = await store.load(over.id)
    assert closed is not None
    assert closed.closed_at is not None

    await world.storage.instance.sweep(closed.closed_at + FOLLOW_UPS_KEEP_MS - 1)
    assert await status(world, over) is FollowUpStatus.CANCELLED

    await world.storage.instance.sweep(closed.closed_at + FOLLOW_UPS_KEEP_MS)
    assert await status(world, over) is None
    assert await status(world, waits) is FollowUpStatus.PENDING
