"""Appends, folders that are applied, audit lines and contents: what is decided, to the last field."""

from typing import Any
from uuid import UUID

import pytest
from msgspec.structs import replace

from sexton_storage.decisions import append, applied, audit, blobs
from sexton_storage.decisions.append import AppendRows
from sexton_storage.decisions.applied import Refused, Wish, nothing_applied, write_down
from sexton_storage.decisions.erasure import ERASED_DOCUMENT
from sexton_storage.decisions.rows import DayCount, Decided, DedupKey, EventRow, Spent
from sexton_storage.decisions.sources import source_event
from sexton_storage.records.applied import Applied, Phase
from sexton_storage.records.audit import AuditEntry, AuditHead
from sexton_storage.records.blobs import Blob, BlobState, Place
from sexton_storage.records.crons import CronEntry, Firing
from sexton_storage.records.events import EventStatus
from sexton_storage.records.follow_ups import FollowUp, FollowUpStatus
from sexton_storage.records.gates import GateStatus
from sexton_storage.records.zombies import ZombieStatus
from sexton_storage.refusals import GONE, SOURCE_CHANGED, STALE, Lost
from sexton_storage.writes import Appended, AppendEvent, Duplicate, GateResolved, OverBudget
from tests.storage.test_decisions_of_ends import FRAME, GATE
from tests.storage.test_decisions_of_leases import AGENT, EVENT, NOW, OTHER, RECEIVED, TENANT_ID, ZOMBIE

IT = UUID(int=1)
FIRST = UUID(int=99)
NEW = replace(RECEIVED, created_at=NOW, updated_at=NOW)
WRITE = AppendEvent(NEW, b"key", 100, 200, (FRAME,), body_key=b"body")
NOTHING = AppendRows(ZOMBIE, None, None, None, None, None, Spent(99, 199), 4)
READ = source_event(NEW)
OLDER = source_event(replace(NEW, request_json=ERASED_DOCUMENT))
FIRING = Firing("* * * * *", "UTC", NOW, NOW + 60)
CRON = CronEntry(AGENT, "* * * * *", "UTC", 1, NOW)
ASKED = FollowUp(OTHER, AGENT, EVENT, "c", "m", NOW, 1)
KEYS = (
    DedupKey(AGENT, b"key", EVENT, NOW, by_body=False),
    DedupKey(AGENT, b"body", EVENT, NOW, by_body=True),
)


def test_an_event_is_kept_with_its_keys() -> None:
    assert append.append(NOTHING, WRITE) == Decided(
        Appended(EVENT), (EventRow(NEW), replace(ZOMBIE, last_event_at=NOW), *KEYS), (FRAME,)
    )


@pytest.mark.parametrize(
    ("keys", "kept"),
    [
        ({"dedup_key": None}, ()),
        ({"body_key": None}, KEYS[:1]),
        ({"body_key": b"key"}, KEYS[:1]),
    ],
)
def test_only_the_keys_that_there_are_are_remembered(
    keys: dict[str, Any], kept: tuple[DedupKey, ...]
) -> None:
    rows = append.append(NOTHING, replace(WRITE, **keys)).rows

    assert tuple(row for row in rows if isinstance(row, DedupKey)) == kept


def test_what_no_column_holds_is_replaced_and_a_schedule_of_others_stays() -> None:
    other = append.append(
        replace(NOTHING, cron=CRON), replace(WRITE, event=replace(NEW, request_json="a\0b"))
    )

    assert other.rows[0] == EventRow(replace(NEW, request_json="a\ufffdb"))
    assert not any(isinstance(row, CronEntry) for row in other.rows)


def test_a_history_never_shows_a_later_event_as_the_earlier_one() -> None:
    ahead = replace(NOTHING, agent=replace(ZOMBIE, last_event_at=NOW + 5))
    behind = replace(NOTHING, agent=replace(ZOMBIE, last_event_at=NOW - 5))
    late = replace(WRITE, event=replace(NEW, updated_at=NOW + 9))

    assert append.append(ahead, WRITE).rows[:2] == (
        EventRow(replace(NEW, created_at=NOW + 5, updated_at=NOW + 5)),
        replace(ZOMBIE, last_event_at=NOW + 5),
    )
    assert append.append(behind, late).rows[0] == EventRow(replace(NEW, updated_at=NOW + 9))


def test_what_it_was_asked_for_as_is_over_with_it() -> None:
    rows = replace(NOTHING, cron=CRON, follow_up=ASKED)
    write = replace(WRITE, firing=FIRING, follow_up_id=OTHER, dedup_key=None, events_limit=5)

    assert append.append(rows, write).rows[2:] == (
        replace(CRON, next_at=NOW + 60),
        replace(ASKED, status=FollowUpStatus.FIRED, closed_at=NOW),
        DayCount(TENANT_ID, 20_000, 5),
    )


