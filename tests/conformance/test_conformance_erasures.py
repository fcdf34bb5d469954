"""Erasures: what a person's value stands in goes, on every surface, and the money stays."""

from typing import Any
from uuid import UUID

from msgspec.structs import replace

from sexton_storage.decisions.erasure import ERASED, ERASED_DOCUMENT
from sexton_storage.decisions.erasure_steps import SURFACES
from sexton_storage.event_filter.parse import parse_filter
from sexton_storage.records.erasures import OVER, Erasure, ErasureStatus
from sexton_storage.records.events import Event, EventStatus
from sexton_storage.records.key_uses import KeyUse
from sexton_storage.records.leases import Lease, LeaseToken
from sexton_storage.records.memories import MemoryChange
from sexton_storage.records.transcripts import EntryQuery, NewEntry, TranscriptBounds
from sexton_storage.records.zombies import Zombie
from sexton_storage.writes import EventEnd
from tests.conformance.test_conformance_artefacts import artefact_of, blob_of
from tests.conformance.test_conformance_deliveries import one as delivery_of
from tests.worlds.erasure_records import new_erasure
from tests.worlds.storage import StorageWorld, new_id

ANN = "ann@example.org"
HERS = '{"customer": {"email": "ann\\u0040example.org"}, "text": "help"}'
OTHERS = '{"customer": {"email": "bob@example.org"}, "cc": ["ann@example.org"], "n": 1.50}'


def erasure_of(world: StorageWorld, value: str = ANN, **changes: Any) -> Erasure:
    owner = world.tenant_id, world.workspace_id
    made = new_erasure(new_id(), *owner, path="customer.email", value=value, now=world.now)
    return replace(made, **changes)


async def begun(world: StorageWorld, erasure: Erasure) -> UUID:
    assert await world.storage.erasures.add(erasure, limit=9)
    return erasure.id


async def through(world: StorageWorld, erasure: Erasure) -> Erasure:
    """One pass, with what is kept after it."""
    return await stepped(world, await begun(world, erasure))


async def stepped(world: StorageWorld, erasure_id: UUID) -> Erasure:
    store = world.storage.erasures
    while (moved := await store.step(erasure_id)) is not None:
        if moved.status in {*OVER, ErasureStatus.WAITING}:
            return moved
    raise AssertionError("it was over before")


async def to_its_end(world: StorageWorld, erasure_id: UUID) -> Erasure:
    """Pass after pass, without the rests in between."""
    while (moved := await stepped(world, erasure_id)).status not in OVER:
        pass
    return moved


async def stopped_behind_events(world: StorageWorld, erasure_id: UUID) -> None:
    """Events are emptied, and nothing else of them is looked through."""
    store = world.storage.erasures
    while (moved := await store.step(erasure_id)) is not None and SURFACES[moved.surface] == "events":
        pass
    await store.stop(erasure_id)


async def run_of(world: StorageWorld, agent: Zombie, request: str) -> Lease:
    """A run that is under way, with an entry, a frame, a file and memories that name Ann."""
    await world.append(agent, request_json=request)
    lease = (await world.claim(agent)).lease
    held = LeaseToken(lease.id, lease.fencing_token)
    entries = [NewEntry(1, "note", None, {"text": f"to {ANN}"}), NewEntry(2, "note", None, {"text": "fine"})]
    await world.storage.transcripts.append(agent.id, held, entries, TranscriptBounds())
    return lease


async def ended(world: StorageWorld, agent: Zombie, request: str, answer: str) -> Lease:
    lease = await run_of(world, agent, request)
    frame = replace(world.frame(agent, "chunk", {"text": "Dear An", "n": 1}), event_id=lease.event_id)
    end = EventEnd(EventStatus.PROCESSED, response_text=answer, evidence={"to": ANN, "n": 1})
    await world.end(lease, end, nanos=700, frames=(frame,))
    return lease


async def event_of(world: StorageWorld, lease: Lease) -> Event:
    event = await world.storage.events.load(lease.event_id)

    assert event is not None

    return event


