"""Shows what a proposal changes, as a unified diff."""

from collections.abc import Sequence
from difflib import unified_diff
from typing import Final

from sexton_actors.manifest.problems import SKILL_FILE, TRIGGER_FILE

CONTEXT_LINES: Final = 3
MAX_COMPARED_LINES: Final = 400
"""The bound of what is left once the common beginning and end are set aside.

The comparison takes time by the square, so more than these are shown as taken out and put in as a whole.
"""

Files = tuple[str, str]
"""SKILL.md and TRIGGER.md."""


def diff_files(before: Files, after: Files) -> str:
    r"""Both files as one diff; empty when nothing changes.

    >>> print(diff_files(("a\nb\n", "t"), ("a\nc\n", "t")), end="")
    --- a/SKILL.md
    +++ b/SKILL.md
    @@ -1,2 +1,2 @@
     a
    -b
    +c
    """
    names = (SKILL_FILE, TRIGGER_FILE)
    return "".join(_diff(name, old, new) for name, old, new in zip(names, before, after, strict=True))


def _diff(name: str, before: str, after: str) -> str:
    if before == after:
        return ""
    old, new = _lines(before), _lines(after)
    head, tail = _common(old, new)
    heads = (f"--- a/{name}\n", f"+++ b/{name}\n")
    middle_old, middle_new = old[head : len(old) - tail], new[head : len(new) - tail]
    if max(len(middle_old), len(middle_new)) > MAX_COMPARED_LINES:
        return "".join([*heads, *_replaced(old, middle_old, middle_new, head, tail)])
    first = max(0, head - CONTEXT_LINES)
    last = min(tail, CONTEXT_LINES)
    shown_old = old[first : len(old) - tail + last]
    shown_new = new[first : len(new) - tail + last]
    hunks = list(unified_diff(shown_old, shown_new, n=CONTEXT_LINES))[2:]
    return "".join([*heads, *(_moved(line, first) for line in hunks)])


def _lines(text: str) -> list[str]:
    """Each with its line feed; the last gets one, and says so, if it has none."""
    lines = text.split("\n")
    ended = [f"{line}\n" for line in lines[:-1]]
    return [*ended, f"{lines[-1]}\n\\ No newline at end of file\n"] if lines[-1] else ended


def _common(old: Sequence[str], new: Sequence[str]) -> tuple[int, int]:
    """How many lines both begin with, and how many of the rest both end with."""
    least = min(len(old), len(new))
    head = next((i for i in range(least) if old[i] != new[i]), least)
    room = least - head
    tail = next((i for i in range(room) if old[-1 - i] != new[-1 - i]), room)
    return head, tail


def _moved(line: str, by: int) -> str:
    """A line of a diff that began ``by`` lines further down; only the marks of hunks have numbers."""
    if not by or not line.startswith("@@ "):
        return line
    _, old, new, _ = line.split(" ", 3)
    return f"@@ {_shifted(old, by)} {_shifted(new, by)} @@\n"


def _shifted(span: str, by: int) -> str:
    start, comma, count = span[1:].partition(",")
    return f"{span[0]}{int(start) + by}{comma}{count}"


def _replaced(old: Sequence[str], out: Sequence[str], into: Sequence[str], head: int, tail: int) -> list[str]:
    before = old[max(0, head - CONTEXT_LINES) : head]
    after = old[len(old) - tail : len(old) - tail + CONTEXT_LINES] if tail else []
    start, around = head - len(before) + 1, len(before) + len(after)
    return [
        f"@@ -{start},{len(out) + around} +{start},{len(into) + around} @@\n",
        *(f" {line}" for line in before),
        *(f"-{line}" for line in out),
        *(f"+{line}" for line in into),
        *(f" {line}" for line in after),
    ]
