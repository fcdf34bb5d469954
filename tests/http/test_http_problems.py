"""The table of codes, and the document that every refusal is."""

from collections import Counter
from html import escape

import msgspec
import pytest

from sexton_actors.failure_codes import FAILURE_CODES
from sexton_http.answers import Problem
from sexton_http.error_codes.code import Code, Shown, Table
from sexton_http.problems import CODES
from tests.http.printed_codes import CONTRACT, OURS, SPECIFICATION
from tests.worlds.http import HttpWorld


def test_the_table_has_every_code_of_the_specification_with_its_status() -> None:
    assert {(code, CODES[code].status) for code, _, _ in SPECIFICATION} == {
        (c, s) for c, s, _ in SPECIFICATION
    }


def test_a_title_is_as_the_specification_prints_it() -> None:
    for code, _, title in SPECIFICATION:
        assert CODES[code].title == title, code


def test_the_table_has_every_code_of_the_contract_with_its_status() -> None:
    assert {(code, CODES[code].status) for code, _ in CONTRACT} == set(CONTRACT)


def test_the_table_has_no_code_that_nobody_printed() -> None:
    printed = {code for code, _, _ in SPECIFICATION} | {code for code, _ in (*CONTRACT, *OURS)}
    assert set(CODES) == printed


def test_a_code_cannot_stand_in_the_table_twice() -> None:
    row = Code("UZ-X-001", 400, "X", (Shown.ANSWER,), cause="X.", way_out="Do Y.", detail="x")
    with pytest.raises(ValueError, match="UZ-X-001"):
        Table([row, row])


def test_what_a_failed_event_bears_is_shown_on_events() -> None:
    for code in FAILURE_CODES.values():
        assert code is None or Shown.EVENT in CODES[code].shown, code


def test_a_document_has_the_members_of_both_forms_and_facts_replace_none_of_them() -> None:
    problem = Problem("UZ-ZMB-010", "it is killed", facts={"current_state": "killed", "status": "mine"})
    link = "http://x/docs/errors#UZ-ZMB-010"
    assert problem.document("http://x", "r1") == {
        "current_state": "killed",
        "docs_uri": link,
        "type": link,
        "title": "Agent already stopped or killed",
        "detail": "it is killed",
        "error_code": "UZ-ZMB-010",
        "status": 409,
        "request_id": "r1",
        "error": {
            "code": "UZ-ZMB-010",
            "message": "it is killed",
            "details": {"current_state": "killed", "status": "mine"},
        },
    }

    answer = Problem("UZ-API-003", "busy", wait_s=7).answer("http://x", "r1")
    assert (answer.status, int(dict(answer.headers)[b"retry-after"]) >= 7) == (503, True)
    assert msgspec.json.decode(answer.body)["error_code"] == "UZ-API-003"


def test_those_who_are_turned_away_together_are_not_asked_back_together() -> None:
    busy = Problem("UZ-API-003", "busy", wait_s=7)
    answers = [busy.answer("http://x", "r1") for _ in range(200)]
    waits = Counter(dict(answer.headers)[b"retry-after"] for answer in answers)

    assert set(waits) == {b"7", b"8", b"9"}
    assert max(waits.values()) < 150


async def test_the_page_of_codes_has_an_anchor_for_each_and_says_what_to_do(world: HttpWorld) -> None:
    page = await world.get("/docs/errors", None)
    assert page.headers["content-type"].startswith("text/html")

    for code, row in CODES.items():
        assert f'id="{code}"' in page.text
        first = row.way_out.split("`")[0]
        assert escape(first) in page.text, code
