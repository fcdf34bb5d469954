"""The few ways in which the engine itself can fail a caller."""

from __future__ import annotations

__all__ = [
    "ActorCrashed",
    "ActorStopped",
    "AskTimeout",
    "EngineError",
    "EngineFault",
    "MailboxFull",
    "UnknownKind",
]


class EngineError(Exception):
    """Root of every error that the engine raises."""


class MailboxFull(EngineError):
    """The mailbox has no room, and its policy is not to wait; the message was not taken in."""


class AskTimeout(EngineError):
    """No reply came before the deadline; whether the message was handled is unknown."""


class ActorStopped(EngineError):
    """The actor has ended for good, or ended before it handled the message."""


class ActorCrashed(EngineError):
    """The actor crashed on this message for the last time, or was given up with the message waiting."""


class UnknownKind(EngineError):
    """No actor of this kind stands in the supervision tree."""


class EngineFault(EngineError):
    """The root supervisor gave up; ``__cause__`` is the crash that was one too many."""
