"""The runner reads the lines of a command with suspicion."""

import base64

import pytest
from hypothesis import given, strategies as st

from sexton_runner.command_protocol import Ask, Failed, Garbage, Part, Progress, Started, Step, parse, reply


def b64(text: str) -> bytes:
    return base64.b64encode(text.encode()) or b"-"


@pytest.mark.parametrize(
    ("line", "meaning"),
    [
        (b"started", Started()),
        (b"progress", Progress()),
        (b"fail", Failed()),
        (b"step " + b64("unpack the box"), Step("unpack the box")),
        (b"part 12 " + b64("half"), Part("12", b"half")),
        (
            b" ".join([b"ask 12", b64("deploy.rollback"), b64("deploy"), b"-", b64("Zurück\nnow"), b"-"]),
            Ask("12", "deploy.rollback", "deploy", "", "Zurück\nnow", ""),
        ),
    ],
)
def test_each_line_of_the_protocol_is_understood(line: bytes, meaning: object) -> None:
    assert parse(line) == meaning


@pytest.mark.parametrize(
    "line",
    [b"", b"   ", b"step", b"step !", b"step a b", b"ask 1", b"ask x - - - - -", b"part ../1 YQ==",
     b"\xff\xfe",
     b"step LQ==\x00", b"ask 12 - - - - -", b"started now", b"fail\x1d", b"step\x1cLQ=="],
)  # fmt: skip
def test_whatever_else_is_said_is_garbage(line: bytes) -> None:
    assert parse(line) == Garbage()


@given(st.binary(max_size=5000))
def test_no_bytes_can_make_reading_fail(line: bytes) -> None:
    parse(line)


def test_names_and_words_are_cut_to_their_bounds() -> None:
    step = parse(b"step " + b64("n" * 500))
    ask = parse(b" ".join([b"ask 1", b64("a" * 500), b64("t" * 500), b"-", b64("s" * 2000), b"-"]))

    assert isinstance(step, Step)
    assert isinstance(ask, Ask)
    assert [len(word) for word in (step.name, ask.action, ask.tool, ask.summary)] == [128, 128, 128, 1024]


def test_an_answer_is_one_line_of_three_words() -> None:
    assert reply("approved", "7", "go on,\nthen") == b"approved 7 " + b64("go on,\nthen") + b"\n"
    assert reply("ended", "7", "") == b"ended 7 -\n"
