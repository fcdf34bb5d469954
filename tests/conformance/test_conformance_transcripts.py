"""Transcripts: numbered, fenced, bounded, read in pages, and gone in time."""

from collections.abc import Sequence
from typing import Any

from sexton_storage.records.events import EventStatus
from sexton_storage.records.leases import Lease, LeaseStatus, LeaseToken
from sexton_storage.records.transcripts import (
    WHOLE_BYTES,
    EntryPlace,
    EntryQuery,
    NewEntry,
    Transcript,
    TranscriptBounds,
    TranscriptEntry,
)
from sexton_storage.writes import EventEnd
from tests.worlds.storage import StorageWorld

BOUNDS = TranscriptBounds()


def note(number: int, text: str = "it", at_ms: int | None = None) -> NewEntry:
    return NewEntry(number, "note", at_ms, {"text": text})


async def append(
    world: StorageWorld,
    lease: Lease,
    *entries: NewEntry,
    bounds: TranscriptBounds = BOUNDS,
    token: int | None = None,
) -> Transcript | None:
    held = LeaseToken(lease.id, lease.fencing_token if token is None else token)
    return await world.storage.transcripts.append(lease.zombie_id, held, entries, bounds)


async def read(world: StorageWorld, lease: Lease, **options: Any) -> Sequence[TranscriptEntry]:
    query = EntryQuery(**{"limit": 100, "max_bytes": 10**6, **options})
    return await world.storage.transcripts.read(lease.zombie_id, lease.event_id, query)


async def attempts(world: StorageWorld, lease: Lease) -> Sequence[Transcript]:
    return await world.storage.transcripts.attempts(lease.zombie_id, lease.event_id, limit=10)


async def test_entries_are_kept_once_by_number_and_a_gap_shows(world: StorageWorld) -> None:
    lease = await world.lease()
    early, late = lease.granted_at - 5_000, world.now + 60_000

    await append(world, lease, note(1, "first", early), note(2, "caf\u00e9\x00", late))
    kept = await append(world, lease, note(2, "changed"), note(5, "fifth"))

    assert kept is not None
    assert (kept.entries, kept.last_number, kept.missing) == (3, 5, 2)
    assert await attempts(world, lease) == [kept]

    found = await read(world, lease)
    assert [(e.number, e.data["text"]) for e in found] == [(1, "first"), (2, "caf\u00e9\x00"), (5, "fifth")]
    assert found[0].at_ms == lease.granted_at
    assert found[1].at_ms < late
    assert kept.bytes == sum(entry.size for entry in found)


async def test_only_who_holds_the_agent_adds_and_each_attempt_is_apart(world: StorageWorld) -> None:
    agent = await world.agent()
    await world.append(agent)
    lease = (await world.claim(agent)).lease
    assert await append(world, lease, note(1), token=lease.fencing_token + 1) is None
    assert await append(world, lease, note(1, "of the first")) is not None

    await world.end(lease, EventEnd(EventStatus.RECEIVED), status=LeaseStatus.RELEASED)
    again = (await world.claim(agent)).lease
    assert again.event_id == lease.event_id
    assert await append(world, lease, note(1, "late"), note(2, "later")) is None

    await append(world, again, note(1, "of the second"))

    told = [(e.attempt, e.data["text"]) for e in await read(world, again)]
    assert told == [(1, "of the first"), (2, "of the second")]
    assert [e.attempt for e in await read(world, again, attempt=2)] == [2]

    other = await world.lease()
    assert await read(world, other) == []


async def test_pages_are_bounded_by_entries_and_bytes(world: StorageWorld) -> None:
    lease = await world.lease()
    long = "x" * (WHOLE_BYTES + 1)
    await append(world, lease, *(note(n, long if n == 2 else "short") for n in range(1, 6)))

    cut = await read(world, lease)
    assert [(e.number, bool(e.data)) for e in cut] == [(1, True), (2, False), (3, True), (4, True), (5, True)]
    assert cut[1].size > WHOLE_BYTES

    whole = await read(world, lease, whole=True, after=EntryPlace(1, 1), limit=2)
    assert [len(e.data["text"]) for e in whole] == [WHOLE_BYTES + 1, 5]

    few = await read(world, lease, whole=True, max_bytes=40)
    assert [e.number for e in few] == [1]

    one = await read(world, lease, whole=True, max_bytes=40, after=EntryPlace(1, 1))
    assert [e.number for e in one] == [2], "at least one, however long"


async def test_a_run_ends_its_transcript_with_a_mark_where_it_reached_the_bound(world: StorageWorld) -> None:
    lease, bounds = await world.lease(), TranscriptBounds(run_bytes=50)
    size = len(b'{"text":"it"}')

    kept = await append(world, lease, *(note(n) for n in range(1, 9)), bounds=bounds)
    assert kept is not None
    assert kept.is_cut

    again = await append(world, lease, note(4), note(9), bounds=bounds)
    assert again == kept

    entries = await read(world, lease)
    assert [entry.kind for entry in entries] == ["note", "note", "note", "cut"]
    assert entries[-1].data == {"kept_entries": 3, "kept_bytes": 3 * size, "max_bytes": 50}
    assert await append(world, await world.lease(), note(1), bounds=TranscriptBounds(days=0)) is not None


async def test_the_oldest_of_a_workspace_make_room_and_the_past_is_deleted(world: StorageWorld) -> None:
    other = await world.beside()
    leases = [await world.lease() for _ in range(3)]
    far = await other.lease()
    for lease in leases:
        await append(world, lease, note(1), note(2))
    await append(other, far, note(1))
    order = sorted(leases, key=lambda one: (one.granted_at, one.event_id))
    small = TranscriptBounds(workspace_bytes=60)

    prune = world.storage.transcripts.prune
    assert await prune(BOUNDS, limit=100) == 0
    assert await prune(small, limit=100) == 1
    assert await prune(small, limit=100) == 0
    assert [len(await read(world, lease)) for lease in (*order, far)] == [0, 2, 2, 1]

    (gone,) = await attempts(world, order[0])
    assert (gone.is_removed, gone.entries) == (True, 2)
    assert await append(world, order[0], note(3)) == gone

    assert await prune(TranscriptBounds(days=-1), limit=2) == 2
    assert await prune(TranscriptBounds(days=-1), limit=9) == 2
    assert await attempts(world, far) == []


async def test_a_transcript_goes_with_its_agent(world: StorageWorld) -> None:
    agent = await world.agent()
    await world.append(agent)
    lease = (await world.claim(agent)).lease
    await append(world, lease, note(1))
    await world.end(lease, EventEnd(EventStatus.PROCESSED))

    await world.storage.zombies.delete(agent.id)

    assert await read(world, lease) == []
    assert await attempts(world, lease) == []
