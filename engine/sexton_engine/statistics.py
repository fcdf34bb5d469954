"""What can be seen of a running system, as frozen records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

__all__ = [
    "ActorStatistics",
    "CrashRecord",
    "HandledMessage",
    "KindStatistics",
    "MessageStatistics",
    "SystemStatistics",
    "TreeNode",
]


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
class ActorStatistics:
    """One activation. Times are in seconds."""

    kind: str
    key: str
    state: str
    """The phase of its life, as ``awake`` or ``suspended``."""
    mailbox_depth: int
    mailbox_age_s: float
    """How long the oldest message has waited."""
    mailbox_capacity: int
    mailbox_peak: int
    handling: str | None
    """The type of the message that it works on now."""
    handling_s: float
    """Since when that message was sent; 0 when it works on nothing."""
    timers: tuple[tuple[str, float], ...]
    """Each with its name and the seconds until it is due, the next first; no more than the first hundred."""
    tasks: int
    replies_owed: int
    """Replies that it took over and has not given yet."""
    restarts: int
    """Those that count against the intensity of its restarts."""
    is_single: bool
    """Whether its kind exists once; a family has one for each key."""


@dataclass(frozen=True, slots=True)
class CrashRecord:
    """A crash; ``at`` is the engine's monotonic clock, in seconds."""

    kind: str
    key: str
    message: str | None
    """The type of the message that it worked on."""
    error: str
    traceback: str
    at: float


@dataclass(frozen=True, slots=True)
class HandledMessage:
    """One message of a recording. Times are in seconds; ``began_at`` is the engine's monotonic clock."""

    message: Any
    began_at: float
    waited_s: float
    """From when it was sent until its handler was called."""
    took_s: float | None
    """Until the handler returned; None while it has not. What finishes a hold is not counted."""
    has_failed: bool
    """The handler raised."""


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
