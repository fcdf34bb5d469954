"""A delivery that comes again is known: by its id, and by its body when somebody took the id away."""

from uuid import UUID

import pytest
from msgspec.structs import replace
from trio.testing import MockClock

from sexton_actors.protocol.zombie import Accepted, AlreadyAccepted, Deliver
from sexton_storage.terms import DEDUP_WINDOW_MS
from sexton_storage.writes import AppendEvent
from tests.worlds.actors import ActorsWorld, crash_commit_once


def age(world: ActorsWorld, span_ms: int) -> None:
    """Let all that was seen so far have been seen so much earlier."""
    rows = world.storage.tables.dedup
    world.storage.tables.dedup = {
        key: replace(row, seen_at=row.seen_at - span_ms) for key, row in rows.items()
    }


def stripped(message: Deliver) -> Deliver:
    """The same signed body without the header that names it, which nobody signs."""
    headers = {name: value for name, value in message.headers.items() if name != "x-github-delivery"}
    return replace(message, headers=headers)


def renamed(message: Deliver, name: str) -> Deliver:
    return replace(message, headers={**message.headers, "x-github-delivery": name})


async def send(world: ActorsWorld, zombie_id: UUID, message: Deliver) -> Accepted | AlreadyAccepted:
    reply = await world.system.ask("zombie", zombie_id, message)
    assert isinstance(reply, (Accepted, AlreadyAccepted)), reply
    return reply


async def test_dropping_the_id_dodges_nothing(world: ActorsWorld, autojump_clock: MockClock) -> None:
    zombie_id, message = await world.install(), world.webhook()
    first = await send(world, zombie_id, message)
    assert isinstance(first, Accepted)

    for again in (message, stripped(message), stripped(message)):
        assert await send(world, zombie_id, again) == AlreadyAccepted(first.event_id)
    assert len(world.storage.tables.events) == 1


async def test_adding_an_id_to_what_came_without_one_dodges_nothing(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    zombie_id, message = await world.install(), world.webhook()
    first = await send(world, zombie_id, stripped(message))

    assert await send(world, zombie_id, message) == AlreadyAccepted(first.event_id)


async def test_another_id_is_another_event_even_with_the_same_body(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    zombie_id, message = await world.install(), world.webhook()
    first = await send(world, zombie_id, message)
    second = await send(world, zombie_id, renamed(message, "another"))

    assert isinstance(second, Accepted)
    assert await send(world, zombie_id, message) == AlreadyAccepted(first.event_id)
    assert await send(world, zombie_id, stripped(message)) == AlreadyAccepted(second.event_id)


async def test_a_day_later_it_is_new(world: ActorsWorld, autojump_clock: MockClock) -> None:
    zombie_id, message = await world.install(), world.webhook()
    await send(world, zombie_id, message)
    age(world, DEDUP_WINDOW_MS - 1)
    assert isinstance(await send(world, zombie_id, stripped(message)), AlreadyAccepted)

    age(world, 1)
    assert isinstance(await send(world, zombie_id, stripped(message)), Accepted)


async def test_what_was_swept_is_no_more_than_what_is_forgotten(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    zombie_id, message = await world.install(), world.webhook()
    await send(world, zombie_id, message)
    assert len(world.storage.tables.dedup) == 2

    await world.storage.instance.sweep(world.actors_world.now_ms() + DEDUP_WINDOW_MS - 1)
    assert len(world.storage.tables.dedup) == 2

    await world.storage.instance.sweep(world.actors_world.now_ms() + DEDUP_WINDOW_MS)
    assert world.storage.tables.dedup == {}


@pytest.mark.parametrize("after", [False, True])
async def test_a_crash_at_the_commit_keeps_the_delivery_once(
    world: ActorsWorld, autojump_clock: MockClock, after: bool
) -> None:
    zombie_id, message = await world.install(), world.webhook()
    crash_commit_once(world.storage.journal, after=after, when=lambda write: isinstance(write, AppendEvent))
    with pytest.raises(Exception, match="commit"):
        await world.system.ask("zombie", zombie_id, message)
    reply = await send(world, zombie_id, stripped(message))

    assert isinstance(reply, AlreadyAccepted if after else Accepted)
    assert list(world.storage.tables.events) == [reply.event_id]
