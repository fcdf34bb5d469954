"""Bodies and queries: what is taken, what is refused, and by which pointer."""

from typing import Any
from uuid import UUID

import msgspec
import pytest
from hypothesis import given, settings, strategies as st

from sexton_http.answers import Problem
from sexton_http.bodies.decoding import BodyDecoder, QueryDecoder, is_json, pointer_of
from sexton_http.bodies.ids import parse_id
from sexton_http.bodies.json_faults import check_keys, surely_once
from sexton_http.bodies.shapes import Body, Count, Query
from sexton_http.bodies.weight import check_depth
from tests.thorough import examples


class Leaf(Body):
    id: UUID
    number: Count


class Tree(Body):
    leaves: tuple[Leaf, ...] = ()
    any: Any = None
    word: str = ""


class Wanted(Query):
    limit: int = 5
    ids: UUID | None = None


ID = "019363b0-0000-7000-8000-000000000001"
DECODER = BodyDecoder(Tree)


def leaf(text: str) -> str:
    return '{"leaves":[' + text + "]}"


def refused(body: str | bytes) -> Problem:
    with pytest.raises(Problem) as caught:
        DECODER.decode(body if isinstance(body, bytes) else body.encode())
    return caught.value


@pytest.mark.parametrize(
    ("body", "code", "part"),
    [
        ("", "UZ-REQ-001", "not JSON"),
        ("nonsense", "UZ-REQ-001", "not JSON"),
        ("[]", "UZ-REQ-001", "the body"),
        ("7", "UZ-REQ-001", "the body"),
        (b"\xff\xfe", "UZ-REQ-001", "not JSON"),
        (b'{"word":"\xff"}', "UZ-REQ-001", "not JSON"),
        ('{"word":1}', "UZ-REQ-001", "/word:"),
        ('{"other":1}', "UZ-REQ-001", "/other:"),
        (leaf(f'{{"id":"{ID}"}}'), "UZ-REQ-001", "/leaves/0/number:"),
        ('{"leaves":[{"id":"x","number":1}]}', "UZ-UUIDV7-009", "/leaves/0/id:"),
        (leaf(f'{{"id":"{ID}","number":-1}}'), "UZ-REQ-001", "/leaves/0/number:"),
        (leaf(f'{{"id":"{ID}","number":1.5}}'), "UZ-REQ-001", "/leaves/0/number:"),
        (leaf(f'{{"id":"{ID}","number":1e300}}'), "UZ-REQ-001", "/leaves/0/number:"),
        ('{"word":"a","word":"b"}', "UZ-REQ-001", "/word: stands"),
        ('{"any":{"x":1,"x":2}}', "UZ-REQ-001", "/any/x: stands"),
        ('{"word":"a\\u0000b"}', "UZ-REQ-001", "/word: must not contain the character U+0000"),
        ('{"any":{"a\\u0000":1}}', "UZ-REQ-001", "/any/a"),
        ('{"any":[1,{"a/b":"\\u0000"}]}', "UZ-REQ-001", "/any/1/a~1b: must"),
        (leaf(f'{{"id":"{ID.replace("-", "")}","number":1}}'), "UZ-UUIDV7-009", "/leaves/0/id:"),
        ('{"any":' + "[" * 64 + "]" * 64 + "}", "UZ-REQ-001", "deeper than 64"),
        ('{"any":' + "[" * 100_000, "UZ-REQ-001", "deeper than 64"),
        ('{"word":"\\ud800"}', "UZ-REQ-001", "/word: \\ud800 is half of a surrogate pair"),
    ],
)
def test_a_body_that_is_not_as_declared_is_refused_by_pointer(
    body: str | bytes, code: str, part: str
) -> None:
    problem = refused(body)

    assert problem.code == code
    assert part in problem.detail


class Closed(Body):
    """Without a field of free form, as the bodies of the hot routes are."""

    rows: tuple[Leaf, ...]
    word: str = ""
    maybe: Count | None = None


CLOSED = BodyDecoder(Closed)


@given(
    st.lists(st.sampled_from([f'"id":"{ID}"', '"number":1', '"number":2.0']), min_size=0, max_size=4),
    st.sampled_from(
        ["", ',"word":"a:b"', ',"word":"x"', ',"maybe":null', ',"maybe":1', ',"maybe":1,"maybe":2']
    ),
    st.sampled_from(["", " ", "\n"]),
)
def test_a_closed_body_is_taken_if_and_only_if_each_field_stands_once(
    fields: list[str], more: str, space: str
) -> None:
    text = ('{"rows":[{' + ",".join(fields) + "}]" + more + "}").replace(":", space + ":" + space)
    names = [field.partition(":")[0] for field in fields]
    right = sorted(names) == ['"id"', '"number"'] and more.count("maybe") < 2
    text = text.replace(f"a{space}:{space}b", "a:b")

    assert (status_of(CLOSED, text.encode()) == 200) == right


