"""What a runner does with a lease beside its run: ask people, give back. Every write is fenced."""

from functools import partial
from typing import Annotated, Any
from uuid import UUID

import msgspec

from sexton_actors.protocol.gate import Await
from sexton_actors.protocol.lease import AskApproval, Park, Parked, Release, Released
from sexton_actors.refusal import Refusal
from sexton_actors.token_counts import Usage
from sexton_http.answers import Problem
from sexton_http.bodies.fencing_token import FENCED, HOT_S, TAG, Token
from sexton_http.bodies.shapes import Body, Count, GateView, Query, WaitMs, view_gate
from sexton_http.bodies.token_counts import Fallbacks, tokens_of
from sexton_http.gateway.call import Call
from sexton_http.gateway.operations import MAX_BODY_BYTES, Auth, Creates, NoBody, NoQuery, Wait, operation
from sexton_http.routes.shared.gate_decisions import or_denied
from sexton_http.wire.stop_signal import until_stopped
from sexton_storage.records.gates import Gate

SLACK_S = 10.0
NAME_CHARS = 256
RETRY_MIN_MS = 1_000
RETRY_MAX_MS = 12 * 3600 * 1000
"""An event has that long from its first lease on."""

Name = Annotated[str, msgspec.Meta(max_length=NAME_CHARS)]


class NewGate(Body):
    action_id: Annotated[str, msgspec.Meta(min_length=1, max_length=NAME_CHARS)]
    tool_name: Name
    action_name: Name
    gate_kind: Name = ""
    proposed_action: Annotated[str, msgspec.Meta(max_length=4096)] = ""
    evidence: dict[str, Any] = msgspec.field(default_factory=dict)
    blast_radius: Annotated[str, msgspec.Meta(max_length=4096)] = ""
    fencing_token: Token = None


@operation(
    "POST",
    "/v1/runners/me/leases/{lease_id}/gates",
    tag=TAG,
    auth=Auth.RUNNER,
    codes=(*FENCED, "UZ-APPROVAL-004"),
    creates=Creates.AGAIN,
    max_body=MAX_BODY_BYTES,
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
        body.fencing_token,
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
        raise Problem("UZ-RUN-006", "the runner does not hold this lease")
    gate = await or_denied(ctx.world.storage.gates.load(gate_id))
    if gate is None or gate.event_id != lease.event_id:
        raise Problem("UZ-APPROVAL-002", "the lease's event has no such gate")
    if not wait_ms:
        return view_gate(gate)
    ask = partial(ctx.system.ask, "gate", gate_id, Await(wait_ms), timeout=wait_ms / 1000 + SLACK_S)
    reply = await or_denied(until_stopped(ask, ctx.stop))
    if isinstance(reply, Refusal):
        return reply
    return view_gate(gate if reply is None else reply)


class ReleasedUsage(Body):
    """Cumulative over the lease, until now."""

    input_tokens: Count
    cached_input_tokens: Count
    output_tokens: Count
    run_ms: Count | None = None
    cache_write_tokens: Count = 0
    fallbacks: Fallbacks = ()


class ReleaseBody(Body):
    reason: Annotated[str, msgspec.Meta(max_length=512)] = ""
    fencing_token: Token = None
    retry_after_ms: Annotated[int, msgspec.Meta(ge=RETRY_MIN_MS, le=RETRY_MAX_MS)] | None = None
    """Nobody is given the event before: its run found every model busy."""
    checkpoint: dict[str, Any] | None = None
    """From where the event goes on, instead of from its beginning; beside ``usage``."""
    usage: ReleasedUsage | None = None
    """What the run has used; without it what its last renewal said is billed."""


@operation(
    "POST",
    "/v1/runners/me/leases/{lease_id}/release",
    tag=TAG,
    auth=Auth.RUNNER,
    status=204,
    codes=FENCED,
    max_body=MAX_BODY_BYTES,
)
async def release_lease(call: Call[ReleaseBody, NoQuery]) -> Refusal | None:
    """Give the event back to the queue, at once or to wait for a time; the attempt does not count."""
    body = call.body
    if body.checkpoint is not None and body.usage is None:
        raise Problem("UZ-REQ-001", "/usage: is needed beside a checkpoint")
    message = Release(
        call.host.runner.id,
        body.reason,
        body.fencing_token,
        body.retry_after_ms,
        body.checkpoint,
        None if body.usage is None else _usage_of(body.usage),
    )
    reply = await call.ctx.system.ask("lease", call.id("lease_id"), message, timeout=HOT_S)
    return None if isinstance(reply, Released) else reply


def _usage_of(said: ReleasedUsage) -> Usage:
    return Usage(
        said.input_tokens,
        said.cached_input_tokens,
        said.output_tokens,
        said.run_ms,
        said.cache_write_tokens,
        tokens_of(said.fallbacks),
    )


class ParkBody(Body):
    gate_id: UUID
    checkpoint: dict[str, Any]
    fencing_token: Token = None


@operation(
    "POST",
    "/v1/runners/me/leases/{lease_id}/park",
    tag=TAG,
    auth=Auth.RUNNER,
    status=204,
    codes=(*FENCED, "UZ-APPROVAL-002"),
    max_body=MAX_BODY_BYTES,
)
async def park_lease(call: Call[ParkBody, NoQuery]) -> Refusal | None:
    """Wait at a gate without holding a slot; the event goes on when the gate is resolved."""
    body = call.body
    message = Park(call.host.runner.id, body.gate_id, body.checkpoint, body.fencing_token)
    reply = await call.ctx.system.ask("lease", call.id("lease_id"), message, timeout=HOT_S)
    return None if isinstance(reply, Parked) else reply
