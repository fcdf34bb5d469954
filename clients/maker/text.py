"""Spells names, mappings and docstrings of generated code."""

import re
from collections.abc import Iterable, Iterator
from typing import Final

WIDTH: Final = 100


def constant(value: str) -> str:
    """A name for a member of an enumeration.

    >>> constant("UZ-ZMB-009"), constant("-created_at"), constant("2fa")
    ('UZ_ZMB_009', 'CREATED_AT_DESCENDING', 'N2FA')
    """
    name = re.sub(r"[^A-Z0-9]+", "_", value.upper()).strip("_")
    if value.startswith("-"):
        return f"{name}_DESCENDING"
    return f"N{name}" if name[:1].isdigit() else name


def mapping(pairs: Iterable[tuple[str, str]]) -> str:
    return "{" + ", ".join(f'"{wire}": {name}' for wire, name in pairs) + "}"


def doc(first: str, rest: str) -> str:
    """A docstring: the first line stands for itself, the rest is wrapped."""
    clean = [
        re.sub(r"\s+", " ", text).strip().replace("\\", "\\\\").replace('"""', "'''")
        for text in (first, rest)
    ]
    first, rest = clean
    return first + ("" if not rest else "\n\n" + "\n".join(wrapped(rest)))


def wrapped(text: str) -> Iterator[str]:
    line = ""
    for word in text.split(" "):
        if line and len(line) + len(word) >= WIDTH:
            yield line
            line = word
        else:
            line = f"{line} {word}".strip()
    yield line
