"""The tables of docs/reference/states.md, for the tests that hold the code to them."""

from pathlib import Path

STATES = Path(__file__).parents[2] / "docs" / "reference" / "states.md"


def cells(section: str) -> list[tuple[str, str, str]]:
    """``(row, column, cell)`` of the one table with outcomes in that section."""
    text = STATES.read_text(encoding="utf-8").split(f"\n## {section}\n")[1].split("\n## ")[0]
    lines = [line for line in text.splitlines() if line.startswith("|")]
    header = [cell.strip() for cell in lines[0].strip("|").split("|")]
    found = []
    for line in lines[2:]:
        row = [cell.strip() for cell in line.strip("|").split("|")]
        found += [(row[0], column, cell) for column, cell in zip(header[1:], row[1:], strict=True)]
    return found
