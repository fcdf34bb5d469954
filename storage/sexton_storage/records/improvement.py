"""How an agent gets better: what it proposes, how its runs were scored, and what it is told of both."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Protocol
from uuid import UUID

import msgspec

from sexton_storage.paging import Page
from sexton_storage.records.events import EventStatus

DISPLACED_REASON = "DISPLACED: too many newer proposals of this agent wait for a decision"
DISPLACED_BY = "system:displaced"
LAST_DECIDED = 3

TOKENS_A_SCORE = 10
"""The least tokens a score takes; no more scores are read than would fit."""


class ProposalStatus(StrEnum):
    PENDING = "PENDING"
    APPLIED = "APPLIED"
    CONFIG_CHANGED = "CONFIG_CHANGED"
    REJECTED = "REJECTED"


class Proposal(msgspec.Struct, frozen=True, gc=False):
    """A change of its own files that an agent, or a person, proposes; a file that is None stays as it is."""

    id: UUID
    zombie_id: UUID
    workspace_id: UUID
    tenant_id: UUID
    status: ProposalStatus
    title: str
    rationale: str
    diff: str
    """Unified, from the base's files to the proposed ones."""
    base_config_version_id: UUID
    created_by: str
    """``run``, ``user:<id>`` or ``api:<id>``."""
    created_at: int
    source_markdown: str | None = None
    trigger_markdown: str | None = None
    event_id: UUID | None = None
    """The event of the run that made the proposal."""
    config_version_id: UUID | None = None
    """What it became, when it was applied."""
    rejection_reason: str | None = None
    decided_at: int | None = None
    decided_by: str | None = None
    handed_lease_id: UUID | None = None
    """The lease that was last told of its rejection."""
    heard_at: int | None = None
    """When a run that was told of its rejection was processed."""


class Score(msgspec.Struct, frozen=True, gc=False):
    """One finished run; ``created_at`` is when it was settled."""

    event_id: UUID
    zombie_id: UUID
    outcome: EventStatus
    score: float
    attempts: int
    denied_gates: int
    failed_checks: int
    charged_nanos: int
    budget_nanos: int | None
    created_at: int


class Rate(msgspec.Struct, frozen=True, gc=False):
    """How many runs, and how many of them were processed; cancelled ones say nothing and are not counted."""

    runs: int
    processed: int


class Trust(msgspec.Struct, frozen=True, gc=False):
    """What an agent's standing is judged by."""

    streak: int
    last_decided: tuple[ProposalStatus, ...]
    """The newest first, at most ``LAST_DECIDED``."""
    before: Rate
    """The rate of the ``RATE_EVENTS`` runs before the last applied proposal; no runs when there is none."""
    after: Rate
    """The rate of the first ``RATE_EVENTS`` runs after it."""


class Lessons(msgspec.Struct, frozen=True, gc=False):
    """What a run is told of the past."""

    rejections: tuple[Proposal, ...]
    """Oldest first, none of which a processed run was told of."""
    scores: tuple[Score, ...]
    """Newest first, more than the tokens can hold."""
    context_tokens: int
    """How much of them the workspace has agents shown."""


class ImprovementStore(Protocol):
    """Proposals are written by their agent's actor, scores by the journal."""

    async def propose(self, proposal: Proposal) -> bool:
        """Keep a pending one, rejecting the oldest beyond ``PENDING_KEPT``; False when the agent is gone."""
        ...

    async def load(self, proposal_id: UUID) -> Proposal | None: ...
    async def list(
        self,
        zombie_id: UUID,
        *,
        limit: int,
        before: Page | None = None,
        status: ProposalStatus | None = None,
    ) -> Sequence[Proposal]:
        """Newest first."""
        ...

    async def decide(self, proposal: Proposal) -> None:
        """Keep the decision. Raises Conflict when it is not pending any more.

        One that is applied is kept with its configuration: see ``ZombieStore.save``.
        """
        ...

    async def scores(self, zombie_id: UUID, *, limit: int, before: Page | None = None) -> Sequence[Score]:
        """Newest first; the id of a place is the event's."""
        ...

    async def trust(self, zombie_id: UUID) -> Trust: ...
    async def lessons(self, zombie_id: UUID, workspace_id: UUID, lease_id: UUID) -> Lessons:
        """What this lease's run is told.

        The lease is noted with the rejections while it is live, so that its end can mark them as heard.
        """
        ...

    async def context_tokens(self, workspace_id: UUID) -> int | None:
        """What the workspace has set; None when nothing."""
        ...

    async def put_context_tokens(self, workspace_id: UUID, tokens: int, now: int) -> None: ...
