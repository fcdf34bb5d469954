"""What an operator may look at in a running system, down to one actor, and do to it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence

from sexton_engine.mail.dead_letters import DeadLetter
from sexton_engine.statistics import ActorStatistics, CrashRecord, HandledMessage

__all__ = ["Inspection"]


class Inspection(ABC):
    """Costs nothing until somebody looks. Methods that name a kind raise ``UnknownKind``."""

    __slots__ = ()

    @abstractmethod
    def now(self) -> float:
        """The engine's monotonic clock, in seconds."""

    @abstractmethod
    def actors(self, kind: str, *, limit: int) -> Sequence[ActorStatistics]:
        """The activations of a kind: those with the most mail first, then those that work."""

    @abstractmethod
    def actor(self, kind: str, key: Hashable) -> ActorStatistics | None:
        """One activation; ``None`` if there is none."""

    @abstractmethod
    def crashes(self, kind: str | None = None, key: Hashable | None = None) -> Sequence[CrashRecord]:
        """The latest crashes, newest first: all, those of a kind, or those of one address."""

    @abstractmethod
    def dead_letters(self, kind: str | None = None, key: Hashable | None = None) -> Sequence[DeadLetter]:
        """The latest dead letters, newest first, chosen likewise."""

    @abstractmethod
    def record(self, kind: str, key: Hashable, for_s: float) -> Sequence[HandledMessage]:
        """The last messages that an address has handled, newest first.

        The first look begins the recording, and each look keeps it going for another ``for_s`` seconds, over
        restarts too. Then it is forgotten, or when many others were looked at since.
        """

    @abstractmethod
    async def restart(self, kind: str, key: Hashable) -> bool:
        """End an activation's instance and start another one with the same mail; ``False`` if none is awake.

        It ends after the message being handled, or is killed after its shutdown budget; then that message
        comes once more. One that exists once takes down with it whom its supervisor's strategy says. It is
        counted as a restart, but not against the intensity.
        """
