"""No secret leaves a run, however it is cut to pieces."""

import sys
from itertools import pairwise
from types import FrameType
from typing import Any

import pytest
from hypothesis import given, strategies as st

from sexton_runner import redact
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


def lines_run(redactor: Redactor, pieces: list[str]) -> int:
    """Count the lines of Python that redacting takes: unlike time, that is the same on every machine."""
    count = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal count
        count += event == "line"
        return trace if frame.f_code.co_filename == redact.__file__ else None

    stream = StreamRedactor(redactor)
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        for piece in pieces:
            stream.feed(piece)
    finally:
        sys.settrace(before)
    return count


KEY = "\n".join(
    ["-----BEGIN RSA PRIVATE KEY-----", *(f"{n:04}" * 16 for n in range(26)), "-----END RSA PRIVATE KEY-----"]
)


def test_a_long_secret_does_not_make_every_piece_of_output_slow() -> None:
    redactor = Redactor({"key": KEY})
    assert lines_run(redactor, ["no secret in this line\n"] * 100) < 100 * 60


def test_output_that_is_full_of_beginnings_of_secrets_is_read_once() -> None:
    beginning = KEY[:60]
    redactor = Redactor({"key": KEY})
    one, four = (lines_run(redactor, [beginning * count]) for count in (100, 400))

    assert four < 5 * one


def test_a_long_secret_is_masked_wherever_it_is_cut() -> None:
    redactor = Redactor({"key": KEY})
    text = f"before {KEY} after"
    for cut in range(0, len(text), 7):
        stream = StreamRedactor(redactor)
        assert stream.feed(text[:cut]) + stream.feed(text[cut:]) + stream.flush() == f"before {MASK} after"


def test_a_secret_with_nul_in_it_is_masked() -> None:
    assert Redactor({"a": "abc\0defgh"}).text("x abc\0defgh y") == f"x {MASK} y"


def test_lone_surrogates_pass() -> None:
    assert Redactor({"a": "secret-value"}).text("\ud800 secret-value \udfff") == f"\ud800 {MASK} \udfff"


def test_many_secrets_that_begin_alike_are_told_apart() -> None:
    redactor = Redactor({str(n): f"common-beginning-{n}-{'x' * n}" for n in range(20)})
    assert redactor.text(f"common-beginning-7-{'x' * 7} common-beginning-99") == f"{MASK} common-beginning-99"
