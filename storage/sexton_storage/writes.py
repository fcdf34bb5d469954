"""The hot writes that the journal commits in groups, each with the outcomes it can have.

A write says what must still be true (a version, a fencing token, a status); one that lost its race comes back
as a ``Lost`` value and has changed nothing. Frames named in a write commit with it or not at all.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Generic, TypeVar
from uuid import UUID

import msgspec

from sexton_storage.records.audit import AuditEntry
from sexton_storage.records.crons import Firing
from sexton_storage.records.events import Asked, Event, EventStatus
from sexton_storage.records.frames import NewFrame
from sexton_storage.records.gates import Gate, GateStatus
from sexton_storage.records.improvement import Proposal
from sexton_storage.records.leases import Lease, LeaseStatus, ModelShare, Rates
from sexton_storage.records.memories import MemoryChange
from sexton_storage.records.metering import Slice
from sexton_storage.records.sources import Source
from sexton_storage.refusals import Lost

R_co = TypeVar("R_co", covariant=True)


class Write(Generic[R_co]):
    """A row change for the journal; the parameter is what ``Journal.write`` answers."""

    __slots__ = ()


# --- append an event ----------------------------------------------------------------------------------------


class Appended(msgspec.Struct, frozen=True, gc=False):
    event_id: UUID


class Duplicate(msgspec.Struct, frozen=True, gc=False):
    """The dedup key was seen within the window: ``event_id`` is the first one's."""

    event_id: UUID


class OverBudget(msgspec.Struct, frozen=True, gc=False):
    """The agent's spend has reached its budget for the day or month; the event was not kept."""

    period: str
    """``day`` or ``month``; ``plan`` when it is the tenant's plan that allows no more events this UTC day."""


class AppendEvent(msgspec.Struct, Write[Appended | Duplicate | OverBudget | Lost], frozen=True, gc=False):
    """Keep one event, unless its dedup key is known, then unless the budget is spent, in this order.

    It is behind all events of the agent that were kept before, whichever node took them and whatever is said
    by ids and clocks: in the queue, and in the history, where it is never older than the one before it.

    ``dedup_key`` None: never a duplicate. The window is ``DEDUP_WINDOW_MS`` before ``event.created_at``.
    ``body_key``: remembered beside ``dedup_key``, where that is the sender's id. A later write whose
    ``dedup_key`` it is (one without an id) is a duplicate of this one; and this one is a duplicate where its
    ``body_key`` was the ``dedup_key`` of another. Two writes that share the ``body_key`` only are two events.
    ``Lost`` when the agent does not exist any more or is killed (reason ``gone``), or when the ``firing`` is
    not due, or the follow-up not pending, any more (reason ``stale``). Either is over with this write, also
    when it is over budget: the follow-up is dropped then. ``Lost`` also when the ``source`` is not what was
    read any more (reason ``source_changed``): so nothing that was erased meanwhile is written again. Moves
    the agent's ``last_event_at``. Saves ``gate`` (and its event as waiting_approval) in the same commit.
    """

    event: Event
    dedup_key: bytes | None
    budget_daily_nanos: int | None
    budget_monthly_nanos: int | None
    frames: tuple[NewFrame, ...]
    gate: Gate | None = None
    body_key: bytes | None = None
    firing: Firing | None = None
    follow_up_id: UUID | None = None
    """What this event was asked for as; it is fired in the same commit."""
    events_limit: int | None = None
    """What the plan allows the tenant in a UTC day; None: it is not counted.

    Exact within a node; nodes that write at the same moment may each go over by one batch.
    """
    audit: AuditEntry | None = None
    """Kept as a line with the event; None: it is nobody's change."""
    source: Source | None = None
    """What the event was made from, as it was read; None: from nothing that is kept."""


# --- claim --------------------------------------------------------------------------------------------------


class Claimed(msgspec.Struct, frozen=True, gc=False):
    event: Event
    """As it is now: running, its attempt counted."""
    lease: Lease
    more: bool
    """The agent has further received events."""
    endowed: bool = True
    """The agent may have grants or memories, so that it is worth asking for them."""


class NothingToClaim(msgspec.Struct, frozen=True, gc=False):
    """No received event, or one that waits for its time; the agent is not active, over its budget, or leased.

    ``reason`` says which.
    """

    reason: str
    asked: Asked | None = None
    """What the next event asks for, where the reason is that this was not it (``other_version``)."""


