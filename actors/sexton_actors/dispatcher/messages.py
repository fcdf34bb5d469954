"""What the dispatcher is told and asked."""

from uuid import UUID

import msgspec
from sexton_engine import Message, ReplyPort
from sexton_storage.records import ReadyAgent

from sexton_actors.queue.messages import ClaimOutcome
from sexton_actors.refusal import Refusal
from sexton_actors.runner.messages import Leases


class AgentReady(msgspec.Struct, Message[None], frozen=True):
    """An agent has work and nothing holds it back."""

    agent: ReadyAgent


class AgentNotReady(msgspec.Struct, Message[None], frozen=True):
    """It was stopped, killed or drained of work."""

    zombie_id: UUID


class TenantExhausted(msgspec.Struct, Message[None], frozen=True):
    """Its balance is zero: its agents are not matched until it is credited."""

    tenant_id: UUID


class TenantCredited(msgspec.Struct, Message[None], frozen=True):
    """Look for its agents again."""

    tenant_id: UUID


class Offer(msgspec.Struct, Message[None], frozen=True):
    """A runner waits for up to ``max_leases`` leases; ``reply`` gets them, or none after ``wait_s``."""

    runner_id: UUID
    labels: frozenset[str]
    unsandboxed: bool
    max_leases: int
    wait_s: float
    reply: ReplyPort[Leases | Refusal]


class ClaimSettled(msgspec.Struct, Message[None], frozen=True):
    """A queue's answer to the claim that was made for an offer."""

    offer_id: int
    zombie_id: UUID
    outcome: ClaimOutcome


class OfferOver(msgspec.Struct, Message[None], frozen=True):
    """A runner has waited long enough."""

    offer_id: int


class Rescan(msgspec.Struct, Message[None], frozen=True):
    """Look in the database for what other nodes, or a restart, left ready."""


class Withdraw(msgspec.Struct, Message[None], frozen=True):
    """The runner is not to be given anything more: its waiting offers are answered empty."""

    runner_id: UUID


class QueueView(msgspec.Struct, frozen=True):
    """What waits on this node: ready agents by required tags, and those that no waiting or known runner can serve."""

    ready_agents: int
    oldest_event_at: int | None
    by_tags: dict[tuple[str, ...], int]
    waiting_offers: int


class ViewQueue(msgspec.Struct, Message[QueueView], frozen=True):
    pass