async def texts_of(world: StorageWorld, lease: Lease) -> list[str]:
    query = EntryQuery(limit=9, max_bytes=10**6)
    entries = await world.storage.transcripts.read(lease.zombie_id, lease.event_id, query)
    return [entry.data["text"] for entry in entries]


async def test_what_a_person_is_in_goes_and_what_others_are_in_loses_only_the_value(
    world: StorageWorld,
) -> None:
    storage, agent = world.storage, await world.agent()
    hers = await ended(world, agent, HERS, "Dear Ann")
    others = await ended(world, agent, OTHERS, f"Told <{ANN}>, not joann@example.org.")
    neighbour = await (await world.beside()).agent()
    next_door = await ended(world, neighbour, HERS, ANN)
    open_run = await run_of(world, agent, '{"n": 2}')
    held = LeaseToken(open_run.id, open_run.fencing_token)
    notes = [MemoryChange("a", f"Ann is {ANN}", "core"), MemoryChange("b", "no one", "core")]
    await storage.memories.keep(agent.id, held, notes, world.now)
    blob = await blob_of(world, open_run, f"name\n{ANN}\n".encode())
    await storage.artefacts.keep(artefact_of(world, open_run, blob), held)
    delivery = delivery_of(agent, world.now, body=HERS.encode())
    await storage.deliveries.keep([delivery], [])
    use = KeyUse(world.tenant_id, b"k", b"d", new_id(), world.now, world.now, resumable=True, sealed=b"s")
    await storage.key_uses.begin(use)
    await storage.key_uses.settle(replace(use, status=201))
    charged = await storage.tenants.load(world.tenant_id)
    dry = await through(world, erasure_of(world, dry_run=True))
    found = parse_filter(f'"{ANN}"', now=world.now)
    before = await storage.events.search(world.workspace_id, found, limit=9)

    over = await through(world, erasure_of(world))

    assert (over.status, over.waits) == (ErasureStatus.WAITING, 1)

    event = await event_of(world, hers)

    assert (event.request_json, event.response_text, event.evidence) == (ERASED_DOCUMENT, ERASED, {})

    other = await event_of(world, others)

    assert other.request_json == OTHERS.replace(ANN, ERASED)
    assert other.response_text == f"Told <{ERASED}>, not joann@example.org."
    assert other.evidence == {"to": ERASED, "n": 1}
    assert (event.charged_nanos, other.charged_nanos) == (700, 700)
    assert await storage.tenants.load(world.tenant_id) == charged
    assert await texts_of(world, hers) == []
    assert await texts_of(world, others) == [f"to {ERASED}", "fine"]

    frames = [
        frame for frame in await storage.frames.read(agent.id, after=0, limit=99) if frame.kind == "chunk"
    ]

    assert [frame.data for frame in frames] == [{"text": ERASED, "n": 1}] * 2
    assert (await event_of(world, next_door)).response_text == ANN
    assert [one.key for one in await storage.memories.of_lease(agent.id, limit=9)] == ["b"]
    assert await storage.artefacts.list(open_run.event_id, after=None, limit=9) == []
    assert await storage.deliveries.body(delivery.delivery.id) is None
    assert len(before.events) == 2, "the index of words has them"
    assert (await storage.events.search(world.workspace_id, found, limit=9)).events == []
    assert over.erased == {**dry.erased, "saved_answers": 1}
    assert (dry.status, over.erased.keys() <= set(SURFACES)) == (ErasureStatus.DONE, True)
    assert await storage.erasures.tombstones() == []

    await world.end(open_run, EventEnd(EventStatus.PROCESSED, response_text="ok"))
    done = await to_its_end(world, over.id)

    assert (done.status, done.waits, done.passes) == (ErasureStatus.DONE, 0, 3)
    assert await texts_of(world, open_run) == [f"to {ERASED}", "fine"]
    assert done.erased["transcripts"] == over.erased["transcripts"] + 1
    assert [one.id for one in await storage.erasures.tombstones()] == [done.id]
    assert await storage.erasures.step(done.id) is None


