"""A report fits, or says what was left out of it; one that is refused does not have its run repeated."""

from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings, strategies as st

from sexton_runner.errors import Refused
from sexton_runner.redact import Redactor
from sexton_runner.reports import MAX_REPORT_BYTES, fitted, told_again
from sexton_runner.tools.proposal import MAX_MARKDOWN_BYTES, MAX_TITLE_CHARS, ProposeImprovement
from tests.fakes.control_plane import Fault, open_plane
from tests.thorough import examples
from tests.worlds.runner import running, settings_for

HELLO = "Greet.\n```sh\necho hello\necho '{\"ok\": true}'\n```\n"
BODY: dict[str, Any] = {
    "lease_id": "l",
    "event_id": "e",
    "fencing_token": 1,
    "outcome": "processed",
    "response_text": "done",
    "input_tokens": 1,
    "cached_input_tokens": 2,
    "output_tokens": 3,
    "telemetry": {"time_to_first_token_ms": 1, "wall_ms": 2},
}
SIZES = st.integers(0, 3 << 20)


@settings(max_examples=examples(25), deadline=None)
@given(text=SIZES, evidence=SIZES, proposals=st.lists(st.integers(0, 1 << 19), max_size=8))
def test_every_report_fits_and_says_what_is_missing(text: int, evidence: int, proposals: list[int]) -> None:
    body = {
        **BODY,
        "response_text": "x" * text,
        "evidence": {"n": "y" * evidence},
        "proposals": [{"source_markdown": "z" * size} for size in proposals],
    }
    cut = fitted(body)
    assert len(orjson.dumps(cut)) <= 2 << 20

    if len(orjson.dumps(body)) <= MAX_REPORT_BYTES:
        assert cut == body
    else:
        assert "the report was too large" in cut["response_text"]
        assert (
            len(cut["proposals"]) < len(proposals)
            or "evidence" not in cut
            or text > len(cut["response_text"])
        )


def test_proposals_go_first_and_only_as_many_as_need_be() -> None:
    cut = fitted({**BODY, "proposals": [{"source_markdown": "z" * 700_000}] * 4, "evidence": {"n": 1}})

    assert len(cut["proposals"]) == 2
    assert cut["evidence"] == {"n": 1}
    assert "2 of 4 proposals" in cut["response_text"]


@pytest.mark.parametrize("code", ["UZ-RUN-005", "UZ-RUN-006", "UZ-RUN-011"])
def test_of_a_lost_lease_nothing_more_is_said(code: str) -> None:
    assert told_again(BODY, Refused(409, code, "")) is None


@pytest.mark.parametrize(
    ("outcome", "reason", "told"),
    [
        ("processed", None, ("agent_error", "agent_run")),
        ("agent_error", "oom_kill", ("agent_error", "oom_kill")),
        ("cancelled", "cancelled", ("cancelled", "cancelled")),
    ],
)
def test_what_follows_a_refused_report_is_plain_and_keeps_counters_and_label(
    outcome: str, reason: str | None, told: tuple[str, str]
) -> None:
    body = {
        **BODY,
        "outcome": outcome,
        "failure_reason": reason,
        "evidence": {"n": 1},
        "checkpoint": {"v": 1},
    }
    again = told_again(body, Refused(413, "UZ-REQ-002", "the body is over 2097152 bytes"))

    assert again is not None
    assert (again["outcome"], again["failure_reason"]) == told
    assert not {"evidence", "checkpoint", "proposals"} & set(again)
    assert (again["input_tokens"], again["cached_input_tokens"], again["output_tokens"]) == (1, 2, 3)
    assert "UZ-REQ-002: the body is over 2097152 bytes" in again["response_text"]
    assert again["response_text"].endswith("done")


async def test_a_refused_report_ends_its_event_and_is_not_run_again(tmp_path: Path) -> None:
    async with open_plane() as plane, running(settings_for(plane, tmp_path)):
        plane.faults["report"] = [Fault(413, "UZ-REQ-002")]
        lease = plane.give(HELLO)
        await plane.until(plane.reports)
    (report,) = plane.reports()

    assert str(report.lease_id) == lease["lease_id"]
    assert (report.outcome, report.failure_reason) == ("agent_error", "agent_run")
    assert "refused the report" in report.response_text
    assert "hello" in report.response_text


async def test_a_report_that_is_refused_twice_is_given_up(tmp_path: Path) -> None:
    async with open_plane() as plane, running(settings_for(plane, tmp_path)):
        plane.faults["report"] = [Fault(400, "UZ-REQ-001"), Fault(400, "UZ-REQ-001")]
        plane.give(HELLO)
        await plane.until(lambda: not plane.faults["report"])
        last = plane.give(HELLO)
        await plane.until(plane.reports)
    assert [str(report.lease_id) for report in plane.reports()] == [last["lease_id"]]


async def test_a_proposal_is_not_longer_for_what_was_masked_in_it() -> None:
    tool = ProposeImprovement([], Redactor({"a": "secret"}))
    said = {"title": "secret " * 28, "rationale": "because", "source_markdown": "x"}

    assert (await tool.call(said)).ok
    assert len(tool.proposals[0]["title"]) == MAX_TITLE_CHARS
    assert not (await tool.call({**said, "source_markdown": "ü" * (MAX_MARKDOWN_BYTES // 2 + 1)})).ok
    assert not (await tool.call({**said, "source_markdown": "secret" * (MAX_MARKDOWN_BYTES // 6)})).ok
