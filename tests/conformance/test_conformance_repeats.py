"""A delivery is known again by its id or, when that was dropped, by its body."""

from collections.abc import Sequence
from uuid import UUID

import pytest
import trio

from sexton_storage.terms import DEDUP_WINDOW_MS
from sexton_storage.writes import Appended, AppendEvent, Duplicate
from tests.worlds.storage import StorageWorld

ID_A, ID_B, BODY, OTHER = b"id a", b"id b", b"body", b"another body"
Keys = tuple[bytes, bytes]
A, B, BARE = (ID_A, BODY), (ID_B, BODY), (BODY, BODY)
"""The same body under an id, under another one, and without any."""


async def deliver(world: StorageWorld, keys: Sequence[Keys], apart_ms: int = 0) -> list[int]:
    """Append these one after the other; for each, whose repeat it was found to be, or its own place."""
    agent = await world.agent()
    begun = world.now - len(keys) * apart_ms
    found: list[int] = []
    events: list[UUID] = []
    for place, (key, body) in enumerate(keys):
        event = world.event_of(agent, created_at=begun + place * apart_ms)
        events.append(event.id)
        match await world.storage.journal.write(AppendEvent(event, key, None, None, (), body_key=body)):
            case Appended(event_id=event_id) | Duplicate(event_id=event_id):
                found.append(events.index(event_id))
            case other:
                raise AssertionError(other)
    return found


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ((A, A), [0, 0]),
        ((A, BARE, BARE), [0, 0, 0]),
        ((BARE, A, BARE), [0, 0, 0]),
        ((BARE, A, B), [0, 0, 0]),
        ((A, B), [0, 1]),
        ((A, B, BARE, A, B), [0, 1, 1, 0, 1]),
        ((A, (ID_A, OTHER), (OTHER, OTHER)), [0, 0, 2]),
        ((BARE, (OTHER, OTHER), BARE), [0, 1, 0]),
    ],
    ids=[
        "the same again",
        "stripped of its id",
        "given an id",
        "given two ids",
        "two ids are two events",
        "each is known by its own",
        "an id with another body",
        "no id at all",
    ],
)
async def test_a_repeat_is_known(world: StorageWorld, keys: Sequence[Keys], expected: list[int]) -> None:
    assert await deliver(world, keys) == expected


@pytest.mark.parametrize("keys", [(A, BARE), (BARE, A), (A, A)])
async def test_and_is_forgotten_after_the_window(world: StorageWorld, keys: Sequence[Keys]) -> None:
    assert await deliver(world, keys, apart_ms=DEDUP_WINDOW_MS) == [0, 1]
    assert await deliver(world, keys, apart_ms=DEDUP_WINDOW_MS - 1) == [0, 0]


async def test_the_window_of_a_body_begins_anew_with_each_id(world: StorageWorld) -> None:
    assert await deliver(world, (A, B, BARE), apart_ms=DEDUP_WINDOW_MS - 1) == [0, 1, 1]


async def test_many_at_once_are_one_event_for_each_id_and_none_without(world: StorageWorld) -> None:
    agent = await world.agent()
    outcomes: list[object] = []

    async def send(key: bytes) -> None:
        write = AppendEvent(world.event_of(agent), key, None, None, (), body_key=BODY)
        outcomes.append(await world.storage.journal.write(write))

    async with trio.open_nursery() as nursery:
        for _ in range(10):
            for key in (ID_A, ID_B, BODY):
                nursery.start_soon(send, key)
    kept = await world.storage.events.list(world.workspace_id, limit=99)
    appended = {outcome.event_id for outcome in outcomes if isinstance(outcome, Appended)}

    assert {event.id for event in kept} == appended
    # One when the bare one came first, for then the others are repeats of it.
    assert len(kept) in {1, 2}
    assert len(outcomes) == 30
