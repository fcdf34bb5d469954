"""The rules in ``decisions`` and PostgreSQL's statements decide alike, row by row, in generated worlds."""

import sys
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, event, given, settings, strategies as st

from tests.storage.row_twins import Deviation, Twins, opened_twins
from tests.thorough import examples

EXAMPLES = 100
MORE = 400
RICH = 320
"""Soon after it comes what is rarest: an event of the version that was asked for, and of another trial."""
REACHED = {
    "append": {"Appended", "Duplicate", "Lost gone", "Lost stale", "OverBudget day", "OverBudget month"}
    | {"OverBudget plan"},
    "append alone": {"Appended", "Duplicate", "Lost gone", "OverBudget day", "OverBudget month"}
    | {"OverBudget plan"},
    "cancel": {"Cancelled ended", "Cancelled cancelling", "Cancelled closed", "Lost gone"},
    "claim": {"Claimed", "Exhausted", "NothingToClaim gone", "NothingToClaim not_active"}
    | {"NothingToClaim leased", "NothingToClaim workspace_paused", "NothingToClaim empty"}
    | {"NothingToClaim over_budget", "NothingToClaim runner_full", "NothingToClaim out_of_scope"}
    | {"NothingToClaim changed", "NothingToClaim other_version"},
    "end": {"Ended", "Lost"},
    "kill": {"killed"},
    "open gate": {"GateOpened", "Lost fenced"},
    "park": {"Ended waiting_approval", "Ended received", "Lost"},
    "renew": {"Renewed", "Lost"},
    "resolve gate": {"GateResolved", "Lost stale"},
}
"""What each kind of request was answered at least once, or else the worlds are too poor."""


@pytest.fixture
def twins(postgres_dsn: str) -> Iterator[Twins]:
    with opened_twins(postgres_dsn) as opened:
        yield opened


@pytest.mark.parametrize("kind", REACHED)
def test_a_rule_and_its_statement_decide_alike(twins: Twins, kind: str) -> None:
    @settings(max_examples=examples(EXAMPLES), deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.integers(0, 2**32), st.integers(1, 12))
    def check(seed: int, agents: int) -> None:
        before = twins.answers.copy()
        twins.compare(seed, kind, agents)
        for answer in twins.answers - before:
            event(f"{kind}: {answer}")

    check()
    # What comes rarely may not have come by chance: worlds that are always the same go on until it has.
    for seed in range(MORE):
        if twins.answers.keys() >= REACHED[kind]:
            break
        twins.compare(seed, kind, 5)

    sys.stdout.write(f"{kind}: {twins.compared.total()} states compared: {dict(twins.answers)}\n")

    assert twins.answers.keys() >= REACHED[kind]


@pytest.mark.parametrize(
    ("kind", "old", "new"),
    [
        ("claim", "attempts = e.attempts + 1", "attempts = e.attempts + 2"),
        ("claim", "least(f.began + f.term_ms,", "greatest(f.began + f.term_ms,"),
        ("claim", "SELECT p.ended_at FROM leases p", "SELECT v.now FROM leases p"),
        ("claim", "e.trial_id IS DISTINCT FROM v.asked_trial_id", "false"),
        ("append", "k.seen_at > v.event_created_at", "k.seen_at >= v.event_created_at"),
        ("append alone", "k.seen_at > v.event_created_at", "k.seen_at >= v.event_created_at"),
        ("append alone", "frame_seq = h.frame_seq + m.frames", "frame_seq = h.frame_seq + 1"),
        ("append alone", "ORDER BY ord), frame_event_id", "ORDER BY ord DESC), frame_event_id"),
        ("cancel", "version = l.version + 1", "version = l.version"),
        ("kill", "SET status = 'auto_killed'", "SET status = 'denied'"),
        ("park", "g.event_id = v.event_id", "true"),
        ("renew", "charged + coalesce(in_day, 0)", "coalesce(in_day, 0)"),
    ],
)
def test_a_statement_that_deviates_is_found(twins: Twins, kind: str, old: str, new: str) -> None:
    words = twins.reword(old, new)

    with pytest.raises(Deviation):
        twins.compare_all(kind, [*range(RICH, MORE), *range(RICH)])

    assert words.put, "the statement does not say this any more: world another deviation"
