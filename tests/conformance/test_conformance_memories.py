"""What agents remember: bounded, fenced, found, and forgotten in time."""

from collections.abc import Sequence
from typing import Any

import pytest
import trio
from msgspec.structs import replace

from sexton_storage.records.events import EventStatus
from sexton_storage.records.leases import Lease, LeaseStatus, LeaseToken
from sexton_storage.records.memories import Memory, MemoryChange, Remembered
from sexton_storage.refusals import Lost
from sexton_storage.terms import DAILY_KEEP_MS, MEMORY_LIMIT, QUERY_WORDS
from sexton_storage.writes import EventEnd
from tests.worlds.storage import StorageWorld, new_id


def put(key: str, content: str = "it", category: str = "notes") -> MemoryChange:
    return MemoryChange(key, content, category)


def forget(key: str) -> MemoryChange:
    return MemoryChange(key, None)


async def keep(
    world: StorageWorld, lease: Lease, *changes: MemoryChange, **options: Any
) -> Remembered | None:
    held = LeaseToken(lease.id, options.get("token", lease.fencing_token))
    return await world.storage.memories.keep(lease.zombie_id, held, changes, options.get("now", world.now))


async def kept(world: StorageWorld, lease: Lease, query: str = "", **options: Any) -> Sequence[Memory]:
    found, _ = await world.storage.memories.search(
        lease.zombie_id, query=query, category=options.get("category"), limit=options.get("limit", 5000)
    )
    return found


async def keys(world: StorageWorld, lease: Lease, query: str = "", **options: Any) -> list[str]:
    return [memory.key for memory in await kept(world, lease, query, **options)]


async def fill(
    world: StorageWorld, lease: Lease, category: str, count: int, *, at: int, prefix: str = "k"
) -> None:
    for start in range(0, count, 250):
        some = [put(f"{prefix}{n:04}", "x", category) for n in range(start, min(count, start + 250))]
        assert await keep(world, lease, *some, now=at + start) == Remembered(())


async def test_entries_are_kept_replaced_and_forgotten(world: StorageWorld) -> None:
    lease, at = await world.lease(), world.now
    assert await keep(world, lease, put("a", "one"), put("b", "caf\u00e9\x00", "core"), now=at) == Remembered(
        ()
    )
    assert await kept(world, lease) == [
        Memory(lease.zombie_id, "a", "one", "notes", at),
        Memory(lease.zombie_id, "b", "caf\u00e9\ufffd", "core", at),
    ]

    await keep(world, lease, put("a", "two", "core"), forget("b"), forget("never there"), now=at + 5)
    assert await kept(world, lease) == [Memory(lease.zombie_id, "a", "two", "core", at + 5)]

    store = world.storage.memories
    assert not await store.forget(lease.zombie_id, "b"), "it is forgotten already"
    assert not await store.forget(new_id(), "a"), "another agent's entry stays"
    assert await store.forget(lease.zombie_id, "a")
    assert await kept(world, lease) == []


async def test_the_last_word_on_a_key_counts(world: StorageWorld) -> None:
    lease = await world.lease()
    await keep(world, lease, put("a", "1"), put("a", "2"), put("b"), forget("b"), forget("c"), put("c", "3"))

    assert [(memory.key, memory.content) for memory in await kept(world, lease)] == [("a", "2"), ("c", "3")]


async def test_agents_remember_apart(world: StorageWorld) -> None:
    one, other = await world.lease(), await world.lease()
    await keep(world, one, put("a", "mine"))
    await keep(world, other, put("a", "theirs"))
    assert [memory.content for memory in await kept(world, one)] == ["mine"]

    wrong = await world.storage.memories.keep(
        other.zombie_id, LeaseToken(one.id, one.fencing_token), [put("b")], world.now
    )
    assert wrong is None
    assert await keys(world, other) == ["a"]


async def test_only_who_holds_the_agent_writes(world: StorageWorld) -> None:
    lease = await world.lease()
    assert await keep(world, lease, put("a"), token=lease.fencing_token + 1) is None
    assert await keep(world, replace(lease, id=new_id()), put("a")) is None

    await world.end(lease, EventEnd(EventStatus.RECEIVED), status=LeaseStatus.RECLAIMED)
    assert await keep(world, lease, put("a")) is None

    expired = await world.lease(now=world.now - 60_000)
    assert await keep(world, expired, put("a")) is None
    assert await world.storage.memories.keep(new_id(), LeaseToken(lease.id, 1), [put("a")], world.now) is None
    assert await keys(world, lease) == []


# --- bounds -------------------------------------------------------------------------------------------------


