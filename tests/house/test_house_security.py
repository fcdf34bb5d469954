"""The page about security counts what it lists, and each test that it names is there."""

import re
from collections import Counter
from functools import cache
from typing import Any

from scripts.audit_packages import verdict

from tests.house.survey import ROOT, modules

PAGE = (ROOT / "docs" / "reference" / "security.md").read_text(encoding="utf-8")
ROW = re.compile(
    r"\| V(\d+)\.(\d+)\.(\d+)(?: to V\d+\.\d+\.(\d+))? \| [^|]+ \| (met|not applicable|not met) \| ([^|]+) \|"
)
TOTALS = re.compile(r"\| (V\d+|All)\b[^|]*\| (\d+) \| (\d+) \| (\d+) \| (\d+) \|")
SECTIONS = {1: 38, 2: 53, 3: 18, 4: 9, 5: 30, 6: 13, 7: 12, 8: 15, 9: 7, 10: 5, 11: 8, 12: 15, 13: 13, 14: 23}
"""How many requirements of level 2 each chapter of the standard has."""


@cache
def requirements() -> dict[tuple[int, int, int], str]:
    found: dict[tuple[int, int, int], str] = {}
    for chapter, section, first, last, state, _ in ROW.findall(PAGE):
        for number in range(int(first), int(last or first) + 1):
            found[int(chapter), int(section), number] = state
    return found


@cache
def written_tests() -> set[str]:
    return {
        name
        for path in modules()
        if path.name.startswith("test_")
        for name in re.findall(r"^(?:async )?def (test_\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
    }


def test_every_requirement_of_level_two_has_a_line() -> None:
    assert Counter(chapter for chapter, _, _ in requirements()) == SECTIONS
    assert list(requirements()) == sorted(requirements())


def test_the_counts_at_the_top_are_those_of_the_lines() -> None:
    told = {name: [int(number) for number in numbers] for name, *numbers in TOTALS.findall(PAGE)}
    states = ("met", "not applicable", "not met")
    counted = {
        f"V{chapter}": [
            sum(state == one for key, state in requirements().items() if key[0] == chapter) for one in states
        ]
        for chapter in SECTIONS
    }
    counted["All"] = [sum(state == one for state in requirements().values()) for one in states]

    assert told == {name: [*counts, sum(counts)] for name, counts in counted.items()}


def test_each_test_and_each_target_that_is_named_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    files = set(re.findall(r"`(tests/[\w/]+\.py)`", PAGE))

    assert set(re.findall(r"`(test_\w+)`", PAGE)) - written_tests() == set()
    assert set(re.findall(r"`make ([a-z]+)`", PAGE)) - targets == set()
    assert [name for name in sorted(files) if not (ROOT / name).is_file()] == []


def test_an_audit_that_could_not_look_never_says_that_all_is_well() -> None:
    well = {"name": "a", "version": "1", "vulns": []}
    bad = {"name": "b", "version": "1", "vulns": [{"id": "X-1", "fix_versions": ["2"]}]}
    unseen = {"name": "c", "skip_reason": "Dependency not found on PyPI and could not be audited: c (1)"}
    reports: tuple[list[Any], ...] = ([well], [well, bad], [well, unseen], [unseen, bad], [])

    assert [verdict({"dependencies": rows})[0] for rows in reports] == [0, 1, 2, 1, 2]
    assert "could not be looked up" in verdict({"dependencies": [unseen]})[1][0]
