"""What may stand for an id: its beginning or its end; and what a misspelled name may have meant."""

import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

ID: Final = re.compile(r"[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
PART: Final = re.compile(r"[0-9A-Fa-f-]{6,35}")
LEAST: Final = 6
"""Digits. Among a thousand ids, one whose end was mistyped fits another once in sixteen thousand times."""
MEANT: Final = 3


def is_id(text: str) -> bool:
    """Whether the server is to be asked for this as an id.

    >>> is_id("019363b0-0000-7000-8000-00000000ffff"), is_id("deadbeef" * 4)
    (True, False)
    """
    return ID.fullmatch(text) is not None


def is_part(text: str) -> bool:
    """Whether this may be the beginning or the end of an id.

    >>> is_part("00aaff"), is_part("aaff"), is_part("019363b0-0000-7000-8000-00000000aaff"), is_part("-" * 8)
    (True, False, False, False)
    """
    return PART.fullmatch(text) is not None and len(text.replace("-", "")) >= LEAST and not is_id(text)


def fits(wanted: str, whole: str) -> bool:
    """Whether an id begins or ends with this, with its hyphens or without.

    >>> fits("FF", "019363b0-0000-7000-8000-00000000aaff"), fits("8000000000", "8000-000000")
    (True, True)
    """
    part, digits = wanted.lower(), wanted.lower().replace("-", "")
    bare = whole.replace("-", "")
    spelled = "-" not in part and (bare.startswith(digits) or bare.endswith(digits))
    return spelled or whole.startswith(part) or whole.endswith(part)


def meant(wanted: str, known: Iterable[str]) -> str:
    """What to ask a person who misspelled a name; empty where nothing is spelled alike.

    >>> meant("ehco", ["echo", "night-watch"]), meant("x", ["echo"])
    ("Did you mean 'echo'? ", '')
    """
    alike = get_close_matches(wanted, sorted(set(known)), MEANT)
    return f"Did you mean {' or '.join(map(repr, alike))}? " if alike else ""
