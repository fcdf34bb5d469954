"""Erasures: what was on its way while one went on is not written again, or goes in the pass that confirms."""

from collections.abc import Callable
from uuid import UUID

import pytest
from msgspec.structs import replace

from sexton_storage.decisions.erasure import ERASED, ERASED_DOCUMENT
from sexton_storage.decisions.sources import source_delivery, source_event, source_follow_up
from sexton_storage.records.erasures import ErasureStatus
from sexton_storage.records.events import EventStatus
from sexton_storage.records.follow_ups import FollowUpStatus
from sexton_storage.records.key_uses import KeyUse
from sexton_storage.records.leases import LeaseToken
from sexton_storage.records.sources import Source, SourceKind
from sexton_storage.records.transcripts import NewEntry, TranscriptBounds
from sexton_storage.refusals import SOURCE_CHANGED, Lost
from sexton_storage.writes import Appended, AppendEvent, AppendFrames, Duplicate, EventEnd
from tests.conformance.test_conformance_deliveries import one as delivery_of
from tests.conformance.test_conformance_erasures import (
    ANN,
    HERS,
    begun,
    ended,
    erasure_of,
    event_of,
    stepped,
    through,
    to_its_end,
)
from tests.conformance.test_conformance_follow_ups import firing, keep, status
from tests.worlds.storage import StorageWorld, new_id


async def erased(world: StorageWorld) -> None:
    erasure = erasure_of(world)
    await through(world, erasure)
    done = await world.storage.erasures.load(erasure.id)
    if done is not None and done.status is ErasureStatus.WAITING:
        done = await to_its_end(world, erasure.id)

    assert done is not None
    assert done.status is ErasureStatus.DONE


async def test_a_replay_of_an_event_that_was_erased_since_it_was_read_is_not_kept(
    world: StorageWorld,
) -> None:
    agent = await world.agent()
    lease = await ended(world, agent, HERS, "Dear Ann")
    read = await event_of(world, lease)
    write = AppendEvent(
        world.event_of(agent, request_json=read.request_json), b"k", None, None, (), source=source_event(read)
    )

    first = await world.storage.journal.write(write)
    await world.end((await world.claim(agent)).lease, EventEnd(EventStatus.PROCESSED, response_text="ok"))
    await erased(world)
    again = replace(write, event=replace(write.event, id=new_id()))
    repeat, late = [
        await world.storage.journal.write(one) for one in (again, replace(again, dedup_key=b"another"))
    ]
    now = await event_of(world, lease)
    renewed = AppendEvent(
        world.event_of(agent, request_json=now.request_json), None, None, None, (), source=source_event(now)
    )

    assert first == Appended(write.event.id)
    assert repeat == Duplicate(write.event.id)
    assert late == Lost(SOURCE_CHANGED)
    assert await world.storage.events.load(again.event.id) is None
    assert await world.storage.journal.write(renewed) == Appended(renewed.event.id)
    assert now.request_json == ERASED_DOCUMENT


async def test_a_follow_up_whose_message_had_the_value_does_not_bring_it_back(world: StorageWorld) -> None:
    lease = await world.lease()
    follow_up = await keep(world, lease, message=f"write to {ANN}")
    write = await firing(world, follow_up, source=source_follow_up(follow_up))
    await world.end(lease, EventEnd(EventStatus.PROCESSED, response_text="ok"))

    await erased(world)
    late = await world.storage.journal.write(write)
    found = await world.storage.follow_ups.load(follow_up.id)

    assert late == Lost(SOURCE_CHANGED)
    assert found is not None
    assert (found.message, found.status) == (f"write to {ERASED}", FollowUpStatus.PENDING)

    renewed = replace(write, source=source_follow_up(found))

    assert await world.storage.journal.write(renewed) == Appended(write.event.id)
    assert await status(world, follow_up) is FollowUpStatus.FIRED


async def test_a_kept_delivery_whose_body_went_makes_no_event(world: StorageWorld) -> None:
    agent, body = await world.agent(), HERS.encode()
    kept, other = delivery_of(agent, world.now, body=body), delivery_of(agent, world.now)
    await world.storage.deliveries.keep([kept, other], [])

    await erased(world)

    def made(delivery_id: UUID, content: bytes) -> AppendEvent:
        event = world.event_of(agent, id=delivery_id, request_json=content.decode())
        return AppendEvent(event, None, None, None, (), source=source_delivery(delivery_id, content))

    assert await world.storage.journal.write(made(kept.delivery.id, body)) == Lost(SOURCE_CHANGED)
    assert await world.storage.journal.write(made(other.delivery.id, b"{}")) == Appended(other.delivery.id)