def test_a_closed_body_hides_no_depth_behind_a_number() -> None:
    body = b'{"rows":[{"id":"%b","number":1.5}],"other":%b' % (ID.encode(), b"[" * 100_000)
    assert status_of(CLOSED, body) == 400


def test_an_integer_may_be_written_with_a_fraction_of_zero() -> None:
    body = leaf(f'{{"id":"{ID}","number":9.0}}')[:-1] + ',"any":0.5}'
    tree = DECODER.decode(body.encode())

    assert (tree.leaves[0].number, tree.any) == (9, 0.5)


def test_brackets_within_texts_are_no_depth() -> None:
    check_depth(b'{"word":"' + b"[" * 500 + b'\\"' + b"{" * 500 + b'"}')


def test_an_escaped_backslash_before_u0000_is_no_nul() -> None:
    assert DECODER.decode(b'{"word":"\\\\u0000"}').word == "\\u0000"


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda c: st.lists(c, max_size=3)))
def test_whatever_is_json_in_a_free_field_is_taken_as_it_is(value: Any) -> None:
    body = msgspec.json.encode({"any": value}) if _fits(value) else b'{"any":null}'
    if b"\\u0000" in body:
        return

    assert DECODER.decode(body).any == msgspec.json.decode(body)["any"]


def _fits(value: Any) -> bool:
    try:
        msgspec.json.encode(value)
    except (OverflowError, UnicodeEncodeError):
        return False
    return True


@given(st.binary(max_size=200))
def test_no_bytes_make_anything_but_a_body_or_a_problem(body: bytes) -> None:
    assert status_of(DECODER, body) in {200, 400}


@given(st.binary(max_size=100))
def test_no_query_makes_anything_but_fields_or_a_problem(query: bytes) -> None:
    assert status_of(QueryDecoder(Wanted), query) in {200, 400}


def status_of(decoder: BodyDecoder[Any] | QueryDecoder[Wanted], data: bytes) -> int:
    try:
        decoder.decode(data)
    except Problem as problem:
        return problem.row.status
    return 200


@pytest.mark.parametrize(
    ("query", "code"),
    [
        (b"limit=x", "UZ-REQ-001"),
        (b"limit=1&limit=2", "UZ-REQ-001"),
        (b"limit=%00", "UZ-REQ-001"),
        (b"limit=", "UZ-REQ-001"),
        (b"limit=%ff", "UZ-REQ-001"),
        (b"ids=x", "UZ-UUIDV7-009"),
        (b"limit=1e1", "UZ-REQ-001"),
        (b"limit=1.0", "UZ-REQ-001"),
        (b"limit=%2B1", "UZ-REQ-001"),
        (b"limit=%D9%A1", "UZ-REQ-001"),
    ],
)
def test_a_query_that_is_not_as_declared_is_refused(query: bytes, code: str) -> None:
    with pytest.raises(Problem) as caught:
        QueryDecoder(Wanted).decode(query)
    assert caught.value.code == code


def test_fields_of_a_query_that_nobody_declared_pass() -> None:
    assert QueryDecoder(Wanted).decode(b"utm=1&utm=2&limit=7") == Wanted(limit=7)


def test_an_id_is_taken_in_either_case_and_in_no_other_form() -> None:
    assert parse_id(ID.upper(), "x") == UUID(ID)
    for bad in ("", "x", ID[:-1], ID + "0", ID.replace("-", ""), "{" + ID + "}", " " + ID, "é" * 36):
        with pytest.raises(Problem) as caught:
            parse_id(bad, "zombie_id")
        assert caught.value.code == "UZ-UUIDV7-009"


def test_media_types_of_json_are_known() -> None:
    assert is_json("application/json")
    assert is_json("Application/JSON; charset=utf-8")
    assert is_json("application/vnd.x+json")
    assert not is_json(None)
    assert not is_json("text/plain")
    assert not is_json("application/jsonp")


def test_a_pointer_escapes_what_it_must() -> None:
    assert pointer_of("$.a", "Object contains unknown field `b/c~d`") == "/a/b~1c~0d"


KEYS = st.sampled_from(["a", "b", ":", "\\u003a", "\\\\", '\\"', "\\u0062", "a\\n", "\\ud83d\\ude00"])
VALUES = st.recursive(
    st.sampled_from(["1", "null", "1e5", '""']) | KEYS.map('"{}"'.format),
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda items: "[" + ", ".join(items) + "]")
        | st.lists(st.tuples(KEYS, inner), max_size=4).map(
            lambda pairs: "{" + ", ".join(f'"{key}" : {value}' for key, value in pairs) + "}"
        )
    ),
    max_leaves=12,
)


@given(text=VALUES)
@settings(max_examples=examples(400), deadline=None)
def test_a_body_is_only_called_clear_when_no_key_stands_twice(text: str) -> None:
    body = text.encode()

    if surely_once(body):
        check_keys(body)
    elif b"\\u00" not in body:
        with pytest.raises(Problem, match="twice"):
            check_keys(body)
