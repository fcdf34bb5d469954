"""Integration grants: an agent asks for a service, people decide, and may take it back."""

import re
from typing import Annotated, Any
from uuid import UUID

import msgspec

from sexton_actors.protocol.grants import Decide, Request, Requested
from sexton_actors.protocol.lease import AskIntegration, Lend, Lent
from sexton_actors.refusal import Refusal
from sexton_http.answers import JSON_TYPE, Answer, Problem
from sexton_http.bodies.cursors import Place, decode, encode, fingerprint
from sexton_http.bodies.grant_shapes import GrantItem, GrantMade, GrantPage, GrantTarget
from sexton_http.bodies.names import fitting
from sexton_http.bodies.shapes import ApproveOrDeny, Body, Cursor, Query, Shape
from sexton_http.gateway.audit_entries import ask, entry_by
from sexton_http.gateway.call import Call
from sexton_http.gateway.operations import Auth, Creates, NoBody, NoQuery, operation
from sexton_http.identity.principals import Presser
from sexton_http.routes.shared.slack_actions import load_agent, press_of
from sexton_storage.attribution import attributed
from sexton_storage.records.grants import Grant, GrantStatus
from sexton_storage.records.users import Role

TAG = "Integrations"
SERVICE = r"^[a-z0-9_-]{1,64}$"
REASON_CHARS = 512
OF_ZOMBIE = "/v1/workspaces/{workspace_id}/zombies/{zombie_id}"
ONE = OF_ZOMBIE + "/integration-grants/{grant_id}"
_SERVICE = re.compile(SERVICE)
CHANGE_CODES = ("UZ-ZMB-009", "UZ-APPROVAL-002", "UZ-REQ-009")
CREATED = 201
FOUND = 200


class NewRequest(Body):
    service: Annotated[str, fitting(SERVICE)]
    reason: Annotated[str, msgspec.Meta(max_length=REASON_CHARS)]


class GrantQuery(Query):
    status: GrantStatus | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=200)] = 50
    cursor: Cursor | None = None


class WorkspaceGrantQuery(GrantQuery):
    zombie_id: UUID | None = None


class GrantPatch(Body):
    status: GrantTarget


class GrantDecision(Body):
    grant_id: UUID
    decision: ApproveOrDeny


class LentService(Shape):
    service: str
    data: dict[str, Any]
    hosts: tuple[str, ...]
    """To which it may go; none: to no host."""


# --- asking -------------------------------------------------------------------------------------------------


@operation(
    "POST",
    OF_ZOMBIE + "/integration-requests",
    tag=TAG,
    status=CREATED,
    extra_statuses=(FOUND,),
    creates=Creates.AGAIN,
    answer=GrantMade,
    codes=("UZ-ZMB-009", "UZ-ZMB-010"),
    agents="UZ-AUTH-001",
)
async def request_integration(call: Call[NewRequest, NoQuery]) -> Answer | Refusal:
    """Ask for the use of a service on behalf of an agent; an open request or grant is found again."""
    zombie_id, caller = call.id("zombie_id"), call.caller
    await call.services.scopes.require_zombie(call.id("workspace_id"), zombie_id)
    message = Request(
        grant_id=call.new_id(),
        tenant_id=caller.tenant_id,
        workspace_id=call.id("workspace_id"),
        service=call.body.service,
        reason=call.body.reason,
        by=caller.by,
    )
    reply = await ask(call.ctx.system, "grants", zombie_id, message)
    return reply if isinstance(reply, Refusal) else _word_back(call, reply, message.grant_id)


@operation(
    "POST",
    "/v1/runners/me/leases/{lease_id}/integration-requests",
    tag=TAG,
    auth=Auth.RUNNER,
    status=CREATED,
    extra_statuses=(FOUND,),
    answer=GrantMade,
    codes=("UZ-RUN-005", "UZ-RUN-006", "UZ-SHADOW-001"),
    creates=Creates.AGAIN,
)
async def request_from_run(call: Call[NewRequest, NoQuery]) -> Answer | Refusal:
    """Ask for the use of a service from inside a run."""
    service = call.body.service
    message = AskIntegration(call.host.runner.id, service, call.body.reason)
    reply = await call.ctx.system.ask("lease", call.id("lease_id"), message)
    return reply if isinstance(reply, Refusal) else _word_back(call, reply, None)


@operation(
    "POST",
    "/v1/runners/me/leases/{lease_id}/integrations/{service}",
    tag=TAG,
    auth=Auth.RUNNER,
    codes=(
        "UZ-GRANT-001",
        "UZ-GRANT-002",
        "UZ-GRANT-003",
        "UZ-RUN-005",
        "UZ-RUN-006",
        "UZ-SHADOW-001",
        "UZ-ZMB-003",
    ),
)
async def lend_integration(call: Call[NoBody, NoQuery]) -> LentService | Refusal:
    """Lend a run the credential of a service that its agent was granted; the stream shows that it was."""
    service = call.text("service")
    if not _SERVICE.fullmatch(service):
        raise Problem("UZ-GRANT-001", "no service has such a name")
    message = Lend(call.host.runner.id, service)
    match await call.ctx.system.ask("lease", call.id("lease_id"), message):
        case Refusal() as refusal:
            return refusal
        case Lent(data=data, hosts=hosts):
            return LentService(service, dict(data), hosts)