@pytest.mark.parametrize(
    ("status", "event", "waits_at"),
    [
        (GateStatus.PENDING, EventStatus.WAITING_APPROVAL, OTHER),
        (GateStatus.DENIED, EventStatus.RECEIVED, None),
    ],
)
def test_an_event_waits_at_a_gate_that_is_open(
    status: GateStatus, event: EventStatus, waits_at: UUID | None
) -> None:
    gate = replace(GATE, status=status)
    rows = append.append(NOTHING, replace(WRITE, gate=gate)).rows

    assert rows[0] == EventRow(replace(NEW, status=event), waits_at)
    assert rows[-1] == gate


@pytest.mark.parametrize(
    ("rows", "asks", "answer"),
    [
        ({"agent": None}, {}, Lost(GONE)),
        ({"agent": replace(ZOMBIE, status=ZombieStatus.KILLED)}, {}, Lost(GONE)),
        ({}, {"firing": FIRING}, Lost(STALE)),
        ({"cron": replace(CRON, next_at=NOW + 60)}, {"firing": FIRING}, Lost(STALE)),
        ({}, {"follow_up_id": OTHER}, Lost(STALE)),
        (
            {"follow_up": replace(ASKED, status=FollowUpStatus.DROPPED)},
            {"follow_up_id": OTHER},
            Lost(STALE),
        ),
        ({}, {"source": READ}, Lost(SOURCE_CHANGED)),
        ({"source": OLDER, "spent": Spent(100, 0)}, {"source": READ}, Lost(SOURCE_CHANGED)),
        (
            {"source": OLDER, "follow_up": ASKED},
            {"source": READ, "follow_up_id": OTHER},
            Lost(SOURCE_CHANGED),
        ),
        ({"spent": Spent(100, 0)}, {}, OverBudget("day")),
        ({"spent": Spent(0, 200)}, {}, OverBudget("month")),
        ({}, {"events_limit": 4}, OverBudget("plan")),
    ],
)
def test_what_is_not_kept_leaves_nothing(rows: dict[str, Any], asks: dict[str, Any], answer: object) -> None:
    assert append.append(replace(NOTHING, **rows), replace(WRITE, **asks)) == Decided(answer)


def test_an_event_is_made_of_what_is_still_as_it_was_read_and_a_repeat_is_one_whatever_became_of_that() -> (
    None
):
    made = replace(WRITE, source=READ)
    repeat = replace(NOTHING, source=OLDER, by_key=KEYS[0])

    assert append.append(replace(NOTHING, source=READ), made) == append.append(NOTHING, WRITE)
    assert append.append(repeat, made).answer == Duplicate(EVENT)


def test_what_is_over_budget_drops_its_follow_up_and_ends_its_firing() -> None:
    rows = replace(NOTHING, cron=CRON, follow_up=ASKED, spent=Spent(100, 0))
    write = replace(WRITE, firing=FIRING, follow_up_id=OTHER)

    assert append.append(rows, write) == Decided(
        OverBudget("day"),
        (
            replace(CRON, next_at=NOW + 60),
            replace(ASKED, status=FollowUpStatus.DROPPED, closed_at=NOW),
        ),
    )


def test_a_duplicate_is_told_the_first_and_ends_what_is_still_to_come() -> None:
    known = DedupKey(AGENT, b"key", FIRST, NOW, by_body=False)
    past = replace(NOTHING, by_key=known, cron=replace(CRON, next_at=NOW + 60))
    due = replace(NOTHING, by_key=known, cron=CRON, follow_up=ASKED)
    fired = replace(NOTHING, by_key=known, follow_up=replace(ASKED, status=FollowUpStatus.FIRED))
    write = replace(WRITE, firing=FIRING)

    assert append.append(past, write) == Decided(Duplicate(FIRST))
    assert append.append(fired, write) == Decided(Duplicate(FIRST))
    assert append.append(due, write) == Decided(
        Duplicate(FIRST),
        (
            replace(CRON, next_at=NOW + 60),
            replace(ASKED, status=FollowUpStatus.FIRED, closed_at=NOW),
        ),
    )


@pytest.mark.parametrize(("age", "found"), [(86_399_999, FIRST), (86_400_000, None)])
def test_keys_are_forgotten_after_their_window(age: int, found: UUID | None) -> None:
    own = DedupKey(AGENT, b"key", FIRST, NOW - age, by_body=False)

    assert append.seen(own, None, NOW) == found
    assert append.seen(None, own, NOW) == found


# --- folders ------------------------------------------------------------------------------------------------


def test_nothing_has_been_applied_at_first() -> None:
    assert nothing_applied(IT) == Applied(
        IT, 0, applying=False, holder="", items={}, updated_at=0, updated_by=""
    )


BEGUN = Applied(IT, 1, applying=True, holder="a", items={"x": {}}, updated_at=1_000, updated_by="user:1")


