"""Keeps count of the messages nobody will handle, and the latest of them to look at."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

__all__ = ["DEAD_LETTER_RING", "DeadLetter", "DeadLetters", "Reason"]

DEAD_LETTER_RING: Final = 256
"""How many dead letters are kept to look at; older ones are only counted."""


class Reason(Enum):
    """Why a message or a reply died."""

    REFUSED = "refused"
    """The mailbox was full and its policy is to refuse."""
    DROPPED = "dropped"
    """The oldest of a full mailbox made room for a new one."""
    EXPIRED = "expired"
    """The asker's deadline passed before the message was handled."""
    LATE_REPLY = "late_reply"
    """The reply came when nobody waited for it any more."""
    LATE_FINISH = "late_finish"
    """A hold was finished that was over: finished before, or its actor has crashed or ended."""
    UNAVAILABLE = "unavailable"
    """A transparent exception met a message that nobody awaits a reply to."""
    CRASHED = "crashed"
    """The message crashed the actor for the last time."""
    GIVEN_UP = "given_up"
    """The message waited in the mailbox of an actor that was given up."""
    STOPPED = "stopped"
    """The actor was stopped before it handled the message, or the message came after."""


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """One message that died; ``at`` is the engine's monotonic clock, in seconds."""

    kind: str
    key: Hashable
    message: Any
    reason: Reason
    at: float


class DeadLetters:
    """All dead letters of one system: counted by kind and reason, the latest kept in a ring."""

    __slots__ = ("_counts", "_ring")

    def __init__(self, ring: int = DEAD_LETTER_RING) -> None:
        self._counts: Counter[tuple[str, Reason]] = Counter()
        self._ring: deque[DeadLetter] = deque(maxlen=ring)

    def __repr__(self) -> str:
        return f"<DeadLetters {self.total()}, {len(self._ring)} kept>"

    def add(self, letter: DeadLetter) -> None:
        """Count the letter, and keep it until newer ones push it out."""
        self._counts[letter.kind, letter.reason] += 1
        self._ring.append(letter)

    def latest(self) -> tuple[DeadLetter, ...]:
        """The letters in the ring, oldest first."""
        return tuple(self._ring)

    def count(self, reason: Reason, kind: str | None = None) -> int:
        """How many died for this reason, of one kind or of all."""
        if kind is not None:
            return self._counts[kind, reason]
        return sum(count for (_, why), count in self._counts.items() if why is reason)

    def by_reason(self, kind: str) -> Mapping[Reason, int]:
        """The counts of one kind; reasons that never occurred are absent."""
        return {why: count for (of, why), count in self._counts.items() if of == kind}

    def total(self) -> int:
        """How many died in all."""
        return sum(self._counts.values())
