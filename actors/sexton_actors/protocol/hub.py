"""What the hub is told and asked."""

from uuid import UUID

import msgspec

from sexton_engine import Message
from sexton_storage.records.frames import Frame


class FramesWritten(msgspec.Struct, Message[None], frozen=True):
    """Agents and their newest frame numbers, after a commit."""

    heads: tuple[tuple[UUID, int], ...]


GONE = -1
"""The number told to those who wait for frames of an agent that was deleted."""


class AgentGone(msgspec.Struct, Message[None], frozen=True):
    """The agent was deleted: nobody need wait for it."""

    zombie_id: UUID


class News(msgspec.Struct, frozen=True):
    """The newest number of an agent's frames; ``GONE`` when there is no such agent any more."""

    head: int
    frames: tuple[Frame, ...] = ()
    """What follows the reader's own number, without a gap. None, where ``head`` is greater: it reads them."""


class AwaitFrames(msgspec.Struct, Message[News], frozen=True):
    """What follows ``after`` once there is something, or that there is nothing after ``wait_s``."""

    zombie_id: UUID
    after: int
    wait_s: float


class FramesRead(msgspec.Struct, Message[None], frozen=True):
    """What the store has after the last that was seen of an agent.

    Numbers up to ``expected`` were known to be there.
    """

    zombie_id: UUID
    after: int
    expected: int
    frames: tuple[Frame, ...]


class AwaitOver(msgspec.Struct, Message[None], frozen=True):
    """One reader has waited long enough."""

    zombie_id: UUID
    ticket: int


class Look(msgspec.Struct, Message[None], frozen=True):
    """Ask the database for what was written before a reader came, or by other nodes."""
