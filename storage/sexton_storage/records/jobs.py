"""Bulk jobs: one thing done to many events, a page at a time, over restarts and on whichever node."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Protocol
from uuid import UUID

import msgspec

from sexton_storage.paging import Page
from sexton_storage.records.event_filters import EventFilter
from sexton_storage.records.events import Event


class JobKind(StrEnum):
    REPLAY = "replay"
    CANCEL = "cancel"
    SHADOW = "shadow"


class JobStatus(StrEnum):
    WAITING = "waiting"
    RUNNING = "running"
    PAUSED = "paused"
    STOPPING = "stopping"
    STOPPED = "stopped"
    DONE = "done"
    FAILED = "failed"


OVER = frozenset({JobStatus.STOPPED, JobStatus.DONE, JobStatus.FAILED})


class Job(msgspec.Struct, frozen=True, gc=False):
    id: UUID
    tenant_id: UUID
    workspace_id: UUID
    kind: JobKind
    status: JobStatus
    version: int
    filter: str
    """As it was written; see ``sexton_storage.event_filter``."""
    created_by: str
    """``user:<id>`` or ``api:<id>``."""
    created_by_name: str
    created_at: int
    updated_at: int
    until_arrival: int
    """The number of the newest event when the job was made; later ones are none of its."""
    total: int
    """The events that fitted then."""
    failure_id: UUID | None = None
    """The group of failures whose events these are, if it was made for one."""
    request_json: str | None = None
    """What a replay is asked instead of what the event was, or what is merged into that."""
    merges: bool = False
    asked_version: int | None = None
    """The number of the version that new events of a replay ask for, each of its own agent."""
    rate_limit: int = 0
    """Events a second at most; 0: as fast as the work of others allows."""
    done: int = 0
    skipped: int = 0
    """Those that were as they should be when their turn came, or gone."""
    failed: int = 0
    refused: Mapping[str, int] = msgspec.field(default_factory=dict)
    """How many of the failed ones each code refused."""
    rate: int = 0
    """Events a second with the last page."""
    after_at: int = -1
    after_arrival: int = 0
    """The last event that was taken into a page."""
    page: tuple[UUID, ...] = ()
    """Events in hand: kept before anything is done about them, so that whoever goes on knows them."""
    page_agents: tuple[UUID, ...] = ()
    """The agent of each."""
    holder: UUID | None = None
    """The actor that works on it now."""
    held_until: int = 0
    """Nobody else begins before."""
    waits_for: str | None = None
    """Why it does not go on at the moment."""
    started_at: int | None = None
    ended_at: int | None = None
    detail: str | None = None
    """Why it failed, or ended early."""
    budget_nanos: int | None = None
    """What the runs of a shadow may cost together."""
    events_limit: int | None = None
    """How many events a shadow repeats at most."""


class Selection(msgspec.Struct, frozen=True):
    """The events that a job of a kind is about."""

    workspace_id: UUID
    kind: JobKind
    """A cancellation is about events that are not over, any other about those that are and were no shadow."""
    filter: EventFilter
    failure_id: UUID | None = None


class Survey(msgspec.Struct, frozen=True):
    """What a job would be about now."""

    total: int
    """No more than ``EVENTS_COUNTED`` are counted."""
    until_arrival: int
    sample: tuple[UUID, ...]
    """Some of them, the oldest first."""


class Candidate(msgspec.Struct, frozen=True, gc=False):
    event_id: UUID
    zombie_id: UUID
    created_at: int
    arrival: int
    request_bytes: int


class ShadowPair(msgspec.Struct, frozen=True, gc=False):
    """An event that was run without effects, beside the one that it repeats."""

    shadow: Event
    original: Event | None
    """None: it was deleted."""
    tools: Mapping[str, int]
    """How often each tool was called; of frames that are still kept."""
    original_tools: Mapping[str, int]
    would_ask: tuple[str, ...] = ()
    """What people would have been asked for: tool and action."""


class JobStore(Protocol):
    async def add(self, job: Job, *, limit: int) -> bool:
        """Keep a new one; False where ``limit`` of its workspace are not over. One that is there stays."""
        ...

    async def load(self, job_id: UUID) -> Job | None: ...
    async def save(self, job: Job) -> None:
        """Keep a change; raises Conflict unless the kept version is the one before."""
        ...

    async def list(self, workspace_id: UUID, *, limit: int, before: Page | None = None) -> Sequence[Job]:
        """Newest first, without the events in hand."""
        ...

    async def due(self, *, now: int, limit: int) -> Sequence[UUID]:
        """Jobs that nobody works on: of each workspace one that runs or is to stop, else its oldest."""
        ...

    async def survey(self, selection: Selection, *, sample: int) -> Survey: ...
    async def page(
        self, selection: Selection, *, after: tuple[int, int], until_arrival: int, limit: int
    ) -> Sequence[Candidate]:
        """The oldest events after this time and number of arrival."""
        ...

    async def spent(self, job_id: UUID) -> int:
        """Nanos that the events of a shadow have been charged so far."""
        ...

    async def shadows(self, job_id: UUID, *, limit: int, after: Page | None = None) -> Sequence[ShadowPair]:
        """The events of a shadow, the oldest first, beside those that they repeat."""
        ...

    async def known(self, event_ids: Sequence[UUID]) -> frozenset[UUID]:
        """Give the ids of those events that exist."""
        ...