async def test_the_oldest_that_is_not_core_makes_room(world: StorageWorld) -> None:
    lease, at = await world.lease(), world.now - 100_000
    await fill(world, lease, "core", 500, at=at, prefix="core")
    await fill(world, lease, "notes", 500, at=at + 1_000)
    await keep(world, lease, put("k0000", "still wanted"), now=at + 5_000)
    assert await keep(world, lease, put("new1"), put("new2", "x", "core"), now=at + 6_000) == Remembered(())

    found = await keys(world, lease)
    assert len(found) == MEMORY_LIMIT
    assert {"new1", "new2", "k0000", "k0003"} <= set(found)
    assert {"k0001", "k0002"}.isdisjoint(found)
    assert sum(key.startswith("core") for key in found) == 500


async def test_nothing_is_added_where_all_is_core(world: StorageWorld) -> None:
    lease, at = await world.lease(), world.now - 100_000
    await fill(world, lease, "core", MEMORY_LIMIT, at=at)
    outcome = await keep(world, lease, put("new"), put("k0001", "changed", "core"), put("more", "x", "core"))
    assert outcome == Remembered(("new", "more"))

    found = await kept(world, lease)
    assert len(found) == MEMORY_LIMIT
    assert (found[0].key, found[0].content) == ("k0001", "changed")
    assert await keep(world, lease, forget("k0002"), put("new")) == Remembered(())
    assert await keep(world, lease, put("newer")) == Remembered(())
    assert {"newer", "new"} & set(await keys(world, lease)) == {"newer"}


async def test_two_writers_at_once_never_pass_the_bound(world: StorageWorld) -> None:
    lease, at = await world.lease(), world.now - 100_000
    await fill(world, lease, "core", MEMORY_LIMIT - 3, at=at)
    outcomes: list[Remembered | None] = []

    async def write(name: str) -> None:
        outcomes.append(await keep(world, lease, *(put(f"{name}{n}", "x", "core") for n in range(3))))

    async with trio.open_nursery() as nursery:
        for name in "abcd":
            nursery.start_soon(write, name)

    assert len(await keys(world, lease)) == MEMORY_LIMIT
    assert sum(len(outcome.refused) for outcome in outcomes if outcome) == 9


async def test_a_daily_entry_lives_three_days_from_its_last_change(world: StorageWorld) -> None:
    lease, now = await world.lease(), world.now
    old = now - DAILY_KEEP_MS
    await keep(world, lease, put("gone", "x", "daily"), put("stays", "x", "notes"), now=old)
    await keep(world, lease, put("fresh", "x", "daily"), now=old + 600_000)
    assert await keys(world, lease) == ["fresh", "stays"]

    of_lease = await world.storage.memories.of_lease(lease.zombie_id, limit=9)
    assert [memory.key for memory in of_lease] == ["fresh", "stays"]
    assert await world.storage.instance.sweep(now) >= 1
    assert await keys(world, lease) == ["fresh", "stays"]


async def test_what_is_past_its_time_makes_room_first(world: StorageWorld) -> None:
    lease, now = await world.lease(), world.now
    await fill(world, lease, "notes", MEMORY_LIMIT - 1, at=now - DAILY_KEEP_MS - 50_000)
    await keep(world, lease, put("gone", "x", "daily"), now=now - DAILY_KEEP_MS - 1)
    assert await keep(world, lease, put("new")) == Remembered(())

    found = await keys(world, lease)
    assert len(found) == MEMORY_LIMIT
    assert {"new", "k0000"} <= set(found)


# --- finding ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", ["note", "deploy window", "unicode", "names"]),
        ("deploy", ["deploy window"]),
        ("DEPLOY friday", ["deploy window", "note"]),
        ("window", ["deploy window"]),
        ("eplo", ["deploy window"]),
        ("strasse", ["unicode"]),
        ("STRASSE", ["unicode"]),
        ("100%", ["note"]),
        ("0_0", []),
        ("'; drop table memories", []),
        ("nothing of it", ["note"]),
        ("\x00", ["unicode"]),
    ],
)
async def test_the_words_of_a_query_are_looked_for_anywhere(
    world: StorageWorld, query: str, found: list[str]
) -> None:
    lease, at = await world.lease(), world.now - 10_000
    await keep(world, lease, put("names", "ann, bob"), now=at)
    await keep(world, lease, put("unicode", "Stra\u00dfe \ufffd \uff34\uff35", "notes"), now=at + 1)
    await keep(world, lease, put("deploy window", "Fridays, never on friday 13", "core"), now=at + 2)
    await keep(world, lease, put("note", "on friday it was 100% of it", "daily"), now=at + 3)

    assert await keys(world, lease, query) == found


