"""Who is told that there is more to trace."""

from typing import Protocol
from uuid import UUID


class TraceSink(Protocol):
    """Takes notes and never waits; what it cannot take it counts, and forgets."""

    def ended(self, event_id: UUID, attempt: int | None, *, over: bool) -> None:
        """An attempt has ended, or with None the event without one. ``over``: and with it the event."""
        ...
