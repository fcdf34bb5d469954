"""Versions and proposals do what states.md says; diffs, trust and feedback what scoring.md says."""

import re
from collections.abc import Callable
from uuid import UUID

import pytest
from hypothesis import given, settings, strategies as st
from msgspec.structs import replace

from sexton_actors.lease.handover.feedback import feedback_of, token_count
from sexton_actors.manifest.problems import ManifestRejected
from sexton_actors.proposal import transitions
from sexton_actors.proposal.diff import MAX_COMPARED_LINES, diff_files
from sexton_actors.proposal.trust import trust_report
from sexton_actors.refusal import Refusal
from sexton_actors.zombie import versions
from sexton_storage.records.configs import ConfigStatus, ConfigVersion
from sexton_storage.records.events import EventStatus
from sexton_storage.records.improvement import Lessons, Proposal, ProposalStatus, Rate, Score, Trust
from sexton_storage.scoring import Facts, score
from sexton_storage.terms import DEFAULT_CONTEXT_TOKENS
from tests.thorough import examples
from tests.worlds.samples import skill_md, trigger_md
from tests.worlds.states_page import cells

IT, OTHER = UUID(int=1), UUID(int=2)
NOW = 1_732_060_800_000
GOOD = (skill_md(), trigger_md())
BAD = ("no front matter", GOOD[1])


def told(outcome: object) -> str:
    match outcome:
        case Refusal(code=code):
            return f"`{code}`"
        case Proposal(status=status) | ConfigVersion(status=status):
            return str(status)
        case None:
            return "activated"
        case _:
            raise AssertionError(outcome)


# --- versions -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("row", "column", "cell"), cells("Configuration version"))
def test_a_version_does_what_its_table_says(row: str, column: str, cell: str) -> None:
    files = BAD if row.endswith("no agent") else GOOD
    config = replace(versions.draft(IT, IT, 2, files, NOW), status=ConfigStatus(column))
    outcome = versions.may_activate(config) if row == "activate" else versions.judged(config)
    assert told(outcome) == cell

    if isinstance(outcome, ConfigVersion) and column == "DRAFT":
        assert bool(outcome.compiled) == (cell == "COMPILED")
        assert bool(outcome.findings) == (cell == "INVALID")


def test_what_is_wrong_names_file_line_and_key() -> None:
    rejected = versions.compile_version(versions.draft(IT, IT, 1, BAD, NOW))
    assert isinstance(rejected, ManifestRejected)

    (error,) = versions.findings(rejected)["errors"]
    assert error.keys() == {"file", "line", "key", "message", "code"}


# --- proposals ----------------------------------------------------------------------------------------------


def proposal(status: str = "PENDING") -> Proposal:
    return Proposal(
        id=IT,
        zombie_id=IT,
        workspace_id=IT,
        tenant_id=IT,
        status=ProposalStatus(status),
        title="Look twice",
        rationale="r",
        diff="",
        base_config_version_id=IT,
        created_by="run",
        created_at=0,
        decided_at=None if status == "PENDING" else 1,
    )


DECISIONS: dict[str, Callable[[Proposal], object]] = {
    "approve": lambda p: transitions.apply(p, OTHER, "user:1", NOW),
    "approve, another version is active": lambda p: transitions.overtaken(p, "user:1", NOW),
    "approve, its files make no agent": lambda p: transitions.not_compiled(p, "why", "user:1", NOW),
    "reject": lambda p: transitions.reject(p, "no", "user:1", NOW),
}


@pytest.mark.parametrize(("row", "column", "cell"), cells("Proposal"))
def test_a_proposal_does_what_its_table_says(row: str, column: str, cell: str) -> None:
    outcome = DECISIONS[row](proposal(column))
    assert told(outcome) == cell

    if isinstance(outcome, Proposal):
        assert (outcome.decided_at, outcome.decided_by) == (NOW, "user:1")
        assert (outcome.rejection_reason is not None) == (cell == "REJECTED")
        assert (outcome.config_version_id is not None) == (cell == "APPLIED")
    else:
        assert isinstance(outcome, Refusal)
        assert outcome.facts["outcome"] == column


def test_every_decision_stands_in_the_table() -> None:
    assert {row for row, _, _ in cells("Proposal")} == set(DECISIONS)


# --- diffs --------------------------------------------------------------------------------------------------

LINES = st.lists(st.sampled_from(["a", "b", "c", "", "@@ -1 +1 @@", "--- x", "\\ No"]), max_size=30)
ENDS = st.sampled_from(["", "\n"])
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


def applied(text: str, diff: str) -> str:
    """What a patch program makes of it: every line that stays or goes must be there as the diff says."""
    old = text.split("\n")
    new: list[str] = []
    at = 0
    for hunk in re.split(r"(?m)^(?=@@ -\d)", diff)[1:]:
        head, *body = hunk.removesuffix("\n").split("\n")
        found = _HUNK.fullmatch(head)
        assert found, head
        start, count = int(found[1]), int(found[2] or 1)
        first = start - 1 if count else start
        new += old[at:first]
        at = first
        for number, line in enumerate(body):
            if line.startswith("\\"):
                continue
            ends_open = number + 1 < len(body) and body[number + 1].startswith("\\")
            if line[0] in " -":
                assert old[at] == line[1:], (at, line)
                at += 1
            if line[0] in " +":
                new.append(line[1:])
            if ends_open and line[0] in "+ ":
                return "\n".join(new)
            if ends_open:
                at += 1
    return "\n".join([*new, *old[at:]]) if at < len(old) else "\n".join([*new, ""])


