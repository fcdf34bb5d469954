"""Which records are to be read again, because they were changed where their actors here could not see it."""

from typing import Final
from uuid import UUID

NAMED_MAX: Final = 10_000
"""Records that are known by name; with one more, all are read again once."""


class ChangedRecords:
    """One for a node. Who keeps a record notes the mark when it reads, and asks whether it is still good.

    >>> changed, agent, other = ChangedRecords(), UUID(int=1), UUID(int=2)
    >>> mark = changed.mark
    >>> changed.note(agent)
    >>> changed.since(mark, agent), changed.since(mark, other), changed.since(changed.mark, agent)
    (True, False, False)
    """

    def __init__(self) -> None:
        self._count = 0
        self._floor = 0
        self._named: dict[UUID, int] = {}

    def __repr__(self) -> str:
        return f"<ChangedRecords {self._count}, {len(self._named)} named>"

    @property
    def mark(self) -> int:
        """To be noted before the record is read."""
        return self._count

    def note(self, record_id: UUID) -> None:
        """The record was changed: an agent, a workspace, a runner."""
        self._count += 1
        if len(self._named) >= NAMED_MAX:
            self._named.clear()
            self._floor = self._count
        self._named[record_id] = self._count

    def since(self, mark: int, *record_ids: UUID) -> bool:
        """Whether one of them was changed after the mark."""
        if mark == self._count:
            return False
        return self._floor > mark or any(self._named.get(one, 0) > mark for one in record_ids)
