"""What is told of the actors of one process: its tree, one actor, and what was done with one."""

from collections.abc import Mapping
from uuid import UUID

from sexton_engine import TreeNode
from sexton_http.bodies.shapes import Shape
from sexton_http.identity.context import SeenNode


class MessageCount(Shape):
    message: str
    count: int
    seconds: float
    """All of them together, from the beginning of their handlers to the end."""


class ActorKind(Shape):
    """What all actors of a kind have done since this process began."""

    kind: str
    live: int
    mailbox_depth: int
    mailbox_age_s: float
    messages: list[MessageCount]
    activations: int
    passivations: int
    crashes: int
    restarts: int
    escalations: int
    dead_letters: Mapping[str, int]
    """By reason."""


class ActorTimer(Shape):
    name: str
    due_in_s: float


class ActorItem(Shape):
    kind: str
    key: str
    """Empty for an actor that exists once."""
    state: str
    mailbox_depth: int
    mailbox_age_s: float
    """How long the oldest message waits."""
    mailbox_capacity: int
    mailbox_peak: int
    handling: str | None
    """The type of the message that it works on now."""
    handling_s: float
    """Since when that was sent."""
    timers: list[ActorTimer]
    tasks: int
    replies_owed: int
    """Askers that wait for an answer which the actor has put off."""
    restarts: int
    """Those within the period of its intensity: one too many, and it is given up."""
    can_stop: bool
    """False for an actor that exists once: the server needs it, so it can only be restarted."""


class CrashItem(Shape):
    kind: str
    key: str
    message: str | None
    """The type of the message that it worked on."""
    error: str
    traceback: str
    age_s: float


class DeadLetterItem(Shape):
    kind: str
    key: str
    message: str
    """The message's type."""
    reason: str
    age_s: float


class RecordedMessage(Shape):
    message: str
    """The message's type."""
    age_s: float
    """Since when its handler was called."""
    waited_s: float
    """In the mailbox."""
    took_s: float | None
    """Null while its handler is at it."""
    has_failed: bool
    contents: str | None
    """What is in it, where that was asked for; what may be a secret is left out."""


class ActorTree(Shape):
    """The supervision tree of one process."""

    node: UUID
    """The server that it is from; its workers are one node together."""
    version: str
    host: str
    worker: int | None
    """The worker of the server; null where it has one process only."""
    is_cut: bool
    """Another node's answer was too long: each list shows only its first entries."""
    nodes: list[SeenNode]
    """The servers of this database that were heard within a day, the one that was asked first."""
    workers: list[int]
    """The node's workers that serve, each with actors of its own."""
    tree: TreeNode
    kinds: list[ActorKind]
    actors: list[ActorItem]
    """Actors of the kind that was asked for, those with the most mail first."""
    crashes: list[CrashItem]
    dead_letters: list[DeadLetterItem]


class ActorView(Shape):
    """One actor, where it is awake."""

    node: UUID
    """The server that it is from; its workers are one node together."""
    version: str
    host: str
    worker: int | None
    is_cut: bool
    """Another node's answer was too long: each list shows only its first entries."""
    actor: ActorItem
    messages: list[MessageCount]
    """What all actors of its kind have handled."""
    crashes: list[CrashItem]
    dead_letters: list[DeadLetterItem]


class MessageList(Shape):
    node: UUID
    """The server that it is from; its workers are one node together."""
    version: str
    host: str
    worker: int | None
    is_cut: bool
    """Another node's answer was too long: each list shows only its first entries."""
    recorded_for_s: float
    """Ask again within this time, and the recording goes on."""
    items: list[RecordedMessage]


class ActorDone(Shape):
    """The actor as it was before."""

    node: UUID
    """The server that it is from; its workers are one node together."""
    version: str
    host: str
    worker: int | None
    is_cut: bool
    """Another node's answer was too long: each list shows only its first entries."""
    actor: ActorItem
