"""The first rule that matches stands in the way; the same action too often is an anomaly."""

import fnmatch
import re

import pytest
from hypothesis import given, settings, strategies as st

from sexton_actors.gate_rules.anomaly import anomaly
from sexton_actors.gate_rules.model import AnomalyRule, Behaviour, GateRule, Gates
from sexton_actors.gate_rules.rules import glob_matches, match_rules

APPROVE, AUTO_KILL = Behaviour.APPROVE, Behaviour.AUTO_KILL


def test_the_first_rule_that_matches_decides() -> None:
    gates = Gates(
        rules=(
            GateRule("shell", "rm", AUTO_KILL),
            GateRule("shell", "*", APPROVE),
            GateRule("*", "*", AUTO_KILL, "force == 'true'"),
        )
    )

    assert match_rules(gates, "shell", "rm", {}) is AUTO_KILL
    assert match_rules(gates, "shell", "ls", {"force": True}) is APPROVE
    assert match_rules(gates, "http", "get", {"force": True}) is AUTO_KILL
    assert match_rules(gates, "http", "get", {"force": False}) is None


def test_without_rules_nothing_stands_in_the_way() -> None:
    assert match_rules(Gates(), "shell", "rm", {}) is None


def test_an_event_is_matched_by_its_type_and_actor() -> None:
    gates = Gates(rules=(GateRule("workflow_run.*", "webhook:github", APPROVE),))

    assert match_rules(gates, "workflow_run.completed", "webhook:github", {}) is APPROVE
    assert match_rules(gates, "workflow_run.completed", "steer:admin", {}) is None
    assert match_rules(gates, "workflow_run", "webhook:github", {}) is None


def test_a_rule_whose_condition_cannot_be_read_keeps_its_gate() -> None:
    gates = Gates(rules=(GateRule("*", "*", APPROVE, "branch ="),))
    assert match_rules(gates, "shell", "ls", {}) is APPROVE


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("", "", True),
        ("*", "", True),
        ("a*a", "a", False),
        ("a*a", "aa", True),
        ("*b*", "abc", True),
        ("a*b*c", "a-b-b-c", True),
        ("a**c", "abc", True),
        ("a?c", "abc", False),
        ("[ab]", "a", False),
        ("[ab]", "[ab]", True),
        ("push", "Push", False),
        ("*.tar.gz", "x.tar.gz", True),
        ("*ab", "aab", True),
    ],
)
def test_only_the_star_is_special(pattern: str, text: str, expected: bool) -> None:
    assert glob_matches(pattern, text) is expected


@given(st.text(alphabet="ab*", max_size=10), st.text(alphabet="ab\n", max_size=12))
@settings(deadline=None)
def test_globs_match_as_the_standard_library_would(pattern: str, text: str) -> None:
    assert glob_matches(pattern, text) is bool(re.match(fnmatch.translate(pattern), text))


def test_a_hostile_pattern_takes_no_time() -> None:
    # A backtracking matcher would need more steps than there are atoms; this one looks at each piece once.
    assert glob_matches("*a" * 64 + "*b*", "a" * 100_000) is False


def window(count: int, seconds: int) -> AnomalyRule:
    return AnomalyRule("same_action", count, seconds)


def observe(gates: Gates, *times: int) -> list[AnomalyRule | None]:
    record: tuple[int, ...] = ()
    broken = []
    for now in times:
        seen = anomaly(gates, record, now)
        record = seen.record
        broken.append(seen.rule)
    return broken


def test_the_action_that_reaches_the_count_within_the_window_breaks_the_rule() -> None:
    rule = window(3, 10)
    gates = Gates(anomaly_rules=(rule,))

    assert observe(gates, 0, 5_000, 10_000) == [None, None, rule]
    assert observe(gates, 0, 5_000, 10_001) == [None, None, None]
    assert observe(gates, 0, 5_000, 10_001, 15_000) == [None, None, None, rule]


def test_the_first_broken_rule_is_told() -> None:
    slow, fast = window(3, 100), window(2, 1)
    gates = Gates(anomaly_rules=(slow, fast))

    assert observe(gates, 0, 500, 900) == [None, fast, slow]


def test_without_anomaly_rules_nothing_is_recorded() -> None:
    seen = anomaly(Gates(), (1, 2, 3), 4)
    assert (seen.record, seen.rule) == ((), None)


@given(
    st.lists(st.tuples(st.integers(1, 8), st.integers(1, 20)), min_size=1, max_size=3),
    st.lists(st.integers(0, 3_000), max_size=60),
)
@settings(deadline=None)
def test_the_record_stays_bounded_and_forgets_nothing_that_counts(
    rules: list[tuple[int, int]], steps: list[int]
) -> None:
    gates = Gates(anomaly_rules=tuple(window(*rule) for rule in rules))
    times: list[int] = []
    record: tuple[int, ...] = ()
    for step in steps:
        times.append((times[-1] if times else 0) + step)
        seen = anomaly(gates, record, times[-1])
        record = seen.record
        assert len(record) <= max(count for count, _ in rules)
        expected = [
            rule
            for rule in gates.anomaly_rules
            if sum(at >= times[-1] - rule.threshold_window_s * 1_000 for at in times) >= rule.threshold_count
        ]
        assert seen.rule == (expected[0] if expected else None)
