"""What nodes tell one another, so that none has to wait for its next look at the database.

A signal says only where to look. One that is lost, late, repeated or made up changes when something is seen,
never what is true.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum
from typing import Final, NamedTuple, Protocol
from uuid import UUID

import msgspec

PAYLOAD_BYTES: Final = 7_900
"""The bound of one notification; PostgreSQL takes 7,999."""
_SIGNALS_OF_ONE: Final = 80


class Topic(StrEnum):
    """What has happened; on the wire it is one letter."""

    READY = "r"
    """This agent waits for a runner, and has found none where it was woken."""
    FREE = "f"
    """A lease of this agent has ended on another node than it was granted on."""
    FRAMES = "s"
    """This agent's stream has frames up to ``number``."""
    CANCEL = "c"
    """This runner is to stop a lease, which is ``about``."""
    GATE = "g"
    """This gate has its answer."""
    AGENT = "a"
    """This agent's record was changed."""
    RUNNER = "u"
    """This runner's standing was changed."""
    WORKSPACE = "w"
    """This workspace was paused, or goes on."""
    TENANT = "t"
    """This tenant was credited, or has another plan."""
    ACCESS = "x"
    """What this person, key or sign-in may do was changed."""
    ASKED = "q"
    """This node was asked a question, which is ``about``."""
    ANSWERED = "p"
    """This node's question has its answer; ``about`` says which."""


class Signal(msgspec.Struct, frozen=True, gc=False, array_like=True, omit_defaults=True):
    topic: Topic
    id: UUID
    number: int = 0
    about: UUID | None = None


Hear = Callable[[Sequence[Signal]], None]


class Signals(Protocol):
    """The way to the other nodes."""

    def send(self, *signals: Signal) -> None:
        """Tell the other nodes, soon and perhaps; what concerns a write, after its commit. Never waits."""
        ...

    def listen(self, hear: Hear) -> None:
        """Call ``hear`` in the trio loop with what other nodes tell, never with what this one has told."""
        ...


class _Payload(msgspec.Struct, array_like=True):
    node: UUID
    signals: list[Signal]


class Heard(NamedTuple):
    """One notification, read."""

    node: UUID
    signals: Sequence[Signal]


def merged(signals: Iterable[Signal]) -> Sequence[Signal]:
    """Each thing once, with the greatest of its numbers.

    >>> [s.number for s in merged([Signal(Topic.FRAMES, UUID(int=1), n) for n in (3, 5, 4)])]
    [5]
    """
    kept: dict[tuple[Topic, UUID, UUID | None], Signal] = {}
    for signal in signals:
        key = (signal.topic, signal.id, signal.about)
        before = kept.get(key)
        if before is None or before.number < signal.number:
            kept[key] = signal
    return list(kept.values())


def pack(node: UUID, signals: Sequence[Signal]) -> Iterator[str]:
    """Spell signals as payloads that each fit into a notification; without any, one that says who is there.

    >>> payload = next(pack(UUID(int=7), [Signal(Topic.GATE, UUID(int=1))]))
    >>> unpack(payload).signals[0].topic.name
    'GATE'
    >>> [len(unpack(p).signals) for p in pack(UUID(int=7), [Signal(Topic.GATE, UUID(int=1))] * 100)]
    [80, 20]
    """
    for first in range(0, max(1, len(signals)), _SIGNALS_OF_ONE):
        yield msgspec.json.encode(_Payload(node, list(signals[first : first + _SIGNALS_OF_ONE]))).decode()


def unpack(payload: str) -> Heard | None:
    """None for what is no payload of ours: whoever may connect to the database may notify.

    >>> unpack("hello") is None
    True
    """
    try:
        read = msgspec.json.decode(payload, type=_Payload)
    except msgspec.MsgspecError:
        return None
    return Heard(read.node, read.signals)
