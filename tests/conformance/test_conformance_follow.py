"""An event that goes on where another ended is there with that end, or not at all."""

import pytest
from msgspec.structs import replace

from sexton_storage.errors import RowRefused
from sexton_storage.records.events import Event, EventStatus
from sexton_storage.records.leases import Lease
from sexton_storage.refusals import Lost
from sexton_storage.writes import Ended, EventEnd
from tests.worlds.storage import StorageWorld, new_id

PROCESSED = EventEnd(EventStatus.PROCESSED, response_text="half")


async def continuation_of(world: StorageWorld, lease: Lease) -> Event:
    event = await world.storage.events.load(lease.event_id)
    assert event is not None
    return Event(
        id=new_id(),
        zombie_id=event.zombie_id,
        workspace_id=event.workspace_id,
        tenant_id=event.tenant_id,
        actor=event.actor,
        event_type=event.event_type,
        status=EventStatus.RECEIVED,
        request_json=event.request_json,
        created_at=world.now,
        updated_at=world.now,
        resumes_event_id=event.id,
        checkpoint={"agent": {"note": "the other half", "deep": [1, {"a": None}]}},
    )


async def test_a_continuation_is_the_next_to_be_leased_and_has_its_checkpoint(world: StorageWorld) -> None:
    lease = await world.lease()
    continuation = await continuation_of(world, lease)
    ended = await world.end(lease, PROCESSED, continuation=continuation)
    assert (ended.more, ended.next_event_at) == (True, continuation.created_at)
    assert ended.event.status is EventStatus.PROCESSED
    assert await world.storage.events.load(continuation.id) == continuation

    agent = await world.storage.zombies.load(lease.zombie_id)
    assert agent is not None

    claimed = await world.claim(agent)
    assert claimed.event.id == continuation.id
    assert claimed.event.checkpoint == continuation.checkpoint
    assert claimed.event.resumes_event_id == lease.event_id


async def test_an_end_that_is_lost_leaves_no_continuation(world: StorageWorld) -> None:
    lease = await world.lease()
    continuation = await continuation_of(world, lease)
    late = world.end_of(replace(lease, version=lease.version - 1), PROCESSED, continuation=continuation)
    assert isinstance(await world.storage.journal.write(late), Lost)
    assert await world.storage.events.load(continuation.id) is None

    twice = world.end_of(lease, PROCESSED, continuation=continuation)
    assert isinstance(await world.storage.journal.write(twice), Ended)

    again = world.end_of(lease, PROCESSED, continuation=replace(continuation, id=new_id()))
    assert isinstance(await world.storage.journal.write(again), Lost)


async def test_a_continuation_that_cannot_be_kept_lets_nothing_else_be_kept(world: StorageWorld) -> None:
    lease = await world.lease()
    continuation = replace(await continuation_of(world, lease), id=lease.event_id)
    with pytest.raises(RowRefused):
        await world.storage.journal.write(world.end_of(lease, PROCESSED, nanos=40, continuation=continuation))
    event = await world.storage.events.load(lease.event_id)
    assert event is not None
    assert event.status is EventStatus.RUNNING

    live = await world.storage.leases.live_of_zombie(lease.zombie_id)
    assert live is not None
    assert live.id == lease.id
