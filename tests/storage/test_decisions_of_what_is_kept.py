"""Workspaces, transcripts, files of events and tombstones: what stays, what goes, to the last field."""

from typing import Any
from uuid import UUID

import msgspec
import pytest
from msgspec.structs import replace

from sexton_storage.decisions import event_files, tombstones, transcripts
from sexton_storage.decisions.kept_workspaces import StartRows, newest, outdated, snapshot_of, start
from sexton_storage.documents import to_json
from sexton_storage.records.artefacts import Artefact
from sexton_storage.records.blobs import Blob, BlobState
from sexton_storage.records.erasures import Erasure, ErasureStatus, Tombstone
from sexton_storage.records.event_files import EventFile, Missing, NewFiles, NotBrought, WantedFile
from sexton_storage.records.events import EventStatus
from sexton_storage.records.kept_workspaces import SNAPSHOTS_KEPT, Snapshot, Start
from sexton_storage.records.leases import LeaseStatus
from sexton_storage.records.transcripts import NewEntry, Transcript, TranscriptBounds, TranscriptEntry
from tests.storage.test_decisions_of_leases import AGENT, EVENT, HELD, LEASE, NOW, OTHER, PLACE, RECEIVED

BLOB = Blob(OTHER, PLACE, LEASE, b"h" * 32, 9, 9, BlobState.KEPT, 0, 0, 0)
START = Start(AGENT, EVENT, OTHER, is_fork=True)


def shot(token: int, *, is_fork: bool = False) -> Snapshot:
    return Snapshot(UUID(int=token), AGENT, PLACE, EVENT, token, is_fork, OTHER, bytes(32), 9, 1)


# --- workspaces ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_fork", [True, False])
def test_what_continues_a_replay_goes_on_with_what_that_left(is_fork: bool) -> None:
    event = replace(RECEIVED, resumes_event_id=OTHER, checkpoint={"a": 1})
    rows = StartRows(event, None, None, replace(START, is_fork=is_fork), shot(3), shot(4))
    alone = start(rows._replace(resumed=None))

    assert start(rows) == Start(AGENT, EVENT, UUID(int=3 if is_fork else 4), is_fork)
    assert alone == Start(AGENT, EVENT, UUID(int=4), is_fork=False)
    assert start(rows._replace(left=None)).snapshot_id == (None if is_fork else UUID(int=4))


def test_an_event_by_itself_begins_with_the_newest() -> None:
    rows = StartRows(RECEIVED, None, None, None, None, shot(4))
    replay = rows._replace(event=replace(RECEIVED, resumes_event_id=OTHER))

    assert start(rows) == Start(AGENT, EVENT, UUID(int=4), is_fork=False)
    assert start(replay) == Start(AGENT, EVENT, None, is_fork=True)
    assert start(rows._replace(settled=START)) == START


def test_a_lease_leaves_a_snapshot_of_what_it_has_sent() -> None:
    left = Snapshot(*(LEASE, AGENT, PLACE, EVENT, 5, True, OTHER, b"h" * 32, 9, NOW))

    assert snapshot_of(HELD, START, BLOB, NOW, held=True) == left

    for settled, blob, held in (
        (START, BLOB, False),
        (None, BLOB, True),
        (START, None, True),
        (START, replace(BLOB, state=BlobState.OPEN), True),
        (START, replace(BLOB, lease_id=OTHER), True),
    ):
        assert snapshot_of(HELD, settled, blob, NOW, held=held) is None


def test_the_newest_is_reported_of_no_replay_and_after_a_reset() -> None:
    reported = [(shot(token), LeaseStatus.REPORTED) for token in (5, 7, 6)]
    others = [(shot(9), LeaseStatus.PARKED), (shot(8, is_fork=True), LeaseStatus.REPORTED)]

    assert newest([*reported, *others], 0) == shot(7)
    assert newest(reported, 6) == shot(7)
    assert newest(reported, 7) is None