def _word_back(call: Call[Any, Any], reply: Requested, made: UUID | None) -> Answer:
    grant = reply.grant
    # The same request under the same Idempotency-Key, once more: it was this one that made the grant.
    status = CREATED if reply.made or grant.id == made else FOUND
    shown = GrantMade(grant.id, grant.zombie_id, grant.service, grant.status, grant.requested_at)
    body = msgspec.json.encode(shown)
    return Answer(status, (JSON_TYPE,), b'%b,"request_id":"%b"}' % (body[:-1], call.request_id.encode()))


# --- looking ------------------------------------------------------------------------------------------------


@operation("GET", OF_ZOMBIE + "/integration-grants", tag=TAG, codes=("UZ-ZMB-009",))
async def list_zombie_grants(call: Call[NoBody, GrantQuery]) -> GrantPage:
    """List one agent's grants and requests, newest first."""
    zombie_id = call.id("zombie_id")
    await call.services.scopes.require_zombie(call.id("workspace_id"), zombie_id)
    return await _page(call, call.query, zombie_id)


@operation("GET", "/v1/workspaces/{workspace_id}/integration-grants", tag=TAG)
async def list_workspace_grants(call: Call[NoBody, WorkspaceGrantQuery]) -> GrantPage:
    """List a workspace's grants and requests, newest first."""
    return await _page(call, call.query, call.query.zombie_id)


async def _page(call: Call[Any, Any], query: GrantQuery, zombie_id: UUID | None) -> GrantPage:
    workspace_id = call.id("workspace_id")
    filters = fingerprint("grants", workspace_id, zombie_id, query.status)
    place = None if query.cursor is None else decode(query.cursor, filters)
    rows = await call.ctx.world.storage.grants.list(
        workspace_id,
        limit=query.limit + 1,
        before=None if place is None else place.page,
        zombie_id=zombie_id,
        status=query.status,
    )
    shown = rows[: query.limit]
    more = len(rows) > query.limit
    following = encode(Place(shown[-1].created_at, shown[-1].id, filters)) if more else None
    return GrantPage([_item(grant) for grant in shown], following)


# --- deciding -----------------------------------------------------------------------------------------------


@operation("PATCH", ONE, tag=TAG, role=Role.OPERATOR, codes=CHANGE_CODES)
async def change_grant(call: Call[GrantPatch, NoQuery]) -> GrantItem | Refusal:
    """Approve, deny or revoke; the same answer again changes nothing, and what is not open is not revoked."""
    return await _decided(call, GrantStatus(call.body.status.value))


@operation("DELETE", ONE, tag=TAG, role=Role.OPERATOR, status=204, codes=CHANGE_CODES)
async def revoke_grant(call: Call[NoBody, NoQuery]) -> Refusal | None:
    """Take a grant back, or withdraw a request; the agent may ask again."""
    reply = await _decided(call, GrantStatus.REVOKED)
    return reply if isinstance(reply, Refusal) else None


async def _decided(call: Call[Any, Any], status: GrantStatus) -> GrantItem | Refusal:
    zombie_id = call.id("zombie_id")
    await call.services.scopes.require_zombie(call.id("workspace_id"), zombie_id)
    return await _decide(call, zombie_id, Decide(call.id("grant_id"), status, call.member.by))


@operation(
    "POST",
    "/v1/webhooks/{zombie_id}/grant-approval",
    tag=TAG,
    auth=Auth.APPROVAL,
    codes=("UZ-APPROVAL-002", "UZ-APPROVAL-006"),
    press=True,
)
async def decide_grant_by_webhook(call: Call[GrantDecision, NoQuery]) -> GrantItem | Refusal:
    """Approve or deny a request with the agent's approval token, or by a button in a chat.

    A chat platform sends its signed interactive form: its field `payload` holds an object whose
    `actions[0].value` reads `approve:<grant_id>` or `deny:<grant_id>`.
    """
    zombie_id = call.id("zombie_id")
    if isinstance(call.principal, Presser):
        press = await press_of(call, await load_agent(call, zombie_id))
        grant_id, approve, by = _grant_id(press.subject), press.approve, press.by
    else:
        grant_id, by = call.body.grant_id, f"api:{zombie_id}"
        approve = call.body.decision is ApproveOrDeny.APPROVE
    status = GrantStatus.APPROVED if approve else GrantStatus.DENIED
    by_token = not isinstance(call.principal, Presser)
    scope = await call.services.scopes.zombie(zombie_id)
    entry = None
    if scope is not None:
        entry = entry_by(call, scope.tenant_id, by, workspace_id=scope.workspace_id)
    with attributed(entry):
        return await _decide(call, zombie_id, Decide(grant_id, status, by, by_token=by_token))


def _grant_id(subject: str) -> UUID:
    try:
        return UUID(subject)
    except ValueError:
        raise Problem("UZ-APPROVAL-002", "the button is not about a grant of this agent") from None


async def _decide(call: Call[Any, Any], zombie_id: UUID, message: Decide) -> GrantItem | Refusal:
    reply = await ask(call.ctx.system, "grants", zombie_id, message)
    return reply if isinstance(reply, Refusal) else _item(reply)


def _item(grant: Grant) -> GrantItem:
    return GrantItem(
        grant_id=grant.id,
        zombie_id=grant.zombie_id,
        workspace_id=grant.workspace_id,
        service=grant.service,
        status=grant.status,
        reason=grant.reason,
        requested_at=grant.requested_at,
        requested_by=grant.requested_by,
        decided_at=grant.decided_at,
        approved_at=grant.decided_at if grant.status is GrantStatus.APPROVED else None,
        decided_by=grant.decided_by,
    )
