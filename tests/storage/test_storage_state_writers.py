"""Each move of a state machine names the writes that make it, and each statement that makes one is named."""

import importlib
import re
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path

import pytest

import sexton_storage.records
from sexton_storage import writes
from tests.storage.statements import ROOT, tables_written, writers

STATES = Path(__file__).parents[2] / "docs" / "reference" / "states.md"
IN_MEMORY_ALONE = {"A record as its actor holds it"}
"""Diagrams of what no row says."""
WITHOUT_STATUS = {"ChatStore", "DeliveryStore", "EventWordsStore"}
"""Their rows say by other columns what they are."""
CLOCK_ALONE = "none: the clock says it"
_EDGE = re.compile(r"^ +(\[\*\]|\w+) --> (\[\*\]|\w+)(:?)", re.MULTILINE)
_MOVE = re.compile(r"(\[\*\]|\w+) → (\[\*\]|\w+)")
_CODE = re.compile(r"`([^`]+)`")


def sections() -> Mapping[str, str]:
    text = STATES.read_text(encoding="utf-8")
    return {part.partition("\n")[0]: part for part in text.split("\n## ")[1:]}


def drawn(section: str) -> set[tuple[str, str]]:
    """The moves of a diagram; an arrow to the end without a word stands for no write: the record stays."""
    diagram = section.partition("```mermaid")[2].partition("```")[0]
    return {(before, after) for before, after, label in _EDGE.findall(diagram) if label or after != "[*]"}


def rows(columns: str) -> Iterator[list[str]]:
    """The cells of the table whose header begins so."""
    lines = sections()["Which write makes which move"].partition(f"\n| {columns} |\n")[2].splitlines()
    for line in lines[1:]:
        if not line.startswith("|"):
            return
        yield [cell.strip() for cell in line.strip("|").split("|")]


MACHINES = {
    name: section
    for name, section in sections().items()
    if "```mermaid" in section and name not in IN_MEMORY_ALONE
}
MOVES = list(rows("Record | Write | Moves"))
FUNCTIONS = {cells[0].strip("`"): cells for cells in rows("Function | For | Tables")}


@pytest.mark.parametrize("machine", MACHINES)
def test_each_move_that_is_drawn_is_some_writes_and_each_writes_move_is_drawn(machine: str) -> None:
    told = [_MOVE.findall(moves) for record, _, moves in MOVES if record == machine]

    assert set(chain.from_iterable(told)) == drawn(MACHINES[machine])


def test_each_write_that_is_named_exists() -> None:
    named = {write for _, cell, _ in MOVES if cell != CLOCK_ALONE for write in _CODE.findall(cell)}

    assert [write for write in sorted(named) if not exists(write)] == []


def test_each_function_that_writes_a_status_is_named_with_its_tables() -> None:
    told = {name: set(cells[2].split(", ")) for name, cells in FUNCTIONS.items()}

    assert told == writers()


def test_each_write_of_a_status_has_a_function() -> None:
    served = {write for _, cell, _ in FUNCTIONS.values() for write in _CODE.findall(cell)}
    named = {write for _, cell, _ in MOVES for write in _CODE.findall(cell)}
    without_status = {write for write in named if write.partition(".")[0] in WITHOUT_STATUS}

    without_status.add("ZombieStore.delete")

    assert served == named - without_status


def test_a_statement_that_nobody_names_would_be_seen() -> None:
    assert tables_written("WITH v AS (SELECT 1) UPDATE events e SET status = 'lost' FROM v") == {"events"}
    assert tables_written("INSERT INTO gates (id, status) SELECT 1") == {"gates"}
    assert tables_written("UPDATE auth_sessions SET (version, status) = ($1, $2)") == {"auth_sessions"}
    assert tables_written("UPDATE agent_heads SET streak = CASE WHEN f.status = 'x' THEN 1 END") == set()


def exists(write: str) -> bool:
    """Whether it is a write of the journal, or a method of a store's protocol."""
    store, _, method = write.partition(".")
    if not method:
        return hasattr(writes, store)
    places = sorted(Path(sexton_storage.records.__path__[0]).glob("*.py"))
    modules = [importlib.import_module(f"sexton_storage.records.{place.stem}") for place in places]
    return any(hasattr(getattr(module, store, None), method) for module in modules)


def test_the_statements_were_looked_for_where_they_are() -> None:
    assert {"journal", "stores"} <= {path.name for path in ROOT.iterdir()}
