"""Erasures, logins and what is kept of runs: texts that must go, and the bounds of each rule."""

import json
from typing import Any
from uuid import UUID

import pytest
from msgspec.structs import replace

from sexton_storage.decisions import device_logins, erasure
from sexton_storage.decisions.erasure import (
    changed,
    emptied,
    fault_of,
    is_at_path,
    needle_of,
    without_json,
    without_text,
)
from sexton_storage.decisions.erasure_steps import (
    SURFACES,
    Found,
    is_due,
    is_new_pass,
    moved,
    settles,
    stopped,
)
from sexton_storage.records.erasures import OVER, Erasure, ErasureStatus

ANN = needle_of("e", "ann@example.org")
IT = UUID(int=1)
KEPT = [
    *("actor", "decision", "error_code", "event_type", "failure_label"),
    *("kind", "name", "status", "tool_name"),
]


@pytest.mark.parametrize("key", KEPT)
def test_a_frame_keeps_the_words_of_the_product(key: str) -> None:
    assert emptied(json.dumps({key: "x", "text": "y"})) == json.dumps({key: "x", "text": "[erased]"})


def test_a_frame_keeps_ids_and_loses_what_stands_alone() -> None:
    own = '{"id": "00000000-0000-0000-0000-000000000001", "n": 1}'

    assert emptied(own) == own
    assert emptied('"text"') == '"[erased]"'
    assert erasure.ERASED_DOCUMENT == '{"erased":true}'
    assert emptied('["name", {"name": "x"}]') == '["[erased]", {"name": "x"}]'


@pytest.mark.parametrize(
    ("value", "is_refused"),
    [
        ("xy", True),
        ("xyz", False),
        ("x" * 512, False),
        ("x" * 513, True),
        ("a\0b", True),
        ("a\ud7ffb", False),
        ("a\ud800b", True),
        ("a" + chr(0xDFFF) + "b", True),
        ("a\ue000b", False),
    ],
)
def test_only_what_a_text_can_hold_can_be_erased(value: str, is_refused: bool) -> None:
    assert (fault_of("a", value) is not None) is is_refused


@pytest.mark.parametrize(
    ("value", "document", "is_there"),
    [
        ("ann@example.org", '{"e": ["x", "ann@example.org"]}', True),
        ("ann@example.org", '{"e": "ann@example.net"}', False),
        ("ann@example.org", '{"e": null}', False),
        ("ann@example.org", '["e"]', False),
        ("True", '{"e": true}', False),
        ("None", '{"e": null}', False),
        ("1.5", '{"e": 1.5}', True),
        ("123", '{"e": 123}', True),
    ],
)
def test_a_request_is_looked_at_by_its_path(value: str, document: str, is_there: bool) -> None:
    assert is_at_path(needle_of("e", value), document) is is_there


def nested(depth: int) -> str:
    """JSON in a text in JSON, and so on; the innermost holds the value, escaped as some write it."""
    text = '{"to": "ann\\u0040example.org"}'
    for _ in range(depth):
        text = json.dumps(text)
    return text


@pytest.mark.parametrize(("depth", "goes"), [(0, True), (1, True), (2, True), (3, True), (4, False)])
def test_a_value_is_found_in_json_within_json_so_deep(depth: int, goes: bool) -> None:
    rest = without_text(ANN, nested(depth))

    assert ("[erased]" in rest) is goes


def test_the_value_goes_and_all_else_stays_as_it_was_written() -> None:
    assert without_json(ANN, '{"ä": "ä ann@example.org"}') == '{"ä": "ä [erased]"}'
    assert without_json(ANN, '["a\tann@example.org"]') == '["a\\t[erased]"]'
    assert without_json(ANN, '["\\q", "ann@example.org"]') == '["\\q", "[erased]"]'
    assert without_text(needle_of("e", "a a"), "a a a") == "[erased] a"
    assert without_json(ANN, '{"\\q": "ann@example.org"}') == '{"\\q": "[erased]"}'
    assert without_text(needle_of("e", "123"), "a123 \\") == "a123 \\"
    assert without_text(needle_of("e", "123"), r'n: \ 123 {"m": 123}') == r'n: \ [erased] {"m": [erased]}'


def test_a_text_that_is_no_text_for_others_has_a_hash_too() -> None:
    assert needle_of("e", "a\ud800b").chars == 3


def test_a_column_says_whether_anything_went() -> None:
    assert changed(None, str.upper) == (None, False)
    assert changed("a", str.upper) == ("A", True)
    assert changed("A", str.upper) == ("A", False)


# --- how it goes on -----------------------------------------------------------------------------------------

ROW = Erasure(*(IT, IT, IT, "a", b"", 3, False, False, ErasureStatus.RUNNING), "", "", 0, 0)


def test_a_page_is_counted_and_the_next_one_begins_after_it() -> None:
    row = replace(ROW, surface=2, after=("5",), erased={"gates": 1}, kept={"gates": 2}, waits=3)
    after = moved(row, Found(("7",), {"gates": 4}, {"gates": 5}, 6), 9)
    through = moved(row, Found(None, {}, {}), 9)

    assert after == replace(
        row, after=("7",), updated_at=9, erased={"gates": 5}, kept={"gates": 7}, waits=9, found=4
    )
    assert through == replace(row, surface=3, after=(), updated_at=9)


def test_a_pass_begins_with_nothing_kept_and_nothing_waited_for() -> None:
    row = replace(
        ROW, erased={"events": 1}, kept={"events": 2}, waits=3, found=1, status=ErasureStatus.WAITING
    )
    begun = moved(row, Found(("7",), {}, {"events": 5}, 6), 9)
    goes_on = moved(replace(row, after=("7",)), Found(("8",), {}, {}), 9)

    assert begun == replace(
        row, status=ErasureStatus.RUNNING, after=("7",), updated_at=9, kept={"events": 5}, waits=6, found=0
    )

    later = moved(replace(row, surface=3), Found(("1",), {}, {}), 9)

    assert (goes_on.kept, goes_on.waits) == ({"events": 2}, 3)
    assert (later.kept, later.waits) == ({"events": 2}, 3)