async def test_a_value_goes_from_several_rows_of_an_event_that_has_it_nowhere_else(
    world: StorageWorld,
) -> None:
    agent = await world.agent()
    await world.append(agent, request_json='{"n": 1}')
    lease = (await world.claim(agent)).lease
    held = LeaseToken(lease.id, lease.fencing_token)
    entries = [NewEntry(number, "note", None, {"text": f"to {ANN}"}) for number in (1, 2, 3)]
    await world.storage.transcripts.append(agent.id, held, entries, TranscriptBounds())
    await world.end(lease, EventEnd(EventStatus.PROCESSED, response_text="ok"))

    erasure = erasure_of(world)
    await through(world, erasure)
    done = await to_its_end(world, erasure.id)

    assert (done.erased, done.passes) == ({"transcripts": 3}, 2)
    assert await texts_of(world, lease) == [f"to {ERASED}"] * 3


async def test_an_erasure_goes_on_with_the_events_of_one_that_was_stopped(world: StorageWorld) -> None:
    agent = await world.agent()
    lease = await ended(world, agent, HERS, "Done.")
    first = await begun(world, erasure_of(world))
    await stopped_behind_events(world, first)
    kept = (await event_of(world, lease)).request_json, await texts_of(world, lease)

    counted = await through(world, erasure_of(world, dry_run=True))
    again = await to_its_end(world, await begun(world, erasure_of(world)))

    assert ANN not in kept[0]
    assert "fine" in kept[1]
    assert counted.erased["transcripts"] == 2
    assert again.status is ErasureStatus.DONE
    assert await texts_of(world, lease) == []


async def test_events_of_a_stopped_erasure_are_nothing_to_one_of_another_value(world: StorageWorld) -> None:
    agent = await world.agent()
    lease = await ended(world, agent, HERS, "Done.")
    first = await begun(world, erasure_of(world))
    await stopped_behind_events(world, first)

    await to_its_end(world, await begun(world, erasure_of(world, "bob@example.org")))

    assert "fine" in await texts_of(world, lease)


async def test_an_erasure_that_is_under_way_looks_again_for_what_another_leaves_behind(
    world: StorageWorld,
) -> None:
    store, agent = world.storage.erasures, await world.agent()
    first, second = await begun(world, erasure_of(world)), await begun(world, erasure_of(world))
    while (moved := await store.step(second)) is not None and SURFACES[moved.surface] != "agent_versions":
        pass
    lease = await ended(world, agent, HERS, "Done.")
    await stopped_behind_events(world, first)

    await to_its_end(world, second)

    assert await texts_of(world, lease) == []


async def test_an_erasure_begins_again_in_a_database_that_has_lost_it(world: StorageWorld) -> None:
    store, agent = world.storage.erasures, await world.agent()
    done = await through(world, erasure_of(world))
    stones = await store.tombstones()
    lost = [replace(stones[0], id=new_id()), replace(stones[0], id=new_id(), workspace_id=new_id())]
    late = await ended(world, agent, HERS, "Dear Ann")

    begun = await store.restore([*stones, *lost])

    assert done.status is ErasureStatus.DONE
    assert begun == [lost[0].id]
    assert await store.restore(lost) == []
    assert await store.due(now=world.now, limit=9) == begun

    restored = await to_its_end(world, lost[0].id)

    assert (restored.status, restored.restored) == (ErasureStatus.DONE, True)
    assert (await event_of(world, late)).request_json == ERASED_DOCUMENT


async def test_erasures_are_few_listed_and_can_be_stopped(world: StorageWorld) -> None:
    store = world.storage.erasures
    first, second = erasure_of(world), erasure_of(world, created_at=world.now + 1)

    assert await store.add(first, limit=1)
    assert await store.add(first, limit=1)

    refused = await store.add(second, limit=1)
    stopped = await store.stop(first.id)

    assert not refused
    assert stopped is not None
    assert stopped.status is ErasureStatus.STOPPED
    assert await store.stop(first.id) == stopped
    assert await store.stop(new_id()) is None
    assert await store.step(first.id) is None
    assert await store.add(second, limit=1)
    assert [one.id for one in await store.list(world.workspace_id, limit=9)] == [second.id, first.id]
    assert await store.load(first.id) == stopped
