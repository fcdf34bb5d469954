"""What a report keeps of an output that may be endless."""

import orjson
from hypothesis import given, strategies as st

from sexton_runner.output import HEAD_BYTES, MAX_OUTPUT_BYTES, SHOWN_TAIL_BYTES, TAIL_BYTES, Output


def fed(*pieces: bytes) -> Output:
    output = Output()
    for piece in pieces:
        output.feed(piece)
    return output


@given(st.lists(st.binary(max_size=2000), max_size=30))
def test_a_short_output_is_kept_whole(pieces: list[bytes]) -> None:
    assert fed(*pieces).text() == b"".join(pieces).decode("utf-8", "replace")


def test_an_output_between_head_and_tail_is_kept_whole() -> None:
    text = b"x" * HEAD_BYTES + b"y" * SHOWN_TAIL_BYTES
    assert fed(text[:100], text[100:]).text() == text.decode()


def test_a_long_output_keeps_its_beginning_and_its_end_and_says_what_is_missing() -> None:
    text = fed(b"begin" + b"x" * (HEAD_BYTES * 5) + b"end").text()

    assert text.startswith("begin")
    assert text.endswith("end")
    assert f"{HEAD_BYTES * 4 - SHOWN_TAIL_BYTES + 8} bytes left out" in text


def test_the_last_line_that_is_a_json_object_is_the_evidence() -> None:
    assert fed(b'{"a": 1}\n{"b": 2}\n[3]\n4\nbye {"c": 3}\n').evidence() == {"b": 2}


def test_output_without_a_json_object_has_no_evidence() -> None:
    assert fed(b"{not json\n[1]\nnull\n").evidence() is None


def test_evidence_is_found_after_any_amount_of_output() -> None:
    evidence = orjson.dumps({"proof": "p" * 60_000})
    assert fed(*[b"noise\n" * 1000] * 60, evidence).evidence() == {"proof": "p" * 60_000}


def test_a_line_longer_than_evidence_may_be_is_not_taken_for_it() -> None:
    assert fed(b'{"a": 1}\n', orjson.dumps({"b": "x" * 70_000})).evidence() == {"a": 1}


def test_memory_stays_bounded_while_the_count_goes_on() -> None:
    output = fed(*[b"x" * 65536] * 200)

    assert output.total == 200 * 65536 > MAX_OUTPUT_BYTES
    assert output.flooded
    assert len(output._head) == HEAD_BYTES
    assert len(output._tail) == TAIL_BYTES


def test_evidence_that_no_report_could_carry_is_left_out() -> None:
    assert fed(b'{"a":' * 40 + b"1" + b"}" * 40).evidence() is None
    assert fed(b'{"a":' * 32 + b"1" + b"}" * 32).evidence() is not None
