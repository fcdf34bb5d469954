"""What the scheduler is told."""

import msgspec

from sexton_engine import Message


class Look(msgspec.Struct, Message[None], frozen=True):
    """Ask the database which schedules are due, and which have no plan yet."""


class SchedulesChanged(msgspec.Struct, Message[None], frozen=True):
    """An agent with schedules was installed, changed or woken on this node: look now."""