def test_what_nobody_starts_from_is_outdated() -> None:
    many = [(shot(token), LeaseStatus.PARKED) for token in range(20, 20 + SNAPSHOTS_KEPT)]
    old = [(shot(11), LeaseStatus.REPORTED), (shot(10), LeaseStatus.REPORTED), (shot(12), LeaseStatus.ACTIVE)]
    lost = [(shot(40), LeaseStatus.RECLAIMED), (shot(41), LeaseStatus.RELEASED)]
    before = [(shot(5), LeaseStatus.REPORTED), (shot(4), LeaseStatus.REPORTED)]

    found = outdated([*before, *many, *old, *lost], 5)

    assert [one.fencing_token for one in found] == [41, 40, 5, 4, 12, 10]

    for status in (LeaseStatus.ACTIVE, LeaseStatus.CANCELLING, LeaseStatus.REPORTED, LeaseStatus.PARKED):
        assert outdated([(shot(6), status)], 5) == []


# --- transcripts --------------------------------------------------------------------------------------------

KEPT = Transcript(AGENT, EVENT, 2, PLACE, 100, entries=3, bytes=10, last_number=7)
BOUNDS = TranscriptBounds()


def entry(number: int, at_ms: int, kind: str = "note", data: Any = None) -> TranscriptEntry:
    data = {"t": 1} if data is None else data
    return TranscriptEntry(AGENT, EVENT, 2, number, kind, at_ms, data, len(to_json(data)))


def test_entries_are_taken_in_order_and_stamped_within_the_run() -> None:
    said = [NewEntry(number, "note", at, {"t": 1}) for number, at in ((9, 999), (8, 50), (6, 300), (5, None))]
    taken = transcripts.take(KEPT, {1}, said, BOUNDS, 500)
    size = len(to_json({"t": 1}))

    assert taken.entries == (entry(5, 500), entry(6, 300), entry(8, 100), entry(9, 500))
    assert taken.transcript == replace(KEPT, entries=7, bytes=10 + 4 * size, last_number=9)
    assert transcripts.begun(HELD) == Transcript(AGENT, EVENT, 2, PLACE, HELD.granted_at)


@pytest.mark.parametrize(
    ("kept", "bounds", "kinds"),
    [
        ({}, {"run_bytes": 17}, ["note"]),
        ({}, {"run_bytes": 16}, ["cut"]),
        ({"entries": 19_999}, {}, ["note"]),
        ({"entries": 20_000}, {}, ["cut"]),
        ({"is_cut": True}, {}, []),
        ({"is_removed": True}, {}, []),
        ({}, {"days": 0}, []),
        ({}, {"days": 1}, ["note"]),
    ],
)
def test_what_is_beyond_a_bound_is_cut_or_not_kept(
    kept: dict[str, int], bounds: dict[str, int], kinds: list[str]
) -> None:
    said = [NewEntry(8, "note", 300, {"t": 1})]
    taken = transcripts.take(replace(KEPT, **kept), (), said, replace(BOUNDS, **bounds), 500)

    assert len(to_json({"t": 1})) == 7
    assert [one.kind for one in taken.entries] == kinds
    assert taken.transcript.is_cut is ("cut" in kinds or "is_cut" in kept)

    if kinds == ["cut"] and not kept:
        facts = {"kept_entries": 3, "kept_bytes": 10, "max_bytes": 16}
        assert taken.entries == (entry(8, 300, "cut", facts),)


def test_the_oldest_attempts_make_room() -> None:
    rows = [replace(KEPT, began_at=at, bytes=10) for at in (3, 1, 2)]
    gone = replace(KEPT, began_at=9, bytes=99, is_removed=True)

    assert transcripts.over_bound([*rows, gone], 30) == []
    assert [row.began_at for row in transcripts.over_bound([*rows, gone], 29)] == [1]
    assert [row.began_at for row in transcripts.over_bound(rows, 9)] == [3, 2, 1]
    assert transcripts.of_workspaces(rows) == {PLACE: rows}


# --- files of events ----------------------------------------------------------------------------------------

