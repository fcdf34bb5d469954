"""What can be asked of a gate."""

import msgspec

from sexton_actors.protocol.attributed import Attributed
from sexton_actors.refusal import Refusal
from sexton_engine import Message
from sexton_storage.records.gates import Gate


class Resolved(msgspec.Struct, frozen=True):
    gate: Gate


class Resolve(Attributed, Message[Resolved | Refusal], frozen=True):
    """Approve or deny; ``by`` is ``user:<id>``, ``api:<id>`` or ``slack:<id>``; the first answer stands."""

    approve: bool
    by: str
    reason: str = ""
    own: frozenset[str] | None = None
    """What somebody below an operator writes and starts runs as: they approve nothing of their own.

    ``user:<id>`` and ``api:<id>`` of the person and their keys, and ``steer:<name>`` of each.
    """
    by_token: bool = False
    """With the agent's approval token, whoever holds it."""


class Await(msgspec.Struct, Message[Gate | Refusal], frozen=True):
    """The gate once it is resolved, or as it is after ``wait_ms`` (0..30,000)."""

    wait_ms: int


class Opened(msgspec.Struct, Message[None], frozen=True):
    """It was just made: watch its time-out."""

    gate: Gate


class Expire(msgspec.Struct, Message[None], frozen=True):
    """Look whether the time is up, and if so deny it."""


class Refresh(msgspec.Struct, Message[None], frozen=True):
    """It was resolved elsewhere (a kill, another node): load it and tell those who wait."""


class Close(msgspec.Struct, Message[None], frozen=True):
    """The run is over without the gate: nobody needs the answer any more."""


class AwaitOver(msgspec.Struct, Message[None], frozen=True):
    """One who waits has waited long enough: answer with what there is."""

    ticket: int
