"""Decides what an activation does next, from its phase and from what is requested of it."""

from __future__ import annotations

from enum import Enum, IntEnum
from types import MappingProxyType
from typing import Final

__all__ = ["AWAKE", "MAY_FINISH", "NO_REQUEST", "OVER", "SUSPENDED", "Move", "Phase", "Request", "next_move"]


class Phase(Enum):
    """Where an activation is in its life."""

    ASLEEP = "asleep"
    """There is no instance; the next turn makes one."""
    STARTING = "starting"
    AWAKE = "awake"
    STOPPING = "stopping"
    SUSPENDED = "suspended"
    """There is no instance; mail waits until the supervisor has decided."""
    OVER = "over"


class Request(IntEnum):
    """What is requested of an activation besides its messages; a higher one overrides a lower one."""

    NONE = 0
    PASSIVATE = 1
    SUSPEND = 2
    """Stop, but keep the mail: a sibling's crash restarts this one too."""
    STOP = 3
    FAIL = 4
    """A child task crashed: crash as well."""
    KILL = 5
    KILL_KEEPING_MAIL = 6


# For what every message passes: in Python 3.11 an enum finds its members by a call.
AWAKE: Final = Phase.AWAKE
OVER: Final = Phase.OVER
SUSPENDED: Final = Phase.SUSPENDED
NO_REQUEST: Final = Request.NONE
MAY_FINISH: Final = Request.STOP
"""The highest request that lets what is under way come to its end."""


class Move(Enum):
    """What a worker does with an activation before it looks at the mail."""

    HANDLE = "handle messages"
    START = "start"
    ASK_TO_SLEEP = "sleep, if idle"
    """Ask whether it may sleep; if so run ``on_stop`` and let go of the instance, else handle messages."""
    STOP = "run on_stop, let go"
    LET_GO = "let go"
    """Let go of the instance without ``on_stop``."""
    CRASH = "crash"
    WAIT = "wait"
    """There is nothing to do until the supervisor has decided, or the step under way is done."""


def next_move(phase: Phase, request: Request) -> Move:
    """Decide. ``docs/reference/runtime-semantics.md`` shows all answers in one table.

    >>> next_move(Phase.AWAKE, Request.NONE), next_move(Phase.ASLEEP, Request.NONE)
    (<Move.HANDLE: 'handle messages'>, <Move.START: 'start'>)
    >>> next_move(Phase.ASLEEP, Request.STOP)  # nothing has been started, so there is nothing to stop
    <Move.LET_GO: 'let go'>
    """
    if phase is Phase.OVER:
        return Move.WAIT
    match request:
        case Request.KILL | Request.KILL_KEEPING_MAIL:
            return Move.LET_GO
        case Request.FAIL:
            return Move.CRASH
        case Request.STOP | Request.SUSPEND:
            return Move.STOP if phase is Phase.AWAKE else Move.LET_GO
        case Request.PASSIVATE:
            return Move.ASK_TO_SLEEP
        case Request.NONE:
            return _BY_PHASE[phase]


_BY_PHASE: Final = MappingProxyType(
    {
        Phase.ASLEEP: Move.START,
        Phase.STARTING: Move.WAIT,
        Phase.AWAKE: Move.HANDLE,
        Phase.STOPPING: Move.WAIT,
        Phase.SUSPENDED: Move.WAIT,
    }
)
