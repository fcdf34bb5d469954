"""What a runner does with a lease: renew, show, ask, give back, report. Every write is fenced."""

import hashlib
from enum import StrEnum
from functools import partial
from typing import Annotated, Any
from uuid import UUID

import msgspec

from sexton_actors.gate.messages import Await
from sexton_actors.lease.messages import (
    Activity,
    AskApproval,
    FrameIn,
    FramesTaken,
    Park,
    Parked,
    Release,
    Released,
    Renew,
    Renewal,
    Report,
    Reported,
)
from sexton_actors.proposal.drafting import PROPOSALS_A_RUN
from sexton_actors.refusal import Refusal
from sexton_http.answers import Problem
from sexton_http.asking import Fault, ask_all
from sexton_http.deciding import or_denied
from sexton_http.operations import Auth, Call, NoBody, NoQuery, Wait, operation
from sexton_http.pipeline import as_problem
from sexton_http.problems import CODES
from sexton_http.remembering import MAX_CHANGES, MemoryEntry, change_of
from sexton_http.routes.proposals import ProposalDraft, draft_of
from sexton_http.shapes import Body, Count, GateView, Query, Shape, WaitMs, view_gate
from sexton_http.stopping import until_stopped
from sexton_storage.records import Gate

TAG = "Runner plane"
FENCED = ("UZ-RUN-005", "UZ-RUN-006")
MAX_RENEWALS = 1024
MAX_FRAMES = 256
SLACK_S = 10.0
TEXT_CHARS = 1_000_000
NAME_CHARS = 256

Name = Annotated[str, msgspec.Meta(max_length=NAME_CHARS)]


class Usage(Body):
    """Cumulative over the lease."""

    input_tokens: Count
    cached_input_tokens: Count
    output_tokens: Count
    run_ms: Count | None = None


class RenewalAnswer(Shape):
    lease_expires_at: int
    slice_seq: int
    charged_nanos: int
    balance_nanos: int
    ceiling_at: int
    state: str
    """``active`` or ``cancelling``."""


RENEWAL_CODES = ("UZ-RUN-006", "UZ-RUN-010", "UZ-RUN-011", "UZ-RUN-012", "UZ-ZMB-001")


@operation(
    "POST",
    "/v1/runners/me/leases/{lease_id}/renew",
    tag=TAG,
    auth=Auth.RUNNER,
    hot=True,
    codes=RENEWAL_CODES,
    answer=RenewalAnswer,
)
async def renew_lease(call: Call[Usage, NoQuery]) -> Renewal | Refusal:
    """Extend a lease by one term, and be billed for the slice since the last."""
    use = call.body
    message = Renew(
        call.host.runner.id, use.input_tokens, use.cached_input_tokens, use.output_tokens, use.run_ms
    )
    return await call.ctx.system.ask("lease", call.id("lease_id"), message)


class OneRenewal(Usage, kw_only=True):
    lease_id: UUID
    fencing_token: Count


class Renewals(Body):
    leases: Annotated[tuple[OneRenewal, ...], msgspec.Meta(min_length=1, max_length=MAX_RENEWALS)]


class RenewalResult(Shape, omit_defaults=True):
    """With ``ok`` the fields of a renewal, else the code and status that alone it would have had."""

    lease_id: UUID
    ok: bool
    lease_expires_at: int | None = None
    slice_seq: int | None = None
    charged_nanos: int | None = None
    balance_nanos: int | None = None
    ceiling_at: int | None = None
    state: str | None = None
    error_code: str | None = None
    status: int | None = None


class RenewalResults(Shape):
    results: list[RenewalResult]


@operation("POST", "/v1/runners/me/leases:renew", tag=TAG, auth=Auth.RUNNER, hot=True)
async def renew_leases(call: Call[Renewals, NoQuery]) -> RenewalResults:
    """Extend many leases at once; each has its own result, in the order asked."""
    runner_id, leases = call.host.runner.id, call.body.leases
    asks = [
        (
            one.lease_id,
            Renew(
                runner_id,
                one.input_tokens,
                one.cached_input_tokens,
                one.output_tokens,
                one.run_ms,
                one.fencing_token,
            ),
        )
        for one in leases
    ]
    replies = await ask_all(call.ctx.system, "lease", asks)
    return RenewalResults([_result(one.lease_id, reply) for one, reply in zip(leases, replies, strict=True)])


