"""Approval gates: lists what waits for a person, and approves or denies it."""

from typing import Annotated
from uuid import UUID

import msgspec

from sexton_actors.protocol.gate import Resolve
from sexton_actors.refusal import Refusal
from sexton_http.answers import Problem
from sexton_http.bodies.cursors import Place, decode, encode, fingerprint
from sexton_http.bodies.shapes import Body, Cursor, GateView, Query, Shape, view_gate
from sexton_http.gateway.call import Call
from sexton_http.gateway.operations import NoBody, NoQuery, operation
from sexton_http.identity.principals import is_enough
from sexton_http.routes.api_keys import KeySort
from sexton_http.routes.shared.gate_decisions import decide, or_denied
from sexton_storage.records.gates import Gate, GateOrder, GateStatus, place_of
from sexton_storage.records.users import Role

TAG = "Approvals"
CODES = ("UZ-APPROVAL-002", "UZ-APPROVAL-004")
REASON_CHARS = 4096
KEYS_LOOKED_AT = 100
"""The newest keys of one person that are looked at."""


class GatePage(Shape):
    items: list[GateView]
    next_cursor: str | None


class GateQuery(Query):
    status: GateStatus | None = None
    zombie_id: UUID | None = None
    gate_kind: Annotated[str, msgspec.Meta(max_length=128)] | None = None
    order: GateOrder = GateOrder.OLDEST
    """`decided`: those that were decided, the last one first."""
    limit: Annotated[int, msgspec.Meta(ge=1, le=200)] = 50
    cursor: Cursor | None = None


class Verdict(Body):
    reason: Annotated[str, msgspec.Meta(max_length=REASON_CHARS)] = ""


class GateOutcome(Shape):
    gate_id: UUID
    action_id: str
    outcome: GateStatus
    resolved_at: int | None
    resolved_by: str | None


@operation("GET", "/v1/workspaces/{workspace_id}/approvals", tag=TAG)
async def list_approvals(call: Call[NoBody, GateQuery]) -> GatePage:
    """List gates, oldest first where no other order is asked for."""
    query, workspace_id = call.query, call.id("workspace_id")
    asked = (query.status, query.zombie_id, query.gate_kind)
    # A cursor of the order that there was first stays good.
    order = () if query.order is GateOrder.OLDEST else (query.order,)
    filters = fingerprint("gates", workspace_id, *asked, *order)
    place = None if query.cursor is None else decode(query.cursor, filters)
    rows = await call.ctx.world.storage.gates.list(
        workspace_id,
        limit=query.limit + 1,
        status=query.status,
        zombie_id=query.zombie_id,
        gate_kind=query.gate_kind,
        order=query.order,
        after=None if place is None else place.page,
    )
    shown = rows[: query.limit]
    more = len(rows) > query.limit
    last = place_of(shown[-1], query.order) if more else None
    following = None if last is None else encode(Place(last.created_at, last.id, filters))
    return GatePage([view_gate(gate) for gate in shown], following)


@operation("GET", "/v1/workspaces/{workspace_id}/approvals/{gate_id}", tag=TAG, codes=("UZ-APPROVAL-002",))
async def get_approval(call: Call[NoBody, NoQuery]) -> GateView:
    """Show one gate."""
    return view_gate(await _gate(call))


@operation(
    "POST",
    "/v1/workspaces/{workspace_id}/approvals/{gate_id}:approve",
    tag=TAG,
    codes=(*CODES, "UZ-APPROVAL-006"),
)
async def approve(call: Call[Verdict, NoQuery]) -> GateOutcome | Refusal:
    """Let what waits at the gate go on; the role `user` approves neither agents nor runs of their own."""
    return await _resolve(call, approve=True)


@operation("POST", "/v1/workspaces/{workspace_id}/approvals/{gate_id}:deny", tag=TAG, codes=CODES)
async def deny(call: Call[Verdict, NoQuery]) -> GateOutcome | Refusal:
    """Refuse what waits at the gate."""
    return await _resolve(call, approve=False)


async def _gate(call: Call[NoBody, NoQuery] | Call[Verdict, NoQuery]) -> Gate:
    gate_id = call.id("gate_id")
    gate = await call.ctx.world.storage.gates.load(gate_id)
    if gate is None or gate.workspace_id != call.id("workspace_id"):
        raise Problem("UZ-APPROVAL-002", f"the workspace has no approval {gate_id}")
    return gate


async def _resolve(call: Call[Verdict, NoQuery], *, approve: bool) -> GateOutcome | Refusal:
    gate = await or_denied(_gate(call))
    member = call.member
    own = None if is_enough(member.role, Role.OPERATOR) or not approve else await _own(call)
    message = Resolve(approve=approve, by=member.by, reason=call.body.reason, own=own)
    done = await decide(call.ctx, gate.id, message)
    if isinstance(done, Refusal):
        return done
    return GateOutcome(done.gate_id, done.action_id, done.status, done.resolved_at, done.resolved_by)


async def _own(call: Call[Verdict, NoQuery]) -> frozenset[str]:
    """All that the caller writes and starts runs as: a person and their keys are one."""
    member, storage = call.member, call.ctx.world.storage
    own = {member.by, f"steer:{member.name}"}
    if member.person is not None:
        own |= {f"user:{member.person}", f"steer:{member.person}"}
        keys, _ = await storage.api_keys.list(
            member.tenant_id,
            page=1,
            page_size=KEYS_LOOKED_AT,
            sort=KeySort.NEWEST.value,
            owner_id=member.person,
        )
        for key in keys:
            own |= {f"api:{key.id}", f"steer:{key.key_name}"}
    return frozenset(own)
