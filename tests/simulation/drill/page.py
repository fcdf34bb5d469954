"""Writes the table of the drill as a page of the documentation."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.simulation.drill.mutants import CHANGES_NOTHING

HEAD: Final = """# Drill of the simulations

A test that cannot fail proves nothing. So faults are planted in the product, one at a time, and the
[simulations](../explanation/what-is-proved.md) must notice each. This page is written by

    python -m tests.simulation.drill --write docs/reference/simulation-drill.md

It has the faults that were named after the command, or all. Each has up to {seeds} seeds of {minutes:g}
simulated minutes, from seed 0 on. The table names the first
seed that broke a promise, and the judge that noticed. The first part was written by hand: faults of earlier
versions of Sexton, and of other systems of this kind. The second part was made by a tool from the functions
that decide what the database keeps: one comparison, `and`, `or` or sign at a time is the opposite; {part}
was tried. A program that ends in an error is noticed as well, and the table names the error then.

"""
_PARTS: Final = {1: "each of them", 9: "one in nine"}


def write_page(
    path: Path,
    rows: Sequence[tuple[str, str, tuple[int, str] | None]],
    minutes: float,
    seeds: int,
    every: int,
) -> None:
    """Write the whole page."""
    part = _PARTS.get(every, f"one in {every}")
    noticed, others = sum(row[2] is not None for row in rows), sum(row[0] in CHANGES_NOTHING for row in rows)
    sums = f"{noticed} of {len(rows)} are noticed"
    sums += f"; {others} cannot be, since no history shows it." if others else "."
    parts = [HEAD.format(minutes=minutes, seeds=seeds, part=part), sums + "\n"]
    for title, is_mutant in (("Planted by hand", False), ("Made by rule", True)):
        chosen = [row for row in rows if ("." in row[0]) is is_mutant]
        if chosen:
            parts += [
                f"\n## {title}\n\n",
                "| fault | what it does | seed | judge |\n",
                "| --- | --- | --- | --- |\n",
            ]
            parts += [_line(*row) for row in chosen]
    path.write_text("".join(parts), encoding="utf-8")


def _line(name: str, says: str, noticed: tuple[int, str] | None) -> str:
    missed = f"changes nothing: {CHANGES_NOTHING[name]}" if name in CHANGES_NOTHING else "not noticed"
    seed, judge = ("", missed) if noticed is None else (str(noticed[0]), f"`{noticed[1]}`")
    what = says.replace("|", "\\|")
    shown = f"`{what}`" if "." in name else what
    return f"| `{name}` | {shown} | {seed} | {judge} |\n"
