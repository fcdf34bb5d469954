"""A run reads the rules of its agent as the control plane does."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from sexton_actors.gates import conditions, rules as authority
from sexton_actors.gates.model import Behaviour, GateRule, Gates
from sexton_runner.rules import Rule, gated, glob_matches, holds
from sexton_runner.tools.gating import action_of

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


@given(rule=st.tuples(GLOBS, GLOBS, st.none() | CONDITIONS), call=st.tuples(TEXTS, TEXTS, FIELDS))
def test_a_call_is_gated_exactly_where_the_control_plane_s_rule_matches(
    rule: tuple[str, str, str | None], call: tuple[str, str, dict[str, Any]]
) -> None:
    tool, action, condition = rule
    gates = Gates(rules=(GateRule(tool, action, Behaviour.APPROVE, condition),))
    expected = authority.match_rules(gates, *call) is not None
    assert gated([Rule(tool, action, condition)], *call) is expected


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
