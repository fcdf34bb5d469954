"""Conditions of gate rules: a small language, read whole or not at all."""

import pytest
from hypothesis import given, settings, strategies as st

from sexton_actors.gate_rules.conditions import (
    MAX_CONDITION_CHARS,
    MAX_CONDITION_DEPTH,
    AllOf,
    AnyOf,
    Compare,
    Condition,
    Contains,
    Matches,
    Unreadable,
    holds,
    parse_condition,
)
from tests.rule_cases import HOLDS, UNREADABLE


@pytest.mark.parametrize(("text", "fields", "expected"), HOLDS)
def test_a_condition_is_answered_from_the_fields(
    text: str,
    fields: dict[str, object],
    expected: bool,
) -> None:
    condition = parse_condition(text)

    assert not isinstance(condition, Unreadable), condition
    assert holds(condition, fields) is expected


@pytest.mark.parametrize(("text", "at"), UNREADABLE)
def test_an_unreadable_condition_is_told_by_its_character(text: str, at: int) -> None:
    condition = parse_condition(text)

    assert isinstance(condition, Unreadable)
    assert condition.at == at


def test_and_binds_tighter_than_or() -> None:
    a, b, c = (Compare(name, equal=True, value="1") for name in "abc")

    assert parse_condition("a == '1' or b == '1' and c == '1'") == AnyOf((a, AllOf((b, c))))
    assert parse_condition("a == '1' and b == '1' or c == '1'") == AnyOf((AllOf((a, b)), c))


def test_length_and_depth_are_bounded() -> None:
    deep = "(" * MAX_CONDITION_DEPTH + "a == 'b'" + ")" * MAX_CONDITION_DEPTH

    assert parse_condition(deep) == Compare("a", equal=True, value="b")
    assert isinstance(parse_condition(f"({deep})"), Unreadable)
    assert isinstance(parse_condition("(" * 1_000), Unreadable)
    assert isinstance(parse_condition("a == '" + "b" * MAX_CONDITION_CHARS + "'"), Unreadable)


def quoted(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def written(condition: Condition) -> str:
    match condition:
        case Compare(field, equal, value):
            return f"{field} {'==' if equal else '!='} {quoted(value)}"
        case Contains(field, value):
            return f"{field} contains {quoted(value)}"
        case Matches(field, pattern):
            return f"{field} matches '{pattern}'"
        case AllOf(terms):
            return " and ".join(f"({written(term)})" for term in terms)
        case AnyOf(terms):
            return " or ".join(f"({written(term)})" for term in terms)


FIELDS = st.sampled_from(["a", "b", "branch", "or_else"])
COMPARISONS = (
    st.builds(Compare, FIELDS, st.booleans(), st.text(max_size=4))
    | st.builds(Contains, FIELDS, st.text(max_size=4))
    | st.builds(Matches, FIELDS, st.sampled_from(["a", "^a|b$", r"\d+", "(?i)x"]))
)
CONDITIONS: st.SearchStrategy[Condition] = st.recursive(
    COMPARISONS,
    lambda inner: st.builds(
        lambda kind, terms: kind(tuple(terms)),
        st.sampled_from([AllOf, AnyOf]),
        st.lists(inner, min_size=2, max_size=3),
    ),
    max_leaves=8,
)


@given(CONDITIONS, st.dictionaries(FIELDS, st.text(max_size=2)))
@settings(deadline=None)
def test_a_condition_that_is_written_out_is_read_back_the_same(
    condition: Condition, fields: dict[str, object]
) -> None:
    again = parse_condition(written(condition))

    assert again == condition
    assert isinstance(holds(condition, fields), bool)


@given(st.text(alphabet="ab'\"\\()=! andor\n\t\0é", max_size=60) | st.text(max_size=200))
@settings(deadline=None)
def test_any_text_is_a_condition_or_told_to_be_none(text: str) -> None:
    condition = parse_condition(text)
    if isinstance(condition, Unreadable):
        assert 1 <= condition.at <= len(text) + 1
    else:
        assert isinstance(holds(condition, {"a": "b"}), bool)
