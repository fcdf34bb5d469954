"""Writes what became of the mutants as a page of the documentation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from tests.mutation.trials import Tried

HEAD: Final = """# Mutants

A test that cannot fail proves nothing. So each function that decides what a record becomes is changed in
one place at a time, and a quick test must notice. This page is written by

    make mutants ARGS="--write docs/reference/mutants.md"

The modules are the transitions of the actors and the decisions of the store. The rules of change:

- A comparison becomes its opposite; an order is off by one as well.
- `and` becomes `or` and the other way round; each operand is left out; a `not` is left out or put in.
- A sign of arithmetic becomes another, a number one more, `True` becomes `False`, a word another word.
- A member of an enumeration becomes the next; `min` becomes `max`, `any` becomes `all`; no list is sorted.
- Left out are an argument by keyword, an entry of a dictionary, list or set, a filter of a comprehension,
  an alternative of a `case`, and a statement that only calls or adds.

Sentences of messages stay as they are. A mutant is tried by tests that call the changed function: examples
in docstrings, tests of states, and those of actors and stores in memory. None needs a database. It is killed
when a test fails or takes five times as long. Every survivor is explained below.

"""


class Result(NamedTuple):
    """What became of the mutants of one module."""

    module: str
    mutants: int
    survivors: tuple[tuple[int, str], ...]
    """Line and name."""

    @classmethod
    def of(cls, module: str, tried: Sequence[Tried]) -> Result:
        left = sorted((one.line, one.name) for one in tried if not one.killed)
        return cls(module, len(tried), tuple(left))


def unexplained(results: Sequence[Result], reasons: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Survivors of which nobody has said why."""
    return [
        f"{result.module}:{line} {name}"
        for result in results
        for line, name in result.survivors
        if name not in reasons.get(result.module, {})
    ]


def page(results: Sequence[Result], reasons: Mapping[str, Mapping[str, str]]) -> str:
    """The whole page."""
    count, left = sum(one.mutants for one in results), sum(len(one.survivors) for one in results)
    parts = [
        HEAD,
        f"{count - left:,} of {count:,} are killed: {_share(count - left, count)} %.\n\n",
        "| module | mutants | killed | survivors |\n| --- | ---: | ---: | ---: |\n",
    ]
    for one in results:
        alive = len(one.survivors)
        parts.append(
            f"| `{one.module.removeprefix('sexton_')}` | {one.mutants} | {one.mutants - alive} | {alive} |\n"
        )
    parts.append("\n## Survivors\n\n| where | mutant | why |\n| --- | --- | --- |\n")
    for one in results:
        for _, name in one.survivors:
            where, _, change = name.partition(": ")
            place = f"`{one.module.removeprefix('sexton_')}.{where}`"
            parts.append(f"| {place} | `{_cell(change)}` | {reasons[one.module][name]} |\n")
    return "".join(parts)


def write_page(path: Path, results: Sequence[Result], reasons: Mapping[str, Mapping[str, str]]) -> None:
    path.write_text(page(results, reasons), encoding="utf-8")


def _share(part: int, whole: int) -> str:
    # Rounded down: 94.99 is not 95.
    return f"{part * 1000 // max(1, whole) / 10:.1f}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
