"""What the dispatcher is told and asked."""

from uuid import UUID

import msgspec
from sexton_engine import Message, ReplyPort
from sexton_storage.records import ReadyAgent

from sexton_actors.queue.messages import Grant


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
    """A runner waits for up to ``max_leases`` leases; ``reply`` gets a tuple of Grant, empty after ``wait_s``."""

    runner_id: UUID
    labels: frozenset[str]
    unsandboxed: bool
    max_leases: int
    wait_s: float
    reply: ReplyPort[tuple[Grant, ...]]


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
