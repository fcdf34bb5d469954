"""What can be seen of a running system, as frozen records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["KindStatistics", "MessageStatistics", "SystemStatistics", "TreeNode"]


@dataclass(frozen=True, slots=True)
class MessageStatistics:
    """How often one type of message was handled, and how long that took in all, waiting included."""

    message: str
    count: int
    seconds: float


@dataclass(frozen=True, slots=True)
class KindStatistics:
    """One kind of actor. Ages and times are in seconds; the counts are since the start of the system."""

    kind: str
    live: int
    """Activations in memory now."""
    mailbox_depth: int
    """Messages waiting now, in all mailboxes of the kind."""
    mailbox_age_s: float
    """How long the oldest of them has waited."""
    messages: tuple[MessageStatistics, ...]
    activations: int
    passivations: int
    crashes: int
    restarts: int
    escalations: int
    """Crashes that were one too many: the key was given up, or the supervisor escalated."""
    dead_letters: Mapping[str, int]
    """By reason."""


@dataclass(frozen=True, slots=True)
class SystemStatistics:
    """The whole system at one moment."""

    kinds: tuple[KindStatistics, ...]
    loop_lag_s: float
    """How late the latest probe of the event loop ran."""
    loop_lag_peak_s: float
    """The latest of the last minute."""
    deadlines: int
    """Deadlines armed: asks that wait, timers, actors that may be put to sleep."""
    workers: int
    """Tasks that run actors, those that wait for work included."""
    workers_idle: int

    def kind(self, name: str) -> KindStatistics:
        """The statistics of one kind; ``KeyError`` if there is none."""
        for kind in self.kinds:
            if kind.kind == name:
                return kind
        raise KeyError(name)


@dataclass(frozen=True, slots=True)
class TreeNode:
    """One node of the live supervision tree."""

    name: str
    role: str
    """``supervisor``, ``actor`` or ``family``."""
    state: str
    restart: str
    strategy: str | None
    restarts: int
    live: int
    mailbox_depth: int
    mailbox_age_s: float
    children: tuple[TreeNode, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """The node and all below it, ready for JSON."""
        return asdict(self)
