"""The index of the words of events, which follows them."""

from typing import Final, Protocol

import msgspec

from sexton_storage.records.frame_kinds import FrameKind

TEXTS_CHANGED: Final = (FrameKind.EVENT_RECEIVED, FrameKind.EVENT_COMPLETE, FrameKind.LEASE_RECLAIMED)
"""The frames of the commits that write a request, an answer or evidence."""


class Indexed(msgspec.Struct, frozen=True):
    """What one round did."""

    events: int
    """Those whose words were written."""
    more: bool
    """There was more to do than a round does."""
    behind_ms: int
    """How old the oldest news are that are not in the index yet, about; 0: it has all."""


NOTHING: Final = Indexed(0, more=False, behind_ms=0)


class EventWordsStore(Protocol):
    async def index(self, *, limit: int) -> Indexed:
        """Write the words of the next events, about ``limit``; one node at a time does it.

        First of those that arrived or ended, then of those that a walk through all events finds missing.
        """
        ...