def _result(lease_id: UUID, reply: Renewal | Refusal | Fault) -> RenewalResult:
    match reply:
        case Renewal():
            return RenewalResult(
                lease_id,
                True,  # noqa: FBT003 - by position it is twice as fast, and this is the hottest of all
                reply.lease_expires_at,
                reply.slice_seq,
                reply.charged_nanos,
                reply.balance_nanos,
                reply.ceiling_at,
                reply.state,
            )
        case Refusal(code=code):
            return RenewalResult(lease_id, ok=False, error_code=code, status=CODES[code].status)
        case _:
            row = as_problem(reply).row
            return RenewalResult(lease_id, ok=False, error_code=row.code, status=row.status)


Frame = Annotated[
    dict[str, Any],
    msgspec.Meta(
        extra_json_schema={
            "required": ["kind"],
            "properties": {
                "kind": {"type": "string", "minLength": 1, "maxLength": 64},
                "at_ms": {"type": "integer"},
            },
        }
    ),
]


class Frames(Body):
    frames: Annotated[tuple[Frame, ...], msgspec.Meta(max_length=MAX_FRAMES)]
    """Each with its kind and its own fields; ``at_ms`` may say when it was."""


class FramesAnswer(Shape):
    accepted: int


@operation(
    "POST",
    "/v1/runners/me/leases/{lease_id}/activity",
    tag=TAG,
    auth=Auth.RUNNER,
    hot=True,
    status=202,
    codes=FENCED,
)
async def show_activity(call: Call[Frames, NoQuery]) -> FramesAnswer | Refusal:
    """Append frames to the agent's stream."""
    frames = tuple(_frame(place, frame) for place, frame in enumerate(call.body.frames))
    message = Activity(call.host.runner.id, frames)
    match await call.ctx.system.ask("lease", call.id("lease_id"), message):
        case Refusal() as refusal:
            return refusal
        case FramesTaken(count=count):
            return FramesAnswer(count)


def _frame(place: int, frame: dict[str, Any]) -> FrameIn:
    own = dict(frame)
    kind, at_ms = own.pop("kind", None), own.pop("at_ms", None)
    if not isinstance(kind, str) or not kind:
        raise Problem("UZ-REQ-001", f"/frames/{place}/kind: a text that is not empty")
    if at_ms is not None and (not isinstance(at_ms, int) or isinstance(at_ms, bool) or at_ms < 0):
        raise Problem("UZ-REQ-001", f"/frames/{place}/at_ms: Unix milliseconds")
    return FrameIn(kind, at_ms, own)


class NewGate(Body):
    action_id: Annotated[str, msgspec.Meta(min_length=1, max_length=NAME_CHARS)]
    tool_name: Name
    action_name: Name
    gate_kind: Name = ""
    proposed_action: Annotated[str, msgspec.Meta(max_length=4096)] = ""
    evidence: dict[str, Any] = msgspec.field(default_factory=dict)
    blast_radius: Annotated[str, msgspec.Meta(max_length=4096)] = ""


@operation(
    "POST",
    "/v1/runners/me/leases/{lease_id}/gates",
    tag=TAG,
    auth=Auth.RUNNER,
    codes=(*FENCED, "UZ-APPROVAL-004"),
)
async def open_gate(call: Call[NewGate, NoQuery]) -> GateView | Refusal:
    """Ask for approval; the same action_id of an event again is the same gate."""
    body = call.body
    message = AskApproval(
        call.host.runner.id,
        body.action_id,
        body.tool_name,
        body.action_name,
        body.gate_kind,
        body.proposed_action,
        body.evidence,
        body.blast_radius,
    )
    match await or_denied(call.ctx.system.ask("lease", call.id("lease_id"), message)):
        case Refusal() as refusal:
            return refusal
        case Gate() as gate:
            return view_gate(gate)


class GateWait(Query):
    wait_ms: WaitMs = 0


@operation(
    "GET",
    "/v1/runners/me/leases/{lease_id}/gates/{gate_id}",
    tag=TAG,
    auth=Auth.RUNNER,
    wait=Wait.LONG_POLL,
    codes=("UZ-APPROVAL-002", "UZ-APPROVAL-004", "UZ-RUN-006"),
)
async def await_gate(call: Call[NoBody, GateWait]) -> GateView | Refusal:
    """Wait for a gate to be resolved."""
    ctx, gate_id, wait_ms = call.ctx, call.id("gate_id"), call.query.wait_ms
    lease = await or_denied(ctx.world.storage.leases.load(call.id("lease_id")))
    if lease is None or lease.runner_id != call.host.runner.id:
        raise Problem("UZ-RUN-006", "the runner holds no such lease")
    gate = await or_denied(ctx.world.storage.gates.load(gate_id))
    if gate is None or gate.event_id != lease.event_id:
        raise Problem("UZ-APPROVAL-002", "the lease's event has no such gate")
    if not wait_ms:
        return view_gate(gate)
    ask = partial(ctx.system.ask, "gate", gate_id, Await(wait_ms), timeout=wait_ms / 1000 + SLACK_S)
    reply = await or_denied(until_stopped(ctx.stop, ask))
    if isinstance(reply, Refusal):
        return reply
    return view_gate(gate if reply is None else reply)


