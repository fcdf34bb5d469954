"""What an event is made from, as it was read: it may have changed by the time that the event is kept."""

from enum import StrEnum
from uuid import UUID

import msgspec


class SourceKind(StrEnum):
    EVENT = "event"
    """The event that it is the replay of."""
    FOLLOW_UP = "follow_up"
    DELIVERY = "delivery"
    """A delivery of a webhook that was kept and is taken in later."""


class Source(msgspec.Struct, frozen=True, gc=False):
    """Names a row, and the hash of what was taken from it."""

    kind: SourceKind
    id: UUID
    sha256: bytes
