"""Whether a delivery is a repeat can be asked before it is kept, and the answer is the journal's own."""

from msgspec.structs import replace

from sexton_storage.terms import DEDUP_WINDOW_MS
from sexton_storage.writes import AppendEvent, Duplicate
from tests.worlds.storage import StorageWorld


async def test_a_repeat_is_known_beforehand_as_the_journal_would_know_it(world: StorageWorld) -> None:
    agent, other = await world.agent(), await world.agent()
    first = world.event_of(agent)
    named, body = b"k" * 32, b"b" * 32
    await world.storage.journal.write(AppendEvent(first, named, None, None, (), body_key=body))
    unnamed = world.event_of(agent)
    plain = b"p" * 32
    await world.storage.journal.write(AppendEvent(unnamed, plain, None, None, (), body_key=plain))
    events, now = world.storage.events, unnamed.created_at
    asked = [
        (named, None, first.id),
        (named, b"x" * 32, first.id),
        (body, body, first.id),
        (b"n" * 32, plain, unnamed.id),
        (b"n" * 32, body, None),
        (b"n" * 32, None, None),
    ]
    for key, body_key, expected in asked:
        assert await events.seen(agent.id, key, body_key, now=now) == expected, (key, body_key)
        assert await events.seen(other.id, key, body_key, now=now) is None
        assert await events.seen(agent.id, key, body_key, now=now + DEDUP_WINDOW_MS) is None
        if expected is not None:
            again = replace(world.event_of(agent), created_at=now)
            write = AppendEvent(again, key, None, None, (), body_key=body_key)
            assert await world.storage.journal.write(write) == Duplicate(expected)
