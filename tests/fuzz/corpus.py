"""The inputs that are kept: a file for each target, a line for each input, as Python writes bytes."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).with_name("corpus")
MOST_BYTES: Final = 100_000
"""The bound of all files together."""


def kept(target: str) -> list[bytes]:
    """The inputs of a target, in the order of the file."""
    path = FOLDER / f"{target}.txt"
    lines = path.read_text(encoding="ascii").splitlines() if path.exists() else []
    return [_read(line) for line in lines]


def keep(target: str, inputs: Iterable[bytes]) -> None:
    """Write the file again, the shortest first."""
    FOLDER.mkdir(exist_ok=True)
    lines = sorted(set(inputs), key=lambda one: (len(one), one))
    (FOLDER / f"{target}.txt").write_text("".join(f"{one!r}\n" for one in lines), encoding="ascii")


def _read(line: str) -> bytes:
    value = ast.literal_eval(line)
    if not isinstance(value, bytes):
        raise TypeError(line)
    return value
