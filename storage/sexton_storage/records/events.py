"""Events: what an agent is asked to do, and what became of it."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Final, Protocol
from uuid import UUID

import msgspec

from sexton_storage.documents import Json
from sexton_storage.paging import Page
from sexton_storage.records.event_filters import LOOKED_THROUGH, EventFilter


class EventStatus(StrEnum):
    RECEIVED = "received"
    WAITING_APPROVAL = "waiting_approval"
    RUNNING = "running"
    PROCESSED = "processed"
    AGENT_ERROR = "agent_error"
    GATE_BLOCKED = "gate_blocked"
    CANCELLED = "cancelled"
    DEAD_LETTERED = "dead_lettered"


class Asked(msgspec.Struct, frozen=True, gc=False):
    """The version of its agent that an event asks for."""

    version: int
    """The number that it has among the agent's versions."""
    trial_id: UUID | None = None
    """The trial that the event is on the candidate's side of; None: a person has asked for the version."""


class Event(msgspec.Struct, frozen=True, gc=False):
    id: UUID
    zombie_id: UUID
    workspace_id: UUID
    tenant_id: UUID
    actor: str
    event_type: str
    status: EventStatus
    request_json: str
    created_at: int
    updated_at: int
    source_event_id: str | None = None
    resumes_event_id: UUID | None = None
    traceparent: str | None = None
    attempts: int = 0
    """Leases that counted: a released lease gives its attempt back."""
    first_leased_at: int | None = None
    parked_ms: int = 0
    """Time between leases spent parked at a gate; moves the ceiling."""
    parked_at: int | None = None
    checkpoint: Json | None = None
    response_text: str | None = None
    evidence: Json | None = None
    input_tokens: int = 0
    cached_input_tokens: int = 0
    output_tokens: int = 0
    wall_ms: int = 0
    charged_nanos: int = 0
    failure_label: str | None = None
    error_code: str | None = None
    completed_at: int | None = None
    cache_write_tokens: int = 0
    retry_at: int | None = None
    """Until then the event waits, and those behind it: its run found every model busy."""
    asked_version: int | None = None
    """The number of the agent's version that it is to run under; None: the one that is active then."""
    ran_version: int | None = None
    """The number of the version that its newest lease was given; None: it was never leased."""
    trial_id: UUID | None = None
    """The trial of a version that it counts in; with ``asked_version`` it is on the candidate's side."""
    shadow_job: UUID | None = None
    """The bulk job that has it run without effects; None: it is an event as any other."""

    @property
    def asked(self) -> Asked | None:
        """The version that it asks for, and why; None: whichever is active."""
        return None if self.asked_version is None else Asked(self.asked_version, self.trial_id)

    @property
    def tokens(self) -> int:
        """All kinds together."""
        return self.input_tokens + self.cached_input_tokens + self.cache_write_tokens + self.output_tokens


WHOLE_BYTES: Final = 4096
"""What a list shows of an event whole: a request, an answer or evidence up to this length."""


class ListedEvent(Event, frozen=True, gc=False):
    """An event as lists have it: without its checkpoint, and without each of its texts that is long.

    Of a request that is left out, ``request_json`` is ``null``.
    """

    request_bytes: int = 0
    response_bytes: int | None = None
    """None: there is no answer."""
    evidence_bytes: int | None = None
    zombie_name: str = ""

    @property
    def is_cut(self) -> bool:
        """Whether something was left out."""
        return (
            (self.request_json == "null" and self.request_bytes != len("null"))
            or (self.response_text is None and self.response_bytes is not None)
            or (self.evidence is None and self.evidence_bytes is not None)
        )


class Found(msgspec.Struct, frozen=True):
    """What a search has found, and how far it came."""

    events: Sequence[ListedEvent]
    stopped_at: Page | None
    """The last event that it looked at; None: it looked at all there are, or has found as many as it may."""


class EventWaits(msgspec.Struct, frozen=True, gc=False):
    """What there is of an agent's open events."""

    received: bool = False
    blocked: bool = False
    """The event is set aside because credit ran out."""
    approval: bool = False
    """A gate of the event is pending."""
    running: bool = False


class ReadyAgent(msgspec.Struct, frozen=True, gc=False):
    """An agent with work, no live lease and leave to run: what the dispatcher matches."""

    zombie_id: UUID
    workspace_id: UUID
    tenant_id: UUID
    required_tags: tuple[str, ...]
    allows_unsandboxed: bool
    oldest_event_at: int
    last_runner_id: UUID | None


class AgentBacklog(msgspec.Struct, frozen=True, gc=False):
    """What waits for one agent."""

    zombie_id: UUID
    workspace_id: UUID
    waiting: int
    oldest_event_at: int


class EventStore(Protocol):
    async def load(self, event_id: UUID) -> Event | None: ...
    async def load_requests(self, event_ids: Sequence[UUID]) -> Sequence[Event]:
        """Give the events that exist, in no certain order, without answers, evidence and checkpoints."""
        ...

    async def list(
        self,
        workspace_id: UUID,
        *,
        limit: int,
        zombie_id: UUID | None = None,
        before: Page | None = None,
        since: int | None = None,
        actor_glob: str | None = None,
        status: EventStatus | None = None,
        whole_bytes: int = WHOLE_BYTES,
    ) -> Sequence[ListedEvent]:
        """Newest first. ``charged_nanos`` of one that still runs is the sum of its metering rows so far.

        Texts of more than ``whole_bytes`` stay in the database, however many rows there are.
        """
        ...

    async def search(
        self,
        workspace_id: UUID,
        picked: EventFilter,
        *,
        limit: int,
        zombie_id: UUID | None = None,
        before: Page | None = None,
        look_through: int = LOOKED_THROUGH,
    ) -> Found:
        """The events that a filter picks, newest first, as ``list`` gives them.

        It looks through a bounded number of events, and of the bytes that it must read.
        """
        ...

    async def picked_among(self, event_ids: Sequence[UUID], picked: EventFilter) -> frozenset[UUID]:
        """Give the ids of the events among these that the filter picks."""
        ...

    async def seen(
        self, zombie_id: UUID, dedup_key: bytes, body_key: bytes | None, *, now: int
    ) -> UUID | None:
        """The first event of which an ``AppendEvent`` with these keys would be a ``Duplicate``."""
        ...

    async def ready(self, *, after: UUID | None, limit: int) -> Sequence[ReadyAgent]:
        """Agents with a received event, active, unpaused, without a live lease; by id, for a paged walk."""
        ...

    async def ready_agent(self, zombie_id: UUID) -> ReadyAgent | None:
        """The same question for one agent."""
        ...

    async def waits(self, zombie_id: UUID) -> EventWaits: ...
    async def backlog(self) -> Sequence[AgentBacklog]:
        """Each agent with received events, in no certain order."""
        ...