GONE: list[Callable[[UUID], Source]] = [
    lambda gone: source_delivery(gone, b"{}"),
    lambda gone: replace(source_delivery(gone, b"{}"), kind=SourceKind.EVENT),
    lambda gone: replace(source_delivery(gone, b"{}"), kind=SourceKind.FOLLOW_UP),
]


@pytest.mark.parametrize("source", GONE)
async def test_nothing_is_made_from_what_is_gone(
    world: StorageWorld, source: Callable[[UUID], Source]
) -> None:
    write = AppendEvent(world.event_of(await world.agent()), None, None, None, (), source=source(new_id()))

    assert await world.storage.journal.write(write) == Lost(SOURCE_CHANGED)


async def test_what_came_while_the_last_rows_went_goes_in_the_pass_that_confirms(world: StorageWorld) -> None:
    store, agent = world.storage.erasures, await world.agent()
    await ended(world, agent, HERS, "Dear Ann")
    erasure_id = await begun(world, erasure_of(world))
    while (moved := await store.step(erasure_id)) is not None and moved.surface == 0:
        pass

    # Behind the place of the pass: an event of an older id, as a replay has that a bulk job asked for before.
    came = await ended(world, agent, HERS, "Dear Ann")
    first = await stepped(world, erasure_id)
    second = await stepped(world, erasure_id)
    third = await stepped(world, erasure_id)

    assert (first.status, first.confirms) == (ErasureStatus.WAITING, True)
    assert (second.status, second.confirms) == (ErasureStatus.WAITING, True)
    assert (third.status, third.passes, third.kept) == (ErasureStatus.DONE, 3, second.kept)
    assert [one.found for one in (second, third)] == [3, 0]
    assert (await event_of(world, came)).request_json == ERASED_DOCUMENT
    assert third.erased["events"] == 2


async def test_what_is_waited_for_in_a_pass_that_confirms_goes_in_a_later_one(world: StorageWorld) -> None:
    store, agent = world.storage.erasures, await world.agent()
    await ended(world, agent, HERS, "Dear Ann")
    erasure = erasure_of(world)
    first = await through(world, erasure)

    await world.append(agent, request_json=HERS)
    lease = (await world.claim(agent)).lease
    waits = [await stepped(world, erasure.id) for _ in range(2)]
    await world.end(lease, EventEnd(EventStatus.PROCESSED, response_text=f"to {ANN}"))
    done = await to_its_end(world, erasure.id)

    assert first.waits == 0
    assert [(one.status, one.waits, one.found) for one in waits] == [(ErasureStatus.WAITING, 1, 0)] * 2
    assert (await event_of(world, lease)).request_json == ERASED_DOCUMENT
    assert (done.status, done.erased["events"]) == (ErasureStatus.DONE, 2)
    assert await store.due(now=world.now + 10**6, limit=9) == []


async def test_frames_go_that_were_there_long_before_their_event_was_found(world: StorageWorld) -> None:
    agent, other = await world.agent(), await world.agent()
    await ended(world, other, HERS, "Dear Ann")
    await world.append(agent, request_json='{"n": 1}')
    lease = (await world.claim(agent)).lease
    # The value may be parted among the pieces of an answer: what tells is the transcript that follows.
    piece = replace(world.frame(agent, "chunk", {"text": "Dear ann@exam"}), event_id=lease.event_id)
    await world.storage.journal.write(AppendFrames(agent.id, (piece,), lease.id, lease.fencing_token))
    erasure = erasure_of(world)
    first = await through(world, erasure)

    held = LeaseToken(lease.id, lease.fencing_token)
    entries = [NewEntry(1, "note", None, {"text": f"to {ANN}"})]
    await world.storage.transcripts.append(agent.id, held, entries, TranscriptBounds())
    await world.end(lease, EventEnd(EventStatus.PROCESSED, response_text="ok"))
    await to_its_end(world, erasure.id)
    frames = await world.storage.frames.read(agent.id, after=0, limit=99)

    assert (first.waits, first.confirms) == (0, True)
    assert [frame.data["text"] for frame in frames if frame.kind == "chunk"] == [ERASED]


async def test_answers_that_others_save_all_the_time_do_not_keep_an_erasure_from_its_end(
    world: StorageWorld,
) -> None:
    uses = world.storage.key_uses
    use = KeyUse(world.tenant_id, b"k", b"d", new_id(), world.now, world.now, resumable=True, sealed=b"s")
    await uses.begin(use)
    await uses.settle(replace(use, status=201))

    done = await through(world, erasure_of(world))

    assert (done.status, done.passes, done.erased) == (ErasureStatus.DONE, 1, {"saved_answers": 1})
