"""What goes by age is in the archive first: whole and read back, whoever dies and whatever is away."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import trio

from sexton_storage.archives import batches
from sexton_storage.archives.batches import Dropped
from sexton_storage.archives.folder_place import FolderPlace
from sexton_storage.archives.lines import pack
from sexton_storage.archives.verification import rows_of_event
from sexton_storage.decisions.erasure import ERASED_DOCUMENT
from sexton_storage.postgres import PostgresStorage, open_postgres_storage
from sexton_storage.records.archives import ArchiveKind, RowsDiffer
from tests.conformance.test_conformance_deliveries import one as delivery_of
from tests.conformance.test_conformance_erasures import HERS, erasure_of, through
from tests.conformance.test_conformance_transcripts import append, note
from tests.storage.test_storage_compaction import OF_BEFORE, TO_THE_REST, counts, on, run, sums
from tests.thorough import amount
from tests.worlds.archives import BOUNDS, DONE, KEEPS, LIMITS, SOON, ArchiveWorld, Killed, let_go_at_once
from tests.worlds.storage import StorageWorld, metered, new_id

CHANGES_EVENT = 'UPDATE events SET request_json = \'{"n": "[erased]"}\' WHERE id = $1'
FEWEST_MOMENTS = 20
MOST_MOMENTS = 200
STRIDE = amount(3, 1, variable="SEXTON_ARCHIVE_STRIDE")
"""Of the moments at which a node is killed, every one or some."""


@pytest.fixture
async def archive(postgres_storage: PostgresStorage, tmp_path: Path) -> ArchiveWorld:
    return await ArchiveWorld.found(postgres_storage, FolderPlace(tmp_path))


async def loaded(world: ArchiveWorld, events: list[UUID]) -> list[UUID]:
    return [event_id for event_id in events if await world.storage.events.load(event_id) is not None]


async def test_events_go_to_the_archive_with_all_that_is_theirs_before_they_are_deleted(
    archive: ArchiveWorld,
) -> None:
    agent = await archive.world.agent()
    event = await archive.world.append(agent)
    lease = (await archive.world.claim(agent)).lease
    await append(archive.world, lease, note(1), note(2))
    await archive.world.end(lease, DONE, nanos=11)
    waiting = await archive.world.append(agent)

    done = await archive.go()
    again = await archive.go()
    whole, wrong = await archive.verified()

    assert done is not None
    assert (done.rows.rows, again, wrong) == (1, None, [])
    assert await loaded(archive, [event.id, waiting.id]) == [waiting.id]
    assert await metered(archive.world, [event.id]) == 11

    (read,) = whole
    assert (read.sha256, read.manifest.workspace_id) == (done.sha256, archive.world.workspace_id)
    assert (read.manifest.first_id, read.manifest.previous) == (event.id, None)
    assert {name: table.rows for name, table in read.manifest.tables.items() if table.rows} == {
        "events": 1,
        "leases": 1,
        "scores": 1,
        "transcripts": 1,
        "transcript_entries": 2,
    }

    entries = ["transcript_entries"] * 2
    assert await archive.tables_of(event.id) == ["events", "leases", "scores", *entries, "transcripts"]


async def test_each_batch_is_of_one_workspace_and_names_the_manifest_before(archive: ArchiveWorld) -> None:
    other = ArchiveWorld(await archive.world.beside(), archive.storage, archive.place)
    first, second = await archive.ended(2, nanos=5), await other.ended(3, nanos=7)

    done = [await archive.go() for _ in range(3)]
    whole, wrong = await archive.verified()

    assert sorted(one.rows.rows for one in done if one is not None) == [2, 3]
    assert await loaded(archive, first + second) == []
    assert wrong == []
    assert [read.manifest.number for read in whole] == [1, 2]

    previous = whole[1].manifest.previous
    assert previous is not None
    assert (previous.number, previous.sha256) == (1, whole[0].sha256)


async def test_transcripts_and_deliveries_go_by_way_of_the_archive(archive: ArchiveWorld) -> None:
    world = archive.world
    lease = await world.lease()
    await append(world, lease, note(1))
    kept = delivery_of(await world.agent(), world.now, body=b"\x00a body")
    await world.storage.deliveries.keep([kept], ())

    done = [await archive.go(kind) for kind in (ArchiveKind.TRANSCRIPTS, ArchiveKind.DELIVERIES)]
    whole, wrong = await archive.verified()

    assert [one.rows.rows for one in done if one is not None] == [1, 1]
    assert (await world.storage.transcripts.attempts(lease.zombie_id, lease.event_id, limit=9), wrong) == (
        [],
        [],
    )
    assert await world.storage.deliveries.load(kept.delivery.id) is None
    assert [{name: table.rows for name, table in read.manifest.tables.items()} for read in whole] == [
        {"transcripts": 1, "transcript_entries": 1},
        {"webhook_deliveries": 1, "webhook_bodies": 1},
    ]


async def test_metering_slices_are_archived_before_they_are_compacted_and_no_sum_changes(
    archive: ArchiveWorld, postgres_dsn: str
) -> None:
    for _ in range(2):
        await run(archive.world)
    before = await sums(postgres_dsn)

    done = [await archive.go(ArchiveKind.METERING) for _ in range(4)]
    whole, wrong = await archive.verified()

    assert [(one.rows.rows, one.rows.left) for one in done if one and one.sha256] == [(8, 2)]
    assert (await sums(postgres_dsn), await counts(postgres_dsn), wrong) == (before, (0, 2), [])

    (read,) = whole
    charged = sum(row[2] for row in before)
    assert read.manifest.tables["metering"].nanos["charged_nanos"] == charged


@pytest.mark.parametrize("kind", [ArchiveKind.EVENTS, ArchiveKind.METERING])
async def test_a_node_that_is_killed_at_any_moment_loses_nothing_and_the_next_one_ends_it(
    archive: ArchiveWorld, postgres_dsn: str, monkeypatch: pytest.MonkeyPatch, kind: ArchiveKind
) -> None:
    let_go_at_once(monkeypatch)
    everything = list[UUID]()
    moments = list[str]()
    for moment in range(1, MOST_MOMENTS, STRIDE):
        if kind is ArchiveKind.METERING:
            await archive.storage.metering.make_ready(2)
            await archive.go(kind)  # Yesterday's, which is empty.
        events = await archive.ended(2)
        everything += events
        before = await sums(postgres_dsn)
        died_at = await archive.go_until_killed(moment, kind)
        here = await loaded(archive, events)
        assert [one for one in events if one not in here and not await archive.tables_of(one)] == []
        assert await sums(postgres_dsn) == before

        while await archive.go(kind) is not None:
            pass

        if not died_at:
            break
        moments.append(died_at)

    whole, wrong = await archive.verified()
    assert wrong == []
    assert len(moments) * STRIDE > FEWEST_MOMENTS

    if STRIDE == 1:
        assert {"before put", "after put", "between lines", "after written", "before drop"} < {*moments}
    assert await metered(archive.world, everything) == 11 * len(everything)

    if kind is ArchiveKind.EVENTS:
        assert await loaded(archive, everything) == []
        assert [one for one in everything if not await archive.tables_of(one)] == []

    rows = sum(read.manifest.tables[archive.storage.archives.tables(kind)[0]].rows for read in whole)
    assert rows == len(everything)


async def test_of_two_nodes_at_once_one_archives_a_batch(archive: ArchiveWorld) -> None:
    events = await archive.ended(5)
    done = list[Dropped | None]()

    async def node(storage: PostgresStorage) -> None:
        mine = ArchiveWorld(StorageWorld(storage), storage, archive.place)
        for _ in range(4):
            done.append(await mine.go())

    dsn = archive.storage._dsn
    async with open_postgres_storage(dsn) as other, trio.open_nursery() as nursery:
        nursery.start_soon(node, archive.storage)
        nursery.start_soon(node, other)
    while await loaded(archive, events):
        done.append(await archive.go())
    whole, wrong = await archive.verified()

    assert [one.rows.rows for one in done if one is not None] == [5]
    assert (len(whole), wrong) == (1, [])


async def test_a_node_that_was_frozen_changes_nothing_when_it_wakes(
    archive: ArchiveWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    let_go_at_once(monkeypatch)
    (event_id,) = await archive.ended()
    await archive.go_until_killed(9)
    store = archive.storage.archives
    place = archive.place.address
    frozen = await store.collect(
        ArchiveKind.EVENTS, SOON, batch_id=new_id(), place=place, limit=9, hold_ms=-1
    )
    assert frozen is not None

    done = await archive.go()

    assert done is not None
    assert done.batch.fence > frozen.fence
    assert await store.written(frozen, b"{}") is None
    assert await store.verified(frozen, bytes(32)) is None
    assert not await store.again(frozen)
    assert await store.drop(frozen, {}, SOON, limit=9) is None
    assert (await archive.verified())[1] == []
    assert await archive.tables_of(event_id) != []


async def test_rows_that_change_after_they_were_written_are_archived_again_as_they_are(
    archive: ArchiveWorld, postgres_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (event_id,) = await archive.ended()
    drop = archive.storage.archives.drop

    async def erase_and_drop(*args: Any, **rest: Any) -> Any:
        monkeypatch.setattr(archive.storage.archives, "drop", drop)
        await on(postgres_dsn, lambda c: c.execute(CHANGES_EVENT, event_id))
        return await drop(*args, **rest)

    monkeypatch.setattr(archive.storage.archives, "drop", erase_and_drop)
    with pytest.raises(RowsDiffer, match="events"):
        await archive.go()
    left = await loaded(archive, [event_id])
    done = await archive.go()
    texts = [path.read_bytes() for path in Path(archive.place.address).rglob("*.json")]

    assert left == [event_id]
    assert done is not None
    assert len(texts) == 2, "the owner's, and one manifest"
    assert (await archive.verified())[1] == []

    rows = [row async for table, row in rows_of_event(archive.place, event_id) if table == "events"]
    assert [row["request_json"] for row in rows] == ['{"n": "[erased]"}']


async def test_the_receipt_of_an_erasure_counts_the_batches_that_may_have_the_value(
    archive: ArchiveWorld,
) -> None:
    other = ArchiveWorld(await archive.world.beside(), archive.storage, archive.place)
    for world in (archive, archive, other):
        await world.ended(request_json=HERS)
        assert await archive.go() is not None
    (event_id,) = await archive.ended(request_json=HERS)

    receipt = await through(archive.world, erasure_of(archive.world))
    done = await archive.go()
    rows = [row async for table, row in rows_of_event(archive.place, event_id) if table == "events"]

    assert dict(receipt.kept) == {"archives": 2}
    assert done is not None
    assert [row["request_json"] for row in rows] == [ERASED_DOCUMENT]


async def die(*_: object, **__: object) -> None:
    raise Killed


async def test_what_is_not_due_any_more_when_its_turn_comes_stays(
    archive: ArchiveWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    let_go_at_once(monkeypatch)
    events = await archive.ended(2)
    with monkeypatch.context() as patch:
        patch.setattr(archive.storage.archives, "drop", die)
        with pytest.raises(Killed):
            await archive.go()

    with pytest.raises(RowsDiffer, match="0 of 2"):
        await archive.node().work(ArchiveKind.EVENTS, KEEPS, batch_id=new_id(), limits=LIMITS)
    kept = await archive.node().work(ArchiveKind.EVENTS, KEEPS, batch_id=new_id(), limits=LIMITS)
    left = await loaded(archive, events)
    done = await archive.go()

    assert (kept, left) == (None, events)
    assert done is not None
    assert (await loaded(archive, events), (await archive.verified())[1]) == ([], [])


@pytest.mark.parametrize(
    ("source", "pages"), [("metering_slices_rest", [8, 4]), ("metering_runs", [4, 4, 4])]
)
async def test_metering_rows_that_are_in_no_day_are_archived_by_pages_before_they_are_compacted(
    archive: ArchiveWorld, postgres_dsn: str, source: str, pages: list[int]
) -> None:
    for _ in range(3):
        await run(archive.world)
    await on(postgres_dsn, lambda c: c.execute(TO_THE_REST if source.endswith("rest") else OF_BEFORE))
    before = await sums(postgres_dsn)
    limits = {**LIMITS, ArchiveKind.METERING: 2}

    done = [
        await archive.node().work(ArchiveKind.METERING, BOUNDS, batch_id=new_id(), limits=limits)
        for _ in range(6)
    ]
    whole, wrong = await archive.verified()

    assert [one.rows.rows for one in done if one is not None and one.sha256] == pages
    assert {read.manifest.source for read in whole} == {source}
    assert (await sums(postgres_dsn), await counts(postgres_dsn), wrong) == (before, (0, 3), [])


async def test_a_day_is_archived_in_objects_of_a_bounded_length(
    archive: ArchiveWorld, postgres_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "OBJECT_BYTES", 4_000)
    monkeypatch.setattr("sexton_storage.postgres.stores.archives.METERING_PAGE", 7)
    for _ in range(8):
        await run(archive.world)
    before = await sums(postgres_dsn)
    longest = list[int]()

    def packed(lines: Sequence[bytes]) -> bytes:
        longest.append(sum(map(len, lines)))
        return pack(lines)

    monkeypatch.setattr("sexton_storage.archives.batches.pack", packed)
    while await archive.go(ArchiveKind.METERING) is not None:
        pass
    (read,), wrong = await archive.verified()

    assert (sum(one.rows for one in read.manifest.objects), wrong) == (32, [])
    assert len({one.name for one in read.manifest.objects}) == len(longest) > 1
    assert max(longest) < 4_000 + 1_000
    assert await sums(postgres_dsn) == before
