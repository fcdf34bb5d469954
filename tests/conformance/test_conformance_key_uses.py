"""Idempotency keys: the first request owns one, and its answer stays."""

from typing import Any

import trio
from msgspec.structs import replace

from sexton_storage.records.key_uses import KeyUse
from sexton_storage.terms import KEY_KEEP_MS, KEY_OPEN_MS, KEY_SOON_MS, KEY_STALE_MS
from tests.worlds.storage import StorageWorld, new_id

SCOPE = new_id()
NOW = 1_700_000_000_000


def use_of(**changes: Any) -> KeyUse:
    use = KeyUse(SCOPE, b"key", b"digest", new_id(), NOW, NOW, resumable=True, sealed=b"seed")
    return replace(use, **changes)


async def test_the_first_owns_the_key_and_the_next_sees_it_at_work(world: StorageWorld) -> None:
    store, first = world.storage.key_uses, use_of()

    assert await store.begin(first) == first
    assert await store.begin(use_of(digest=b"other")) == first
    assert await store.begin(replace(first, scope=new_id())) != first


async def test_an_answer_stays_until_it_is_past_keeping(world: StorageWorld) -> None:
    store, first = world.storage.key_uses, use_of()
    await store.begin(first)
    done = replace(first, status=201, sealed=b"answer")
    assert await store.settle(done)
    assert not await store.settle(replace(done, status=500))

    later = use_of(created_at=NOW + KEY_KEEP_MS - 1, running_since=NOW + KEY_KEEP_MS - 1)
    assert await store.begin(later) == done

    next_day = use_of(created_at=NOW + KEY_KEEP_MS, sealed=b"new", digest=b"other")
    assert await store.begin(next_day) == next_day


async def test_what_died_is_taken_over_with_its_seed_by_the_same_request(world: StorageWorld) -> None:
    store, first = world.storage.key_uses, use_of()
    await store.begin(first)
    late = NOW + KEY_STALE_MS
    early = use_of(running_since=late - 1, created_at=late - 1, sealed=b"b")
    assert await store.begin(early) == first

    other = use_of(running_since=late, created_at=late, digest=b"other")
    assert await store.begin(other) == first

    same = use_of(running_since=late, created_at=late, sealed=b"b")
    assert await store.begin(same) == replace(same, created_at=first.created_at, sealed=b"seed")
    assert not await store.settle(replace(first, status=201))
    assert await store.settle(replace(same, status=201))


async def test_what_is_kept_with_its_key_is_taken_over_sooner(world: StorageWorld) -> None:
    store, first = world.storage.key_uses, use_of()
    await store.begin(first)
    soon = NOW + KEY_SOON_MS
    early = use_of(running_since=soon - 1, created_at=soon - 1)
    assert await store.begin(early, stale_ms=KEY_SOON_MS) == first

    same = use_of(running_since=soon, created_at=soon, sealed=b"b")
    kept = await store.begin(same, stale_ms=KEY_SOON_MS)
    assert kept == replace(same, created_at=first.created_at, sealed=b"seed")


async def test_what_must_not_be_done_again_stays_open_for_a_while_and_then_begins_anew(
    world: StorageWorld,
) -> None:
    store, first = world.storage.key_uses, use_of(resumable=False)
    await store.begin(first)
    free = NOW + KEY_OPEN_MS
    early = use_of(resumable=False, running_since=free - 1, created_at=free - 1)
    assert await store.begin(early) == first

    other = use_of(resumable=False, running_since=free, created_at=free, digest=b"other")
    assert await store.begin(other) == first

    restarted = use_of(resumable=False, running_since=free, created_at=free, sealed=b"new")
    assert await store.begin(restarted) == restarted
    assert not await store.settle(replace(first, status=201))


async def test_what_must_not_be_done_again_is_not_taken_over(world: StorageWorld) -> None:
    store, first = world.storage.key_uses, use_of(resumable=False)
    await store.begin(first)
    await store.release(first)
    late = NOW + KEY_STALE_MS + 1
    again = use_of(resumable=False, running_since=late, created_at=late)

    assert await store.begin(again) == replace(first, running_since=0)


async def test_a_released_key_is_the_next_ones_at_once_and_a_forgotten_one_is_free(
    world: StorageWorld,
) -> None:
    store, first = world.storage.key_uses, use_of()
    await store.begin(first)
    await store.release(use_of())
    assert (await store.begin(use_of())).claim == first.claim

    await store.release(first)
    second = use_of(sealed=b"b")
    assert await store.begin(second) == replace(second, sealed=b"seed")

    await store.forget(first)
    assert (await store.begin(use_of())).claim == second.claim

    await store.forget(second)
    third = use_of(digest=b"other", sealed=b"c")
    assert await store.begin(third) == third


async def test_of_many_at_once_one_owns_the_key(world: StorageWorld) -> None:
    kept: list[KeyUse] = []

    async def begin() -> None:
        kept.append(await world.storage.key_uses.begin(use_of()))

    async with trio.open_nursery() as nursery:
        for _ in range(8):
            nursery.start_soon(begin)

    assert len({use.claim for use in kept}) == 1


async def test_the_sweep_takes_what_is_past_keeping(world: StorageWorld) -> None:
    store, first = world.storage.key_uses, use_of()
    await store.begin(first)

    assert await world.storage.instance.sweep(NOW + KEY_KEEP_MS - 1) == 0
    assert (await store.begin(use_of())).claim == first.claim
    assert await world.storage.instance.sweep(NOW + KEY_KEEP_MS) == 1
