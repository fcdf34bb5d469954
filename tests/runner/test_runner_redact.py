"""No secret leaves a run, however it is cut to pieces."""

from itertools import pairwise

import pytest
from hypothesis import given, strategies as st

from sexton_runner.redact import MASK, Redactor, StreamRedactor

LETTERS = st.text(alphabet="abc", max_size=60)
SECRETS = st.lists(st.text(alphabet="abc", min_size=6, max_size=9), min_size=1, max_size=4)


def as_map(secrets: list[str]) -> dict[str, object]:
    return {f"s{number}": {"token": secret} for number, secret in enumerate(secrets)}


@given(text=LETTERS, secrets=SECRETS, cuts=st.lists(st.integers(0, 60), max_size=6))
def test_a_text_in_pieces_is_redacted_as_the_whole_is(text: str, secrets: list[str], cuts: list[int]) -> None:
    redactor = Redactor(as_map(secrets))
    stream = StreamRedactor(redactor)
    edges = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    given_out = "".join(stream.feed(text[a:b]) for a, b in pairwise(edges)) + stream.flush()
    assert given_out == redactor.text(text)


@given(text=LETTERS, secrets=SECRETS)
def test_nothing_that_is_left_holds_a_secret(text: str, secrets: list[str]) -> None:
    left = Redactor(as_map(secrets)).text(text).split(MASK)
    assert not any(secret in piece for secret in secrets for piece in left)


@given(secrets=SECRETS, text=LETTERS)
def test_no_more_is_held_back_than_the_longest_secret(secrets: list[str], text: str) -> None:
    redactor = Redactor(as_map(secrets))
    assert len(text) - redactor.certain(text) < max(map(len, secrets))


def test_text_without_secrets_passes_at_once() -> None:
    stream = StreamRedactor(Redactor({}))
    assert stream.feed("as it comes") == "as it comes"


def test_the_longer_of_two_secrets_wins() -> None:
    redactor = Redactor({"short": "abcdef", "long": "abcdefgh"})
    assert redactor.text("abcdefgh abcdef") == f"{MASK} {MASK}"


def test_secrets_are_found_at_any_depth_and_short_values_are_left_alone() -> None:
    redactor = Redactor(
        {"a": {"b": ["nested-secret", {"c": "deeper-secret"}]}, "d": "yes", "n": 5}, "sk-model-key"
    )
    assert redactor.secrets == ("deeper-secret", "nested-secret", "sk-model-key")
    assert redactor.json({"deeper-secret": ["x nested-secret", 1, None, {"k": "yes"}]}) == {
        MASK: [f"x {MASK}", 1, None, {"k": "yes"}]
    }


def test_a_redactor_does_not_show_its_secrets() -> None:
    assert "hunter" not in repr(Redactor({"a": "hunter22"}))


@pytest.mark.parametrize("secrets", [{}, {"a": "secret-value"}])
def test_nul_is_replaced_because_no_database_text_holds_it(secrets: dict[str, str]) -> None:
    assert Redactor(secrets).text("a\0b") == "a\N{REPLACEMENT CHARACTER}b"
