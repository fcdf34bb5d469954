"""Inbound webhooks: raw bytes to the agent, its word back to the sender."""

from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

import msgspec

from sexton_actors.protocol.gate import Resolve
from sexton_actors.protocol.zombie import Accepted, AlreadyAccepted, Challenge, Deliver, Ignored
from sexton_actors.refusal import Refusal
from sexton_actors.zombie.rejections import TOO_LARGE, reason_code
from sexton_http.answers import JSON_TYPE, Answer, Problem
from sexton_http.bodies.shapes import ApproveOrDeny, Body, Shape
from sexton_http.gateway.audit_entries import entry_by
from sexton_http.gateway.call import Call
from sexton_http.gateway.delivery_notes import headers_of, note_answered, turn_away
from sexton_http.gateway.operations import (
    MAX_WEBHOOK_BYTES,
    Auth,
    Handler,
    NoBody,
    NoQuery,
    Operation,
    operation,
)
from sexton_http.gateway.services import Services
from sexton_http.identity.principals import Presser
from sexton_http.routes.shared.gate_decisions import GateDecided, decide, or_denied
from sexton_http.routes.shared.slack_actions import load_agent, press_of
from sexton_storage.attribution import attributed
from sexton_storage.records.gates import Gate

TAG = "Webhooks"
CODES = (
    "UZ-WH-001",
    "UZ-WH-002",
    "UZ-WH-003",
    "UZ-WH-004",
    "UZ-WH-010",
    "UZ-WH-011",
    "UZ-WH-020",
    "UZ-WH-030",
    "UZ-WORKSPACE-002",
    "UZ-ZMB-001",
    "UZ-ENTL-001",
    "UZ-ENTL-003",
    "UZ-EVENT-002",
)


class Delivery(Shape):
    """The word back: accepted (202), or duplicate, ignored, challenge (200)."""

    status: str
    event_id: UUID | msgspec.UnsetType = msgspec.UNSET
    accepted: bool | msgspec.UnsetType = msgspec.UNSET
    reason: str | msgspec.UnsetType = msgspec.UNSET
    challenge: str | msgspec.UnsetType = msgspec.UNSET


async def _too_large(services: Services, params: Mapping[str, Any]) -> Problem:
    detail = f"the body is over {MAX_WEBHOOK_BYTES} bytes"
    scope = await services.scopes.zombie(params["zombie_id"])
    if scope is not None:
        turn_away(
            services, scope.workspace_id, params, None, code="UZ-WH-030", reason=TOO_LARGE, detail=detail
        )
    services.metrics.webhooks.labels("UZ-WH-030").inc()
    return Problem("UZ-WH-030", detail, facts={"reason": reason_code(TOO_LARGE)})


def _route(path: str) -> Callable[[Handler], Operation]:
    return operation(
        "POST",
        path,
        tag=TAG,
        auth=Auth.WEBHOOK,
        status=202,
        codes=CODES,
        answer=Delivery,
        hot=True,
        max_body=MAX_WEBHOOK_BYTES,
        oversize=_too_large,
        extra_statuses=(200,),
    )


async def _deliver(
    call: Call[NoBody, NoQuery], segment: str | None, *, multisig: bool = False
) -> Answer | Refusal:
    zombie_id = call.id("zombie_id")
    with call.services.deliveries.room_for(zombie_id):
        return await _ask(call, zombie_id, segment, multisig=multisig)


async def _ask(
    call: Call[NoBody, NoQuery], zombie_id: UUID, segment: str | None, *, multisig: bool
) -> Answer | Refusal:
    message = Deliver(segment, headers_of(call.head), call.raw, multisig, call.traceparent)
    reply = await call.ctx.system.ask("zombie", zombie_id, message)
    await note_answered(call.services, zombie_id, message, reply)
    metrics = call.services.metrics
    if isinstance(reply, Refusal):
        metrics.webhook(reply.code)
        return reply
    status, delivery = _word_back(reply)
    metrics.webhook(delivery.status)
    body = msgspec.json.encode(delivery)
    traced = b'%b,"request_id":"%b"}' % (body[:-1], call.request_id.encode())
    return Answer(status, (JSON_TYPE,), traced)


def _word_back(reply: Accepted | AlreadyAccepted | Ignored | Challenge) -> tuple[int, Delivery]:
    match reply:
        case Accepted(event_id=event_id):
            return 202, Delivery("accepted", event_id, accepted=True)
        case AlreadyAccepted(event_id=event_id):
            return 200, Delivery("duplicate", event_id)
        case Ignored(reason=reason):
            return 200, Delivery("ignored", reason=reason)
        case Challenge(challenge=word):
            return 200, Delivery("challenge", challenge=word)


@_route("/v1/webhooks/{zombie_id}")
async def deliver(call: Call[NoBody, NoQuery]) -> Answer | Refusal:
    """Deliver to the agent's first webhook trigger."""
    return await _deliver(call, None)


@_route("/v1/webhooks/{zombie_id}/{segment}")
async def deliver_to_source(call: Call[NoBody, NoQuery]) -> Answer | Refusal:
    """Deliver to the trigger of a source, or by the secret in the URL.

    The last part of the path is a declared source, or the url_secret of a trigger without a signature.
    """
    return await _deliver(call, call.text("segment"))


@_route("/v1/webhooks/svix/{zombie_id}")
async def deliver_multisig(call: Call[NoBody, NoQuery]) -> Answer | Refusal:
    """Deliver with several, rotating signatures (svix, Standard Webhooks)."""
    return await _deliver(call, None, multisig=True)


class Decision(Body):
    approval_id: str
    """The gate's id, or its action id."""
    decision: ApproveOrDeny


@operation(
    "POST",
    "/v1/webhooks/{zombie_id}/approval",
    tag="Approvals",
    auth=Auth.APPROVAL,
    codes=("UZ-APPROVAL-002", "UZ-APPROVAL-004", "UZ-APPROVAL-006"),
    press=True,
)
async def decide_by_webhook(call: Call[Decision, NoQuery]) -> GateDecided | Refusal:
    """Approve or deny a gate with the agent's approval token, or by a button in a chat.

    A chat platform sends its signed interactive form: its field `payload` holds an object whose
    `actions[0].value` reads `approve:<gate_id>` or `deny:<gate_id>`.
    """
    zombie_id = call.id("zombie_id")
    if isinstance(call.principal, Presser):
        press = await press_of(call, await load_agent(call, zombie_id))
        approval_id, message = press.subject, Resolve(approve=press.approve, by=press.by)
    else:
        approval_id = call.body.approval_id
        approve = call.body.decision is ApproveOrDeny.APPROVE
        message = Resolve(approve=approve, by=f"api:{zombie_id}", by_token=True)
    gate = await or_denied(_find_gate(call, zombie_id, approval_id))
    if gate is None:
        raise Problem("UZ-APPROVAL-002", "the agent has no such approval")
    with attributed(entry_by(call, gate.tenant_id, message.by, workspace_id=gate.workspace_id)):
        return await decide(call.ctx, gate.id, message)


async def _find_gate(call: Call[Any, Any], zombie_id: UUID, approval_id: str) -> Gate | None:
    gates = call.ctx.world.storage.gates
    try:
        gate = await gates.load(UUID(approval_id))
    except ValueError:
        return await gates.find_by_action(zombie_id, approval_id)
    if gate is None:
        return await gates.find_by_action(zombie_id, approval_id)
    return gate if gate.zombie_id == zombie_id else None