@pytest.mark.parametrize(
    ("phase", "revision", "holder", "items", "now", "outcome"),
    [
        (Phase.RENEW, 1, "a", None, 2_000, replace(BEGUN, revision=2, updated_at=2_000)),
        (
            Phase.RENEW,
            1,
            "a",
            {"y": {}},
            2_000,
            replace(BEGUN, revision=2, updated_at=2_000, items={"y": {}}),
        ),
        (
            Phase.END,
            1,
            "a",
            None,
            2_000,
            replace(BEGUN, revision=2, updated_at=2_000, applying=False),
        ),
        (Phase.RENEW, 0, "a", None, 2_000, BEGUN),
        (Phase.END, 0, "a", None, 2_000, "UZ-APPLY-001"),
        (Phase.RENEW, 0, "b", None, 2_000, "UZ-APPLY-001"),
        (Phase.RENEW, 5, "a", None, 2_000, "UZ-APPLY-001"),
        (Phase.RENEW, 1, "b", None, 2_000, "UZ-APPLY-001"),
        (Phase.BEGIN, 1, "b", None, 20_999, "UZ-APPLY-002"),
        (Phase.BEGIN, 1, "a", None, 2_000, replace(BEGUN, revision=2, updated_at=2_000)),
    ],
)
def test_a_folder_is_written_down_by_who_holds_it(
    phase: Phase, revision: int, holder: str, items: Any, *, now: int, outcome: Applied | str
) -> None:
    found = write_down(BEGUN, Wish(phase, revision, holder, items, "user:1"), now)

    assert (found.code if isinstance(found, Refused) else found) == outcome


def test_the_codes_of_refusals_are_those_of_the_pages() -> None:
    assert (applied.CHANGED, applied.HELD) == ("UZ-APPLY-001", "UZ-APPLY-002")


# --- audit lines --------------------------------------------------------------------------------------------

ENTRY = AuditEntry(IT, OTHER, "key.create", "user:u", "ann", "::1", "r")


@pytest.mark.parametrize(
    ("named", "row", "workspace", "target"),
    [("it", "row", FIRST, "it"), ("", "row", FIRST, "row"), ("", "", FIRST, str(FIRST)), ("", "", None, "")],
)
def test_a_line_is_about_what_is_named(named: str, row: str, workspace: UUID | None, target: str) -> None:
    entry = replace(ENTRY, target=named, workspace_id=workspace)

    assert audit.append(entry, audit.GENESIS, 5, row).target == target


def test_facts_may_have_keys_of_any_kind() -> None:
    assert '"facts":{"1":"a"}' in audit.body_of(replace(ENTRY, facts={1: "a"}))


def test_an_answer_at_a_gate_is_a_change() -> None:
    assert audit.has_changed(GateResolved(GATE, event_freed=False))


def test_the_first_line_that_is_not_what_was_kept_is_named() -> None:
    first = audit.append(ENTRY, audit.GENESIS, 5, "a")
    known = [AuditHead(9, b"x"), AuditHead(7, b"y")]

    assert audit.first_break([first], [AuditHead(1, b"other")]) == (1, audit.Break.HEAD)
    assert audit.first_break([first], known) == (7, audit.Break.HEAD)


# --- contents -----------------------------------------------------------------------------------------------

BLOB = Blob(IT, OTHER, IT, bytes(32), 9, 9, BlobState.OPEN, 0, 0, 0)


@pytest.mark.parametrize(
    ("changes", "intact", "state"),
    [
        ({}, True, BlobState.KEPT),
        ({"received": 8}, True, None),
        ({"state": BlobState.KEPT}, True, BlobState.KEPT),
        ({"state": BlobState.KEPT}, False, None),
        ({"state": BlobState.DOOMED}, False, BlobState.DOOMED),
        ({"state": BlobState.DOOMED}, True, None),
    ],
)
def test_a_content_is_settled_when_it_is_whole(
    changes: dict[str, Any], intact: bool, state: BlobState | None
) -> None:
    assert blobs.settled(replace(BLOB, **changes), intact=intact) is state


def test_a_content_may_end_at_the_size_that_was_allowed() -> None:
    half = replace(BLOB, received=4)
    closing = blobs.closed(half, None, b"h", 5)

    assert closing is not None
    assert closing.kept == replace(BLOB, sha256=b"h", state=BlobState.KEPT)
    assert blobs.closed(half, None, b"h", 6) is None


def test_what_is_owned_stays_and_one_byte_is_moved() -> None:
    kept = replace(BLOB, state=BlobState.KEPT, owners=1)

    assert not blobs.is_over(kept, 10**15)
    assert blobs.is_over(replace(kept, state=BlobState.DOOMED), 0)
    assert blobs.room(10**12, 0, 1, None) is None
    assert blobs.is_moving(replace(kept, size=1))
    assert not blobs.is_moving(None)
    assert not blobs.is_moving(replace(kept, state=BlobState.OPEN))
    assert not blobs.is_moving(replace(kept, place=Place.BOTH))
    assert blobs.is_free(replace(kept, store_until=None), 0)
