"""What the dispatcher is told and asked."""

from uuid import UUID

import msgspec

from sexton_actors.protocol.queue import ClaimOutcome
from sexton_actors.refusal import Refusal
from sexton_engine import Message, ReplyPort
from sexton_storage.records.events import ReadyAgent
from sexton_storage.scopes import PLATFORM, Scope


class AgentReady(msgspec.Struct, Message[None], frozen=True):
    """An agent has work and nothing holds it back."""

    agent: ReadyAgent


class AgentNotReady(msgspec.Struct, Message[None], frozen=True):
    """It was stopped, killed or drained of work."""

    zombie_id: UUID


class TenantCredited(msgspec.Struct, Message[None], frozen=True):
    """The events that waited for money are back: look for them now."""

    tenant_id: UUID


class WorkspaceChanged(msgspec.Struct, Message[None], frozen=True):
    """It was paused, or goes on: look which agents are ready now."""

    workspace_id: UUID


class StillReady(msgspec.Struct, Message[None], frozen=True):
    """An agent that was told to be ready has more work; its queue is told if that is not known here."""

    zombie_id: UUID


class ReadyElsewhere(msgspec.Struct, Message[None], frozen=True):
    """These agents found no runner on the node where they were woken."""

    zombie_ids: tuple[UUID, ...]


class LookedUp(msgspec.Struct, Message[None], frozen=True):
    """Look the ready ones up in the database."""

    agents: tuple[ReadyAgent, ...]


class Offer(msgspec.Struct, Message[None], frozen=True):
    """A runner waits for up to ``max_leases`` leases; ``reply`` gets a ``Leases``, empty after ``wait_s``."""

    runner_id: UUID
    labels: frozenset[str]
    unsandboxed: bool
    max_leases: int
    wait_s: float
    reply: ReplyPort
    scope: Scope = PLATFORM
    """The agents it may run: everybody's, one tenant's or one workspace's."""


class ClaimSettled(msgspec.Struct, Message[None], frozen=True):
    """A queue's answer to the claim that was made for an offer."""

    offer_id: int
    zombie_id: UUID
    outcome: ClaimOutcome


class OfferOver(msgspec.Struct, Message[None], frozen=True):
    """A runner has waited long enough."""

    offer_id: int


class ClaimsOverdue(msgspec.Struct, Message[None], frozen=True):
    """Queues that were asked to claim for this offer have not answered: it goes on without them."""

    offer_id: int


class RestOver(msgspec.Struct, Message[None], frozen=True):
    """Agents whose queues did not answer may be matched again."""


class Rescan(msgspec.Struct, Message[None], frozen=True):
    """Look in the database for what other nodes, or a restart, left ready."""


class Scanned(msgspec.Struct, Message[None], frozen=True):
    """A page of what the database holds ready; ``last`` of a walk through all of it."""

    agents: tuple[ReadyAgent, ...]
    last: bool


class Withdraw(msgspec.Struct, Message[None], frozen=True):
    """The runner is not to be given anything more: its open offers end now, with the refusal or empty."""

    runner_id: UUID
    refusal: Refusal | None = None


class TellCancelled(msgspec.Struct, Message[None], frozen=True):
    """These leases of the runner are to be stopped: its open offers end now, and say so."""

    runner_id: UUID
    lease_ids: tuple[UUID, ...]


class QueueView(msgspec.Struct, frozen=True):
    """What waits on this node: ready agents by the labels they need, and the offers that are open."""

    ready_agents: int
    oldest_event_at: int | None
    by_tags: dict[tuple[str, ...], int]
    waiting_offers: int


class ViewQueue(msgspec.Struct, Message[QueueView], frozen=True):
    pass