class Exhausted(msgspec.Struct, frozen=True, gc=False):
    """The tenant's balance is zero: the event was set to gate_blocked / balance_exhausted instead."""

    event_id: UUID


class ClaimEvent(msgspec.Struct, Write[Claimed | NothingToClaim | Exhausted], frozen=True, gc=False):
    """Give the agent's received event that came first to a runner, under a new lease and the next token.

    It begins at ``now``, or when the agent's last lease ended if that is later. ``expires_at`` = then +
    ``term_ms``; ``ceiling_at`` = first_leased_at (or then) + ``ceiling_ms`` + parked_ms; ``expires_at`` never
    passes ``ceiling_at``. An event that comes back from a gate has the time
    since ``parked_at`` added to ``parked_ms``. Appends an ``event_leased`` frame (data: runner_id, lease_id,
    attempt, fencing_token as the dispatcher's clients see them).
    """

    zombie_id: UUID
    lease_id: UUID
    runner_id: UUID
    now: int
    term_ms: int
    ceiling_ms: int
    rates: Rates
    budget_daily_nanos: int | None
    budget_monthly_nanos: int | None
    config_version_id: UUID | None = None
    model: str | None = None
    own_key: bool = False
    shares: tuple[ModelShare, ...] | None = None
    """The models of a run that has more than one, with nothing used yet."""
    agent_version: int | None = None
    """The version of the agent's record that this was made from; None holds at any.

    At another version nothing is claimed (``changed``), so the record need not be read before each claim.
    """
    asked: Asked | None = None
    """What the next event is taken to ask for. Where it asks for another version, nothing is claimed."""
    ran_version: int | None = None
    """The number of the version that the run is given; the event keeps it."""


# --- renew --------------------------------------------------------------------------------------------------


class Renewed(msgspec.Struct, frozen=True, gc=False):
    charged_nanos: int
    balance_nanos: int
    """The tenant's balance after this slice."""
    spent_day_nanos: int
    spent_month_nanos: int
    """The agent's spend after this slice, by the UTC day and month of ``now``."""
    unlimited: bool = False
    """No balance stops the tenant."""


class RenewLease(msgspec.Struct, Write[Renewed | Lost], frozen=True, gc=False):
    """Save a renewal with its metering row and debit.

    Holds only while id and ``version`` match, the status is active or cancelling, and ``expires_at`` in the
    row is later than the database's clock. Sets version+1, expires_at, metered_at, slice_seq and the token
    cursors to those of ``lease``. Charged: slices of one tenant in order of arrival, each clamped at what is
    left.
    """

    lease: Lease
    """The row as it will be; its version is the one that was seen, plus one."""
    slice: Slice
    now: int


# --- end a lease --------------------------------------------------------------------------------------------


class Ended(msgspec.Struct, frozen=True, gc=False):
    charged_nanos: int
    balance_nanos: int
    event: Event
    """The event after the change."""
    next_event_at: int | None
    """When the oldest of the agent's events that wait now was received; None when none waits."""
    agent_version: int | None = None
    """The version of the agent's record, as of this commit; None when there is none."""

    @property
    def more(self) -> bool:
        """The agent has received events waiting now."""
        return self.next_event_at is not None


class EventEnd(msgspec.Struct, frozen=True, gc=False):
    """What becomes of the event when its lease ends; None leaves a field as it is."""

    status: EventStatus
    """processed, agent_error, cancelled, dead_lettered; received (goes back); waiting_approval (parked)."""
    give_attempt_back: bool = False
    """A released or parked lease: ``events.attempts`` goes down by one."""
    failure_label: str | None = None
    error_code: str | None = None
    response_text: str | None = None
    evidence: Mapping[str, Any] | None = None
    checkpoint: Mapping[str, Any] | None = None
    wall_ms: int = 0
    """Added to the event's own."""
    retry_at: int | None = None
    """Until when an event waits that goes back."""
    failed_checks: int = 0
    """The checks of the agent's work that failed at its end; they count in the score."""


