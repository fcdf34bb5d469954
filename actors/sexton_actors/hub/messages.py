"""What the hub is told and asked."""

from uuid import UUID

import msgspec

from sexton_engine import Message


class FramesWritten(msgspec.Struct, Message[None], frozen=True):
    """Agents and their newest frame numbers, after a commit."""

    heads: tuple[tuple[UUID, int], ...]


class AwaitFrames(msgspec.Struct, Message[int], frozen=True):
    """The newest frame number once it is above ``after``, or what it is known to be after ``wait_s``."""

    zombie_id: UUID
    after: int
    wait_s: float


class AwaitOver(msgspec.Struct, Message[None], frozen=True):
    """One reader has waited long enough."""

    zombie_id: UUID
    ticket: int


class Look(msgspec.Struct, Message[None], frozen=True):
    """Ask the database for what was written before a reader came, or by other nodes."""