@pytest.mark.parametrize(
    ("waits", "found", "dry_run", "status", "confirms"),
    [
        (0, 0, False, ErasureStatus.DONE, False),
        (2, 0, False, ErasureStatus.WAITING, False),
        (2, 3, False, ErasureStatus.WAITING, False),
        (0, 3, False, ErasureStatus.WAITING, True),
        (2, 3, True, ErasureStatus.DONE, False),
    ],
)
def test_a_pass_ends_behind_the_last_surface_and_the_last_pass_found_nothing(
    waits: int, found: int, dry_run: bool, status: ErasureStatus, *, confirms: bool
) -> None:
    end = len(SURFACES) - 1
    row = replace(ROW, surface=end, after=("5",), waits=waits, found=found, dry_run=dry_run, passes=1)
    last = moved(replace(row, surface=end - 1), Found(None, {}, {}), 9)
    ended_at = 9 if status is ErasureStatus.DONE else None

    assert moved(row, Found(None, {}, {}), 9) == replace(
        row,
        status=status,
        surface=0,
        after=(),
        passes=2,
        updated_at=9,
        ended_at=ended_at,
        confirms=confirms,
    )
    assert (last.surface, last.status) == (end, ErasureStatus.RUNNING)


@pytest.mark.parametrize(
    ("waits", "found", "status"),
    [(0, 0, ErasureStatus.DONE), (0, 1, ErasureStatus.WAITING), (1, 0, ErasureStatus.WAITING)],
)
def test_a_pass_that_confirms_ends_before_what_is_only_counted_and_leaves_those_counts(
    waits: int, found: int, status: ErasureStatus
) -> None:
    row = replace(ROW, confirms=True, status=ErasureStatus.WAITING, kept={"audit_log": 2}, waits=7, found=7)
    begun = moved(row, Found(("1",), {}, {"files_not_searched": 1}), 9)
    frames = replace(begun, surface=SURFACES.index("frames"))
    ended = moved(frames, Found(None, {"frames": found}, {}, waits), 9)

    assert (begun.kept, begun.waits, begun.found) == ({"audit_log": 2}, 0, 0)
    assert (ended.status, ended.surface, ended.kept) == (status, 0, {"audit_log": 2})
    assert (ended.waits, ended.found) == (waits, found)
    assert ended.confirms, "what was settled before stays so, though something is waited for now"


def test_saved_answers_that_are_taken_from_everybody_need_no_further_pass() -> None:
    row = replace(ROW, surface=SURFACES.index("saved_answers"))

    assert moved(row, Found(None, {"saved_answers": 4}, {}), 9).found == 0


def test_a_pass_settles_what_it_looked_through_if_nothing_is_waited_for() -> None:
    assert (settles(replace(ROW, found=2)), settles(replace(ROW, waits=1))) == (True, False)
    assert [is_new_pass(replace(ROW, **place)) for place in ({}, {"after": ("1",)}, {"surface": 1})] == [
        True,
        False,
        False,
    ]


@pytest.mark.parametrize("status", list(ErasureStatus))
def test_what_is_over_stays_so_and_what_runs_is_due(status: ErasureStatus) -> None:
    row = replace(ROW, status=status, updated_at=7)
    end = replace(row, status=ErasureStatus.STOPPED, updated_at=9, ended_at=9)

    assert stopped(row, 9) == (row if status in OVER else end)
    assert is_due(row, 7) is (status is ErasureStatus.RUNNING)
    assert is_due(row, 5_006) is (status is ErasureStatus.RUNNING)
    assert is_due(row, 5_007) is (status not in OVER)


def test_the_surfaces_are_gone_through_in_their_order() -> None:
    row, seen = ROW, []
    while row.status is ErasureStatus.RUNNING:
        seen.append(SURFACES[row.surface])
        row = moved(row, Found(None, {}, {}), 9)

    assert seen == [
        *("events", "transcripts", "gates", "follow_ups", "memories", "files", "event_files"),
        *("webhook_deliveries", "failure_groups", "bulk_jobs", "proposals", "saved_answers", "frames"),
        *("agent_versions", "workspace_snapshots", "audit_log"),
    ]


# --- logins -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pending", "origin", "gives_way"),
    [
        ({"fa": 3, "oa": 1}, "oa", "fa"),
        ({"fa": 2, "oa": 1}, "oa", None),
        ({"oa": 3, "ob": 1}, "ob", "oa"),
        ({"oa": 2, "ob": 1}, "ob", None),
        ({"oa": 2}, "ob", "oa"),
        ({"oa": 1}, "ob", None),
        ({"fa": 1, "fb": 1, "oa": 0}, "oa", "fb"),
        ({"fa": 9, "fb": 1, "oa": 9}, "ob", "oa"),
        ({"fa": 3, "fb": 3, "fc": 3, "xa": 5, "oa": 1}, "oa", "fc"),
    ],
)
def test_the_busiest_network_gives_way_to_one_that_has_fewer_afterwards(
    pending: dict[str, int], origin: str, gives_way: str | None
) -> None:
    def spelled(network: str) -> bytes:
        return network[0].encode().ljust(8) + network[1].encode().ljust(8)

    counted: Any = {spelled(network): count for network, count in pending.items()}
    found = device_logins.giving_way(counted, spelled(origin) + b"address ")

    assert found == (None if gives_way is None else spelled(gives_way))