async def test_more_words_come_first_and_a_cut_list_tells_the_number_of_all(world: StorageWorld) -> None:
    lease, at = await world.lease(), world.now - 10_000
    for n, content in enumerate(["red", "red green", "green", "red green blue", "none"]):
        await keep(world, lease, put(f"k{n}", content), now=at + n)
    found, total = await world.storage.memories.search(
        lease.zombie_id, query="red green blue", category=None, limit=3
    )

    assert ([memory.key for memory in found], total) == (["k3", "k1", "k2"], 4)
    assert await world.storage.memories.search(new_id(), query="red", category=None, limit=3) in (
        ([], 0),
        ((), 0),
    )


async def test_so_many_words_are_looked_for_and_no_more(world: StorageWorld) -> None:
    lease = await world.lease()
    await keep(world, lease, put("a", "last"))
    others = [f"w{n}" for n in range(QUERY_WORDS - 1)]

    assert await keys(world, lease, " ".join([*others, *others, "last"])) == ["a"]
    assert await keys(world, lease, " ".join([*others, "more", "last"])) == []


async def test_a_category_narrows(world: StorageWorld) -> None:
    lease = await world.lease()
    await keep(world, lease, put("a", "x", "core"), put("b", "x", "daily"), put("c", "y", "core"))

    assert await keys(world, lease, category="core") == ["a", "c"]
    assert await keys(world, lease, "y", category="core") == ["c"]
    assert await keys(world, lease, category="none") == []


async def test_a_run_begins_with_core_then_with_the_newest(world: StorageWorld) -> None:
    lease, at = await world.lease(), world.now - 10_000
    for n, category in enumerate(["notes", "core", "daily", "core", "notes"]):
        await keep(world, lease, put(f"k{n}", "x", category), now=at + n)
    memories = world.storage.memories

    assert [m.key for m in await memories.of_lease(lease.zombie_id, limit=9)] == [
        "k3",
        "k1",
        "k4",
        "k2",
        "k0",
    ]
    assert [m.key for m in await memories.of_lease(lease.zombie_id, limit=3)] == ["k3", "k1", "k4"]


# --- with the end of a lease --------------------------------------------------------------------------------


async def test_what_a_report_brings_is_kept_with_its_settle_and_once(world: StorageWorld) -> None:
    lease = await world.lease()
    changes = (put("a", "learned \x00"), put("b"), forget("b"))
    write = world.end_of(lease, EventEnd(EventStatus.PROCESSED), memory=changes)
    await world.storage.journal.write(write)
    assert [(m.key, m.content, m.updated_at) for m in await kept(world, lease)] == [
        ("a", "learned \ufffd", write.now)
    ]
    assert isinstance(await world.storage.journal.write(write), Lost)

    late = world.end_of(replace(lease, version=9), EventEnd(EventStatus.PROCESSED), memory=(put("c"),))
    assert isinstance(await world.storage.journal.write(late), Lost)
    assert await keys(world, lease) == ["a"]


async def test_a_report_that_finds_no_room_is_settled_all_the_same(world: StorageWorld) -> None:
    lease, at = await world.lease(), world.now - 100_000
    await fill(world, lease, "core", MEMORY_LIMIT, at=at)
    ended = await world.end(lease, EventEnd(EventStatus.PROCESSED), memory=(put("new"), forget("k0001")))
    assert ended.event.status is EventStatus.PROCESSED

    found = await keys(world, lease)
    assert len(found) == MEMORY_LIMIT - 1
    assert "new" not in found


async def test_a_claim_tells_whether_there_is_anything_to_be_told(world: StorageWorld) -> None:
    agent = await world.agent()
    for _ in range(3):
        await world.append(agent)
    first = await world.claim(agent)
    await keep(world, first.lease, put("a"))
    await world.end(first.lease, EventEnd(EventStatus.PROCESSED))
    second = await world.claim(agent)
    await keep(world, second.lease, forget("a"))
    await world.end(second.lease, EventEnd(EventStatus.PROCESSED))
    third = await world.claim(agent)

    assert [claimed.endowed for claimed in (first, second, third)] == [False, True, False]


async def test_memories_go_with_their_agent(world: StorageWorld) -> None:
    one, other = await world.lease(), await world.lease()
    for lease in (one, other):
        await keep(world, lease, put("a"))

    assert await world.storage.zombies.delete(one.zombie_id)
    assert await keys(world, one) == []
    assert await keys(world, other) == ["a"]
