"""A run reads the rules of its agent as the control plane does."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from sexton_actors.gate_rules import conditions, rules as authority
from sexton_actors.gate_rules.model import Behaviour, GateRule, Gates
from sexton_runner.rules import Rule, behaviour, glob_matches, holds
from sexton_runner.tools.call_gate import action_of
from tests.rule_cases import HOLDS, UNREADABLE

WORDS = [
    "a",
    "b",
    "x",
    "and",
    "or",
    "not",
    "==",
    "!=",
    "(",
    ")",
    "'a'",
    '"b"',
    "'x y'",
    "'it\\'s'",
    "contains",
    "matches",
    "'^[ab]$'",
    "'('",
    "=",
    "'",
    " ",
]
CONDITIONS = st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join)
VALUES: st.SearchStrategy[object] = st.sampled_from(
    ["a", "b", "x y", "it's", True, False, None, 7, 1.5, [], {}, ["a"]]
)
FIELDS = st.dictionaries(st.sampled_from(["a", "b", "x"]), VALUES)
GLOBS = st.text(alphabet="ab*", max_size=8)
TEXTS = st.text(alphabet="ab", max_size=10)


def authoritative(text: str, fields: dict[str, Any]) -> bool:
    condition = conditions.parse_condition(text)
    return isinstance(condition, conditions.Unreadable) or conditions.holds(condition, fields)


@given(text=CONDITIONS, fields=FIELDS)
def test_both_answer_a_condition_alike(text: str, fields: dict[str, Any]) -> None:
    assert holds(text, fields) is authoritative(text, fields)


@given(text=st.text(max_size=40), fields=FIELDS)
def test_both_answer_nonsense_alike(text: str, fields: dict[str, Any]) -> None:
    assert holds(text, fields) is authoritative(text, fields)


@pytest.mark.parametrize(
    "text",
    [
        "", "a", "a ==", "a == 'a' b", "a == 'a' or", "(a == 'a'", "a == 'a')", "x" * 1100, "not a == 'a'",
        "(" * 17 + "a == 'a'" + ")" * 17, "(" * 16 + "a == 'b'" + ")" * 16, "a == 'a' \t\n", "a-b != 'c'",
    ],
)  # fmt: skip
def test_both_answer_the_edges_alike(text: str) -> None:
    fields = {"a": "a", "a-b": "c"}
    assert holds(text, fields) is authoritative(text, fields)


@given(pattern=GLOBS, text=TEXTS)
def test_both_match_globs_alike(pattern: str, text: str) -> None:
    assert glob_matches(pattern, text) is authority.glob_matches(pattern, text)


RULES = st.tuples(GLOBS, GLOBS, st.none() | CONDITIONS, st.sampled_from(Behaviour))


@given(rules=st.lists(RULES, max_size=3), call=st.tuples(TEXTS, TEXTS, FIELDS))
def test_a_run_and_the_control_plane_find_the_same_rule_first(
    rules: list[tuple[str, str, str | None, Behaviour]], call: tuple[str, str, dict[str, Any]]
) -> None:
    gates = Gates(rules=tuple(GateRule(tool, action, kind, text) for tool, action, text, kind in rules))
    own = [Rule(tool, action, text, str(kind)) for tool, action, text, kind in rules]

    assert behaviour(own, *call) == authority.match_rules(gates, *call)


@pytest.mark.parametrize(("text", "fields", "expected"), HOLDS)
def test_a_run_answers_a_condition_as_the_table_says(
    text: str, fields: dict[str, object], expected: bool
) -> None:
    assert holds(text, fields) is expected


@pytest.mark.parametrize("text", [text for text, _ in UNREADABLE])
def test_what_a_run_cannot_read_stands_in_the_way(text: str) -> None:
    assert holds(text, {"a": "nothing of the kind"})


@pytest.mark.parametrize(
    ("tool", "arguments", "action"),
    [
        ("http_request", {"url": "https://API.Example.org:8443/x?y"}, "GET api.example.org"),
        ("http_request", {"url": "http://[::1", "method": "PUT"}, "PUT "),
        ("http_request", {"url": "http://user@a.test/"}, "GET a.test"),
        ("request_integration", {"service": "chat"}, "chat"),
        ("request_approval", {"action": "deploy"}, "deploy"),
        ("files__read", {"path": "x"}, "run"),
    ],
)
def test_a_call_s_action_says_what_it_does(tool: str, arguments: dict[str, Any], action: str) -> None:
    assert action_of(tool, arguments) == action
