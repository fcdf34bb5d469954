"""Finds the example agents: beside the package in a wheel, at the root of a clone."""

from pathlib import Path
from typing import NamedTuple

PACKAGED = Path(__file__).parent / "examples"
IN_CLONE = Path(__file__).parents[2] / "examples"


class Example(NamedTuple):
    source_markdown: str
    trigger_markdown: str


def folder_of(name: str) -> Path:
    """Raises FileNotFoundError when there is no such example."""
    for root in (PACKAGED, IN_CLONE):
        if (root / name).is_dir():
            return root / name
    raise FileNotFoundError(name)


def load(name: str) -> Example:
    """The two files of an example agent."""
    folder = folder_of(name)
    return Example((folder / "SKILL.md").read_text(), (folder / "TRIGGER.md").read_text())


def payload(name: str, file: str) -> bytes:
    """A sample delivery, the very bytes."""
    return (folder_of(name) / "payloads" / file).read_bytes()
