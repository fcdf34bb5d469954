"""What the hub is told and asked."""

from uuid import UUID

import msgspec

from sexton_engine import Message


class FramesWritten(msgspec.Struct, Message[None], frozen=True):
    """Agents and their newest frame numbers, after a commit."""

    heads: tuple[tuple[UUID, int], ...]


GONE = -1
"""The answer to those who wait for frames of an agent that was deleted."""


class AgentGone(msgspec.Struct, Message[None], frozen=True):
    """The agent was deleted: nobody need wait for it."""

    zombie_id: UUID


class AwaitFrames(msgspec.Struct, Message[int], frozen=True):
    """The newest frame number once it is above ``after``, or what it is known to be after ``wait_s``.

    ``GONE`` when there is no such agent any more.
    """

    zombie_id: UUID
    after: int
    wait_s: float


class AwaitOver(msgspec.Struct, Message[None], frozen=True):
    """One reader has waited long enough."""

    zombie_id: UUID
    ticket: int


class Look(msgspec.Struct, Message[None], frozen=True):
    """Ask the database for what was written before a reader came, or by other nodes."""
