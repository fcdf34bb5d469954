"""What is said of one code."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final


class Shown(Enum):
    """Where a code can be met."""

    ANSWER = "answer"
    EVENT = "event"
    STREAM = "stream"
    STARTUP = "start-up"


ANSWER: Final = (Shown.ANSWER,)
EVENT: Final = (Shown.EVENT,)
ANSWER_EVENT: Final = (Shown.ANSWER, Shown.EVENT)
ANSWER_STREAM: Final = (Shown.ANSWER, Shown.STREAM)
EVENT_STREAM: Final = (Shown.EVENT, Shown.STREAM)
STARTUP: Final = (Shown.STARTUP,)


@dataclass(frozen=True, slots=True)
class Code:
    """One row. ``title`` is the same for every occurrence; ``cause`` is one sentence for the reference."""

    code: str
    status: int
    title: str
    shown: tuple[Shown, ...]
    cause: str
    way_out: str
    """What to do next, for a newcomer; may have `code` in backticks."""
    detail: str
    """As one occurrence said it."""
    facts: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The members that came beside that ``detail``."""


class Table(Mapping[str, Code]):
    """Rows by code; a duplicate cannot be built."""

    def __init__(self, rows: Iterable[Code]) -> None:
        self._rows: dict[str, Code] = {}
        for row in rows:
            if row.code in self._rows:
                raise ValueError(f"{row.code} stands in the table twice")
            self._rows[row.code] = row

    def __getitem__(self, code: str) -> Code:
        return self._rows[code]

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)
