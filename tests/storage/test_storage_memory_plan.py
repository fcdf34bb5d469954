"""Whatever an agent remembers, and in whatever order: the bound holds, and the right entries make room."""

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given, settings, strategies as st

from sexton_storage.records import memories
from sexton_storage.records.memories import CORE, Mark, MemoryChange, Plan, folded, plan, words_of
from sexton_storage.terms import DAILY_KEEP_MS
from tests.thorough import examples

LIMIT = 5
NOW = 10 * DAILY_KEEP_MS
KEYS = st.sampled_from("abcdefgh")
CATEGORIES = st.sampled_from(["core", "daily", "notes"])
TIMES = st.sampled_from([NOW - 2 * DAILY_KEEP_MS, NOW - DAILY_KEEP_MS, NOW - 3, NOW - 2, NOW, NOW + 5])
MARKS = st.dictionaries(KEYS, st.builds(Mark, CATEGORIES, TIMES), max_size=LIMIT)
CHANGES = st.lists(st.builds(MemoryChange, KEYS, st.sampled_from([None, "x", "y"]), CATEGORIES), max_size=12)


@pytest.fixture(autouse=True, scope="module")
def _few() -> object:
    """So few that a short list fills them."""
    patch = pytest.MonkeyPatch()
    patch.setattr(memories, "MEMORY_LIMIT", LIMIT)
    yield
    patch.undo()


def one_by_one(kept: Mapping[str, Mark], changes: Sequence[MemoryChange]) -> dict[str, Mark]:
    """As slowly and as plainly as it can be said."""
    here = {
        key: mark
        for key, mark in kept.items()
        if mark.category != "daily" or mark.updated_at + DAILY_KEEP_MS > NOW
    }
    for change in changes:
        if change.content is None:
            here.pop(change.key, None)
            continue
        if change.key not in here and len(here) >= LIMIT:
            others = sorted((mark.updated_at, key) for key, mark in here.items() if mark.category != CORE)
            if not others:
                continue
            del here[others[0][1]]
        here[change.key] = Mark(change.category, NOW)
    return here


def after(kept: Mapping[str, Mark], decided: Plan) -> dict[str, Mark]:
    left = {key: mark for key, mark in kept.items() if key not in decided.drop}
    return left | {key: Mark(change.category, NOW) for key, change in decided.put.items()}


@settings(max_examples=examples(300), deadline=None)
@given(MARKS, CHANGES)
def test_the_plan_is_what_one_change_after_another_comes_to(
    kept: dict[str, Mark], changes: list[MemoryChange]
) -> None:
    decided = plan(kept, changes, NOW)

    assert after(kept, decided) == one_by_one(kept, changes)
    assert len(after(kept, decided)) <= LIMIT
    assert not decided.drop & decided.put.keys()
    assert decided.drop <= kept.keys()


@settings(max_examples=examples(200), deadline=None)
@given(MARKS, CHANGES)
def test_what_is_refused_is_not_there_and_the_last_word_on_a_key_counts(
    kept: dict[str, Mark], changes: list[MemoryChange]
) -> None:
    decided = plan(kept, changes, NOW)
    here = after(kept, decided)
    for key in decided.refused:
        assert key not in decided.put
    last = {change.key: change for change in changes}
    for key, change in decided.put.items():
        assert change == last[key]
        assert here[key].updated_at == NOW


@settings(max_examples=examples(200), deadline=None)
@given(st.text(max_size=40), st.text(max_size=10), st.text(max_size=10))
def test_a_word_is_found_in_any_text_that_holds_it(word: str, before: str, behind: str) -> None:
    for found in words_of(word):
        assert found in folded(f"{before} {found} {behind}")
    assert folded(folded(word)) == folded(word)
