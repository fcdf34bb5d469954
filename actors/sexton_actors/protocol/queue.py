"""What can be asked of an agent's queue."""

from collections.abc import Callable
from typing import Any, Protocol
from uuid import UUID

import msgspec

from sexton_actors.manifest.model import Manifest
from sexton_actors.protocol.attributed import Attributed
from sexton_actors.providers import ProviderChoice
from sexton_actors.refusal import Refusal
from sexton_engine import Message
from sexton_storage.records.events import Event
from sexton_storage.records.leases import Lease
from sexton_storage.writes import ClaimEvent, Exhausted, NothingToClaim


class EventQueued(msgspec.Struct, Message[None], frozen=True):
    """An event of this agent was kept at ``at``, or (None) one came back, and may be claimable."""

    at: int | None = None


class FreedElsewhere(msgspec.Struct, Message[None], frozen=True):
    """A lease of this agent that may have been granted here has ended on another node."""


class NotKnownReady(msgspec.Struct, Message[None], frozen=True):
    """The dispatcher does not know this agent for ready any more: look again."""


class ComingUp(msgspec.Struct, Message[None], frozen=True):
    """The agent is the next to be claimed, as it looks now: have its record at hand."""


class AgentChanged(msgspec.Struct, Message[None], frozen=True):
    """The agent's status or configuration changed: look again whether it is ready."""


class Grant(msgspec.Struct, frozen=True):
    """A fresh lease with all that its runner is told."""

    event: Event
    lease: Lease
    manifest: Manifest
    provider: ProviderChoice | None = None
    """The model that the run is to use; None for a run without a model, or where no model is set up."""
    endowed: bool = True
    """Whether the agent had grants or memories when it was leased."""
    unlent: tuple[str, ...] = ()
    """Credentials of the manifest that the run goes without."""
    fallbacks: tuple[ProviderChoice, ...] = ()
    """The models that are asked when the first is busy, in this order."""


ClaimOutcome = Grant | NothingToClaim | Exhausted


class Part(Protocol):
    """What one claim has of those that one poll found agents for: they are written together."""

    def submit(self, write: ClaimEvent, done: Callable[[Any], None]) -> bool:
        """As ``Journal.submit``; False when the part was used already."""
        ...

    def drop(self) -> None:
        """There is nothing to write: the others need not wait."""
        ...


class Claim(msgspec.Struct, Message[None], frozen=True):
    """Give the oldest received event to this runner; the dispatcher is told what came of it."""

    runner_id: UUID
    offer_id: int
    part: Part | None = None
    """None: it is the only one of its poll."""


class LeaseEnded(msgspec.Struct, Message[None], frozen=True):
    """The agent is free; ``next_event_at`` is when its oldest waiting event came, None when none waits."""

    next_event_at: int | None
    agent_version: int | None = None
    """The version that the agent's record had when the lease ended."""
    at: int = 0
    """When that was at the earliest."""


class Cancelling(msgspec.Struct, frozen=True):
    """The event ends, or has ended already."""

    event_id: UUID
    status: str
    """``cancelled``, or ``cancelling`` while its runner is being told."""


class Cancel(Attributed, Message[Cancelling | Refusal], frozen=True):
    """End an event that is not over; ``by`` is ``user:<id>`` or ``api:<id>``."""

    event_id: UUID
    by: str


class CancelMany(msgspec.Struct, Message[tuple[Cancelling | Refusal, ...]], frozen=True):
    """As ``Cancel``, for several events; the replies are in their order."""

    event_ids: tuple[UUID, ...]
    by: str


class SettleClaim(msgspec.Struct, Message[None], frozen=True):
    """The database went away while this lease was being granted: see whether it was, for nobody has it."""

    lease_id: UUID