class EndLease(msgspec.Struct, Write[Ended | Lost], frozen=True, gc=False):
    """End a lease and settle it: final metering row (if ``slice``), the event's new state, the agent freed.

    Holds only while id and ``version`` match and the status is live. With ``require_unexpired`` the row's
    ``expires_at`` must be later than the database's clock (reports, releases, parks); with
    ``require_expired`` it must not (a reclaim that comes late must not end a lease that was renewed on
    another node). A report and a reclaim can therefore never both succeed. ``charged_nanos`` and the tokens
    of the event become the sums of its metering rows, those of this end included. A waiting event whose gate
    was resolved meanwhile goes straight to what the gate's outcome says: approved to received, denied, timed
    out or auto_killed to received as well (the run learns the outcome from the gate). An event that finishes
    is scored, and the agent's streak moves: one more when processed, none after a failure, as it was when
    cancelled. A processed one has heard the rejections that its lease was handed.
    """

    lease_id: UUID
    version: int
    status: LeaseStatus
    """reported, released, parked or reclaimed."""
    now: int
    slice: Slice | None
    event: EventEnd
    frames: tuple[NewFrame, ...]
    require_unexpired: bool = False
    require_expired: bool = False
    report_digest: bytes | None = None
    parked_gate_id: UUID | None = None
    memory: tuple[MemoryChange, ...] = ()
    """What the run wants remembered; kept in the same commit as far as there is room."""
    proposals: tuple[Proposal, ...] = ()
    """What the run proposes; kept in the same commit, and so not twice."""
    continuation: Event | None = None
    """A new event that goes on where this one ended; kept in the same commit, with its checkpoint."""


# --- gates --------------------------------------------------------------------------------------------------


class GateOpened(msgspec.Struct, frozen=True, gc=False):
    gate: Gate
    existed: bool
    """A gate of this event with the same action_id was there already.

    ``gate`` is that one, no frame was written.

    A pending one that was opened under an earlier lease belongs to this lease from now on.
    """


class OpenGate(msgspec.Struct, Write[GateOpened | Lost], frozen=True, gc=False):
    """Open a gate under a live lease.

    Fenced by id, fencing token, live status, and unexpired by the database's clock.
    """

    gate: Gate
    fencing_token: int
    frames: tuple[NewFrame, ...]


class GateResolved(msgspec.Struct, frozen=True, gc=False):
    gate: Gate
    event_freed: bool
    """An event that waited at this gate (before a lease or parked) is received again."""


class ResolveGate(msgspec.Struct, Write[GateResolved | Lost], frozen=True, gc=False):
    """Resolve a pending gate; ``Lost`` when it is not pending any more.

    If its event is ``waiting_approval`` at this gate: ``event_status`` says what it becomes (received, or
    gate_blocked with ``failure_label`` and completed_at for one that never ran), with ``updated_at`` = now.
    """

    gate_id: UUID
    status: GateStatus
    now: int
    resolved_by: str
    detail: str
    event_status: EventStatus
    failure_label: str | None
    frames: tuple[NewFrame, ...]
    audit: AuditEntry | None = None
    """Kept as a line with the answer; None: nobody's."""


# --- activity -----------------------------------------------------------------------------------------------


class FramesAppended(msgspec.Struct, frozen=True, gc=False):
    count: int


class AppendFrames(msgspec.Struct, Write[FramesAppended | Lost], frozen=True, gc=False):
    """Append frames to an agent's stream; with ``lease_id`` only under that lease, live and unexpired.

    Goes by the bulk lane, so that chatter never delays a renewal.
    """

    zombie_id: UUID
    frames: tuple[NewFrame, ...]
    lease_id: UUID | None = None
    fencing_token: int = 0


# --- mark for cancellation ----------------------------------------------------------------------------------


class CancelOutcome(StrEnum):
    ENDED = "ended"
    """It had not begun, or waited: it is cancelled now."""
    CANCELLING = "cancelling"
    """It runs: its lease is marked, the runner learns it on its next call."""
    CLOSED = "closed"
    """It had ended before; nothing was changed."""


class Cancelled(msgspec.Struct, frozen=True, gc=False):
    outcome: CancelOutcome
    lease_id: UUID | None
    status: EventStatus
    """The status of the event now."""
    gate_ids: tuple[UUID, ...] = ()
    """Gates that waited for an answer about it, and are closed with it."""


class CancelEvent(msgspec.Struct, Write[Cancelled | Lost], frozen=True, gc=False):
    """Cancel an open event; ``Lost`` when there is no such event of that agent.

    One that no lease holds ends here: its pending gates are denied by ``CANCELLED_BY``, each with its frame.
    """

    zombie_id: UUID
    event_id: UUID
    now: int
    frames: tuple[NewFrame, ...]
    """Appended only when the outcome is ended, after those of its gates."""
    audit: AuditEntry | None = None
    """Kept as a line, unless the event was closed before."""