NEW = NewFiles(EVENT, AGENT, PLACE, LEASE, max_bytes=18, now=NOW)
LEFT = Artefact(OTHER, OTHER, AGENT, PLACE, LEASE, 1, "a", "text/plain", OTHER, b"h" * 32, 9, 0)
OWN = WantedFile("a", upload_id=OTHER)


def test_files_are_brought_as_they_were_sent() -> None:
    typed = WantedFile("b", event_id=OTHER, media_type="a/b")
    first = EventFile(EVENT, 0, AGENT, PLACE, "a", "application/octet-stream", OTHER, b"h" * 32, 9, NOW)

    assert event_files.bring(NEW, [OWN, typed], [None, LEFT], {OTHER: BLOB}) == [
        first,
        replace(first, number=1, name="b", media_type="a/b"),
    ]

    with pytest.raises(ValueError, match="zip"):
        event_files.bring(NEW, [OWN, typed], [None], {OTHER: BLOB})


@pytest.mark.parametrize(
    ("wanted", "blob", "why"),
    [
        (OWN, {"state": BlobState.OPEN}, NotBrought.NOT_SENT),
        (OWN, {"workspace_id": OTHER}, NotBrought.NOT_SENT),
        (OWN, {"lease_id": OTHER}, NotBrought.NOT_SENT),
        (OWN, {"size": 19}, NotBrought.TOO_LARGE),
        (WantedFile("a", event_id=OTHER), {"state": BlobState.DOOMED}, NotBrought.NOT_LEFT),
        (WantedFile("a", event_id=OTHER), {"workspace_id": OTHER}, NotBrought.NOT_LEFT),
        (WantedFile("a", event_id=OTHER), {"lease_id": OTHER}, None),
    ],
)
def test_a_file_is_not_brought(wanted: WantedFile, blob: dict[str, Any], why: NotBrought | None) -> None:
    found = event_files.bring(NEW, [wanted], [LEFT], {OTHER: replace(BLOB, **blob)})

    assert (found.why if isinstance(found, Missing) else None) is why


def test_a_file_stays_until_its_event_is_over_and_its_time_is_past() -> None:
    [file] = event_files.bring(NEW, [OWN], [None], {OTHER: BLOB})  # type: ignore[misc]
    done = replace(RECEIVED, status=EventStatus.PROCESSED, completed_at=NOW)

    assert event_files.is_over(file, done, NOW + 5, 5)
    assert not event_files.is_over(file, done, NOW + 4, 5)
    assert not event_files.is_over(file, RECEIVED, NOW + 5, 5)


# --- tombstones ---------------------------------------------------------------------------------------------

ERASURE = Erasure(
    *(OTHER, EVENT, PLACE, "a.b", b"h" * 32, 3, True, False, ErasureStatus.DONE, "user:1", "ann", 5, 7)
)
STONE = Tombstone(OTHER, EVENT, PLACE, "a.b", (b"h" * 32).hex(), 3, "user:1", "ann", 5, 7)


def test_an_erasure_begins_again_from_what_was_kept_of_it() -> None:
    assert tombstones.tombstone_of(ERASURE) == STONE
    assert tombstones.tombstone_of(replace(ERASURE, ended_at=6)) == replace(STONE, ended_at=6)
    assert tombstones.again(STONE, NOW) == replace(
        ERASURE, dry_run=False, restored=True, status=ErasureStatus.RUNNING, updated_at=NOW
    )


@pytest.mark.parametrize(
    ("changes", "is_read"),
    [
        ({}, True),
        ({"chars": 0}, False),
        ({"chars": 1}, True),
        ({"chars": 512}, True),
        ({"chars": 513}, False),
        ({"sha256": "00"}, False),
        ({"sha256": "zz" * 32}, False),
        ({"sha256": "00" * 33}, False),
    ],
)
def test_only_a_line_that_is_right_is_read(changes: dict[str, Any], is_read: bool) -> None:
    line = msgspec.json.encode(replace(STONE, **changes))
    try:
        found: object = tombstones.read(b"\n" + line + b"\n\n")
    except ValueError as fault:
        found = str(fault)

    assert found == ([replace(STONE, **changes)] if is_read else "line 2 is no erasure")
