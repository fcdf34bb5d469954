"""YAML is read without its surprises, and every fault has a line."""

import pytest

from sexton_actors.manifest.nodes import MAX_DEPTH, NotYaml, Scalar, Sequence, Table, read_yaml

FAULTS = [
    ("a: 1\nb: 2\na: 3", 3, "stands twice"),
    ("a: {b: 1, b: 2}", 1, "stands twice"),
    ("a: &x 1\nb: *x", 1, "an anchor"),
    ("a: 1\nb: *x", 2, "an alias"),
    ("a:\n  - *.example.com", 2, "must stand in quotes"),
    ("a: [*.example.com]", 1, "must stand in quotes"),
    ("a: @home", 1, "must stand in quotes"),
    ("a: !!python/object/apply:os.system [x]", 1, "a YAML tag"),
    ("a: !secret x", 1, "a YAML tag"),
    ("<<: {a: 1}\n<<: {b: 1}", 2, "stands twice"),
    ("a: b\n---\nc: d", 2, "a second document"),
    ("? [a, b]\n: c", 1, "a key must be one word"),
    ("a:\n\t- b", 2, "a tab"),
    ("a: b: c", 1, "put the value in quotes"),
    ("a: 'b", 1, "never closed"),
    ("a: 1\nb: 'c\nd: e\n", 2, "never closed"),
    ("a: [b", 1, "closed"),
    ("a: 1\nb: [c, d\ne: f\n", 2, "closed"),
    ("a:\n  b: 1\n c: 2", 3, "indentation"),
    ("ok: 1\nbad\n", 2, "without `:`"),
    ("a: \x07", 1, "U+0007"),
    ("a: 1\nb: \x1b", 2, "U+001B"),
    ('a: "\\0"', 1, "U+0000"),
    ("a: " + "[" * (MAX_DEPTH + 1), 1, "within each other"),
    ("- " * 30_000, 1, "within each other"),
    ("[" * 60_000, 1, "within each other"),
    ("{a: " * 15_000, 1, "within each other"),
]


@pytest.mark.parametrize(("text", "line", "says"), FAULTS, ids=[text[:24] for text, _, _ in FAULTS])
def test_a_fault_is_told_with_its_line(text: str, line: int, says: str) -> None:
    found = read_yaml(text, first_line=1)

    assert isinstance(found, NotYaml), found
    assert found.line == line
    assert says in found.message


def test_lines_count_from_where_the_front_matter_begins() -> None:
    found = read_yaml("a: 1\na: 2", first_line=10)

    assert isinstance(found, NotYaml)
    assert found.line == 11


def test_values_keep_their_lines_and_whether_they_were_quoted() -> None:
    assert read_yaml("a: no\nb:\n  - 'no'\n", first_line=2) == read_yaml("a: no\nb: \n  - 'no'", 2)

    found = read_yaml("a: no\nb:\n  - 'no'\n", first_line=2)
    assert isinstance(found, Table)
    assert [(entry.key, entry.line) for entry in found.entries] == [("a", 2), ("b", 3)]
    assert found.entries[0].value == Scalar("no", plain=True, line=2)
    assert found.entries[1].value == Sequence((Scalar("no", plain=False, line=4),), line=4)


def test_a_document_may_be_as_deep_as_the_limit() -> None:
    assert isinstance(read_yaml("[" * MAX_DEPTH + "]" * MAX_DEPTH, 1), Sequence)


def test_an_empty_document_is_an_empty_scalar() -> None:
    assert read_yaml("# only a comment\n", 3) == Scalar("", plain=True, line=3)


def test_ten_laughs_of_ten_laughs_are_not_laughed() -> None:
    bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"{name}: &{name} [{','.join(['*' + before] * 9)}]\n"
        for before, name in zip("abcdefgh", "bcdefghi", strict=True)
    )
    assert isinstance(read_yaml(bomb, 1), NotYaml)