@settings(deadline=None, max_examples=examples(300))
@given(LINES, LINES, ENDS, ENDS)
def test_a_diff_applied_to_the_old_file_is_the_new_one(
    old: list[str], new: list[str], old_end: str, new_end: str
) -> None:
    before = "\n".join(old) + old_end
    after = "\n".join(new) + new_end
    diff = diff_files((before, "t"), (after, "t"))
    assert (diff == "") == (before == after)

    if diff:
        assert diff.startswith("--- a/SKILL.md\n+++ b/SKILL.md\n")
        assert counted(diff)


def counted(diff: str) -> bool:
    """Every hunk has as many lines as its head says."""
    for hunk in re.split(r"(?m)^(?=@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@$)", diff)[1:]:
        head, *body = hunk.removesuffix("\n").split("\n")
        found = _HUNK.fullmatch(head)
        assert found
        for group, marks in ((2, " -"), (4, " +")):
            lines = [line for line in body if line[:1] in marks and line]
            assert len(lines) == int(found[group] or 1), diff
    return True


def test_a_diff_puts_each_line_where_it_belongs() -> None:
    before = "".join(f"{number}\n" for number in range(2000))
    after = before.replace("\n1500\n", "\nx\n1500\ny\n").replace("\n700\n", "\n")

    assert applied(before, diff_files((before, "t"), (after, "t"))) == after


def test_a_change_of_too_many_lines_is_shown_as_a_whole() -> None:
    before = "head\n" + "".join(f"{number % 90}\n" for number in range(30_000)) + "tail\n"
    after = "head\n" + "".join(f"{number % 89}\n" for number in range(30_000)) + "tail\n"
    diff = diff_files((before, "t"), (after, "t"))

    assert diff.count("\n@@ ") == 1
    assert applied(before, diff) == after
    assert MAX_COMPARED_LINES < 30_000


def test_both_files_stand_in_one_diff() -> None:
    diff = diff_files(("a\n", "b\n"), ("a\n", "c"))
    assert diff == "--- a/TRIGGER.md\n+++ b/TRIGGER.md\n@@ -1 +1 @@\n-b\n+c\n\\ No newline at end of file\n"


# --- trust, scores, feedback --------------------------------------------------------------------------------

REJECTED, APPLIED = ProposalStatus.REJECTED, ProposalStatus.APPLIED


@pytest.mark.parametrize(
    ("trust", "stalled"),
    [
        (Trust(0, (REJECTED, REJECTED), Rate(0, 0), Rate(0, 0)), False),
        (Trust(0, (REJECTED, REJECTED, REJECTED), Rate(0, 0), Rate(0, 0)), True),
        (Trust(0, (REJECTED, APPLIED, REJECTED), Rate(0, 0), Rate(0, 0)), False),
        (Trust(0, (APPLIED,), Rate(20, 10), Rate(19, 0)), False),
        (Trust(0, (APPLIED,), Rate(20, 10), Rate(20, 10)), True),
        (Trust(0, (APPLIED,), Rate(20, 10), Rate(20, 11)), False),
        (Trust(0, (APPLIED,), Rate(3, 1), Rate(20, 6)), True),
        (Trust(0, (APPLIED,), Rate(0, 0), Rate(20, 0)), False),
    ],
)
def test_improvement_has_stalled_when_nothing_is_taken_or_nothing_gets_better(
    trust: Trust, *, stalled: bool
) -> None:
    assert trust_report(trust).improvement_stalled_warning is stalled


FACTS = st.builds(
    Facts,
    outcome=st.sampled_from(EventStatus),
    attempts=st.integers(0, 50),
    denied_gates=st.integers(0, 10**6),
    failed_checks=st.integers(0, 10**6),
    charged_nanos=st.integers(0, 2**63 - 1),
    budget_nanos=st.none() | st.integers(0, 2**63 - 1),
)


@given(FACTS)
def test_a_score_lies_between_nothing_and_one(facts: Facts) -> None:
    assert 0 <= score(facts) <= 1


def test_nothing_that_goes_wrong_makes_a_score_better() -> None:
    best = Facts(EventStatus.PROCESSED, 1, 0, 0, 0, 1000)
    worse = [
        replace(best, outcome=EventStatus.CANCELLED),
        replace(best, attempts=2),
        replace(best, denied_gates=1),
        replace(best, failed_checks=1),
        replace(best, charged_nanos=1),
    ]

    assert score(best) == 1.0
    assert all(score(facts) < 1.0 for facts in worse)
    assert score(replace(best, outcome=EventStatus.AGENT_ERROR)) < score(worse[0])


def scored(number: int) -> Score:
    return Score(UUID(int=number), IT, EventStatus.PROCESSED, 0.85, 2, 1, 0, 500_000_000, 10**9, NOW)


def test_scores_fill_the_tokens_and_no_more() -> None:
    line = feedback_of(Lessons((), (scored(1),), 512))[0]
    assert line["text"] == (
        "2024-11-20 00:00 processed 0.85, spent $0.5000 of $1.00 a day, attempts 2, denied gates 1"
    )

    cost = token_count(line["text"])
    for tokens in (cost - 1, cost, 3 * cost, 512, DEFAULT_CONTEXT_TOKENS):
        shown = feedback_of(Lessons((), tuple(map(scored, range(400))), tokens))
        assert len(shown) == tokens // cost


def test_a_rejection_is_told_whatever_the_scores_take() -> None:
    refused = replace(proposal("REJECTED"), rejection_reason="too slow")
    first, *others = feedback_of(Lessons((refused,), (scored(1),), 1))

    assert (first["kind"], first["rejection_reason"], others) == ("proposal_rejected", "too slow", [])
    assert first["text"] == "Your proposal 'Look twice' was rejected: too slow"
