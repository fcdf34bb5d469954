"""What can be asked of a lease; every call of a runner carries its id and is fenced."""

from collections.abc import Mapping
from typing import Any, Literal
from uuid import UUID

import msgspec

from sexton_actors.proposal.drafts import Draft
from sexton_actors.protocol.grants import Requested
from sexton_actors.refusal import Refusal
from sexton_actors.token_counts import Tokens, Usage
from sexton_engine import Message
from sexton_storage.records.follow_ups import FollowUp
from sexton_storage.records.gates import Gate
from sexton_storage.records.leases import Lease
from sexton_storage.records.memories import MemoryChange


class Renewal(msgspec.Struct, frozen=True):
    """The answer to a renewal, as the contract spells it."""

    lease_expires_at: int
    slice_seq: int
    charged_nanos: int
    balance_nanos: int
    ceiling_at: int
    state: str
    """``active`` or ``cancelling``."""


class Renew(msgspec.Struct, Message[Renewal | Refusal], frozen=True):
    """Extend by one term and bill the slice since the last; counts are cumulative over the lease.

    ``fencing_token`` None, here and below: the runner did not say it.
    """

    runner_id: UUID
    input_tokens: int
    cached_input_tokens: int
    output_tokens: int
    run_ms: int | None = None
    fencing_token: int | None = None
    cache_write_tokens: int = 0
    fallbacks: tuple[Tokens, ...] = ()
    """What each model after the first has used of those counts."""


class Reported(msgspec.Struct, frozen=True):
    duplicate: bool
    status: str
    """The event's status after the report."""
    charged_nanos: int
    """The price of the final slice."""


class Report(msgspec.Struct, Message[Reported | Refusal], frozen=True):
    """The run is over; ``digest`` (SHA-256 of the canonical body) tells the same report from another one."""

    runner_id: UUID
    event_id: UUID
    fencing_token: int
    outcome: str
    """processed, agent_error or cancelled."""
    failure_reason: str | None
    response_text: str | None
    evidence: Mapping[str, Any] | None
    input_tokens: int
    cached_input_tokens: int
    output_tokens: int
    time_to_first_token_ms: int | None
    wall_ms: int
    checkpoint: Mapping[str, Any] | None
    digest: bytes
    memory: tuple[MemoryChange, ...] = ()
    proposals: tuple[Draft, ...] = ()
    """What the run would have changed in the agent's own files."""
    cache_write_tokens: int = 0
    fallbacks: tuple[Tokens, ...] = ()


class Released(msgspec.Struct, frozen=True):
    pass


class Release(msgspec.Struct, Message[Released | Refusal], frozen=True):
    """Give the event back at once; the attempt does not count.

    With ``retry_after_ms`` it waits for that time, and those behind it: the run found every model busy.
    """

    runner_id: UUID
    reason: str
    fencing_token: int | None = None
    retry_after_ms: int | None = None
    checkpoint: Mapping[str, Any] | None = None
    """From where it goes on; None: as it began."""
    usage: Usage | None = None
    """What the run has used until now; None: what its last renewal said."""


class Parked(msgspec.Struct, frozen=True):
    pass


class Park(msgspec.Struct, Message[Parked | Refusal], frozen=True):
    """Wait at a pending gate without holding a slot; the event goes on from ``checkpoint`` afterwards."""

    runner_id: UUID
    gate_id: UUID
    checkpoint: Mapping[str, Any]
    fencing_token: int | None = None


class FramesTaken(msgspec.Struct, frozen=True):
    count: int


class FrameIn(msgspec.Struct, frozen=True):
    kind: str
    at_ms: int | None
    data: Mapping[str, Any]


class Activity(msgspec.Struct, Message[FramesTaken | Refusal], frozen=True):
    """Up to 256 frames for the agent's stream."""

    runner_id: UUID
    frames: tuple[FrameIn, ...]
    fencing_token: int | None = None


class AskApproval(msgspec.Struct, Message[Gate | Refusal], frozen=True):
    """Open a gate from inside the run; the same action_id of the same event gives the gate that exists."""

    runner_id: UUID
    action_id: str
    tool_name: str
    action_name: str
    gate_kind: str
    proposed_action: str
    evidence: Mapping[str, Any]
    blast_radius: str
    fencing_token: int | None = None


class AskIntegration(msgspec.Struct, Message[Requested | Refusal], frozen=True):
    """Ask for a service on behalf of the agent."""

    runner_id: UUID
    service: str
    reason: str


class Lent(msgspec.Struct, frozen=True):
    service: str
    data: Mapping[str, Any]
    """The credential's."""
    hosts: tuple[str, ...] = ()
    """To which it may go."""


class Lend(msgspec.Struct, Message[Lent | Refusal], frozen=True):
    """Have the credential of a service that was granted to the agent."""

    runner_id: UUID
    service: str


class AskFollowUp(msgspec.Struct, Message[FollowUp | Refusal], frozen=True):
    """Wake the agent later with a message; the same ``call_id`` of the same event is the same follow-up.

    One of ``delay_s`` (from now) and ``at`` (Unix ms).
    """

    runner_id: UUID
    call_id: str
    message: str
    delay_s: int | None = None
    at: int | None = None


class GateClosed(msgspec.Struct, Message[None], frozen=True):
    """A gate of this lease was resolved: its time is billed again from ``at``."""

    gate_id: UUID
    at: int


class Granted(msgspec.Struct, Message[None], frozen=True):
    """The lease was just made: take it as it is and watch its deadline."""

    lease: Lease


class CancelRun(msgspec.Struct, Message[None], frozen=True):
    """The event was cancelled or its agent killed; the row is marked already."""


class Undelivered(msgspec.Struct, Message[None], frozen=True):
    """The lease was granted, but reached no runner: the event goes back at once, unbilled."""


class Abort(msgspec.Struct, Message[None], frozen=True):
    """The run must not start: its event ends as agent_error."""

    label: str
    """One of ``FAILURE_CODES``."""
    detail: str


class Expire(msgspec.Struct, Message[None], frozen=True):
    """Look whether the deadline has passed, and if so take the lease back."""


class Revoke(msgspec.Struct, Message[None], frozen=True):
    """The runner was revoked, or is known to have died: take the lease back now, expired or not."""

    cause: Literal["revoked", "died"] = "revoked"