class ReleaseBody(Body):
    reason: Annotated[str, msgspec.Meta(max_length=512)] = ""


@operation(
    "POST",
    "/v1/runners/me/leases/{lease_id}/release",
    tag=TAG,
    auth=Auth.RUNNER,
    status=204,
    codes=FENCED,
)
async def release_lease(call: Call[ReleaseBody, NoQuery]) -> Refusal | None:
    """Give the event back to the queue at once; the attempt does not count."""
    message = Release(call.host.runner.id, call.body.reason)
    reply = await call.ctx.system.ask("lease", call.id("lease_id"), message)
    return None if isinstance(reply, Released) else reply


class ParkBody(Body):
    gate_id: UUID
    checkpoint: dict[str, Any]


@operation(
    "POST",
    "/v1/runners/me/leases/{lease_id}/park",
    tag=TAG,
    auth=Auth.RUNNER,
    status=204,
    codes=(*FENCED, "UZ-APPROVAL-002"),
)
async def park_lease(call: Call[ParkBody, NoQuery]) -> Refusal | None:
    """Wait at a gate without holding a slot; the event goes on when the gate is resolved."""
    message = Park(call.host.runner.id, call.body.gate_id, call.body.checkpoint)
    reply = await call.ctx.system.ask("lease", call.id("lease_id"), message)
    return None if isinstance(reply, Parked) else reply


class Telemetry(Body):
    wall_ms: Count = 0
    time_to_first_token_ms: Count | None = None


class Outcome(StrEnum):
    PROCESSED = "processed"
    AGENT_ERROR = "agent_error"
    CANCELLED = "cancelled"


class ReportBody(Body):
    lease_id: UUID
    event_id: UUID
    fencing_token: Count
    outcome: Outcome
    response_text: Annotated[str, msgspec.Meta(max_length=TEXT_CHARS)]
    input_tokens: Count
    cached_input_tokens: Count
    output_tokens: Count
    failure_reason: Annotated[str, msgspec.Meta(max_length=4096)] | None = None
    evidence: dict[str, Any] | None = None
    telemetry: Telemetry = msgspec.field(default_factory=Telemetry)
    checkpoint: dict[str, Any] | None = None
    memory: Annotated[tuple[MemoryEntry, ...], msgspec.Meta(max_length=MAX_CHANGES)] = ()
    proposals: Annotated[tuple[ProposalDraft, ...], msgspec.Meta(max_length=PROPOSALS_A_RUN)] = ()
    """What the run would change in the agent's own files."""


class ReportAnswer(Shape):
    duplicate: bool
    status: str
    """The event's, after the report."""
    charged_nanos: int
    """Of the last slice."""


@operation("POST", "/v1/runners/me/reports", tag=TAG, auth=Auth.RUNNER, hot=True, codes=FENCED)
async def report_run(call: Call[ReportBody, NoQuery]) -> ReportAnswer | Refusal:
    """Say how the run ended; the same report again is answered with `duplicate`.

    A `processed` one that leaves a `checkpoint` could not finish: a new event goes on from there, in the same
    commit.
    """
    body = call.body
    message = Report(
        runner_id=call.host.runner.id,
        event_id=body.event_id,
        fencing_token=body.fencing_token,
        outcome=body.outcome.value,
        failure_reason=body.failure_reason,
        response_text=body.response_text,
        evidence=body.evidence,
        input_tokens=body.input_tokens,
        cached_input_tokens=body.cached_input_tokens,
        output_tokens=body.output_tokens,
        time_to_first_token_ms=body.telemetry.time_to_first_token_ms,
        wall_ms=body.telemetry.wall_ms,
        checkpoint=body.checkpoint,
        digest=hashlib.sha256(msgspec.json.encode(body, order="deterministic")).digest(),
        memory=tuple(change_of(entry, f"/memory/{place}") for place, entry in enumerate(body.memory)),
        proposals=tuple(draft_of(draft, f"/proposals/{place}") for place, draft in enumerate(body.proposals)),
    )
    match await call.ctx.system.ask("lease", body.lease_id, message):
        case Refusal() as refusal:
            return refusal
        case Reported(duplicate=duplicate, status=status, charged_nanos=charged):
            return ReportAnswer(duplicate, status, charged)
