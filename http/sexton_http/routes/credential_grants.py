"""Grants of credentials: what a user's agent asks to be lent, and an operator's word on it."""

from typing import Annotated, Any
from uuid import UUID

import msgspec

from sexton_actors.loans import CredentialGrant, grants_of
from sexton_actors.manifest.model import from_json
from sexton_actors.protocol.zombie import DecideCredential
from sexton_actors.refusal import Refusal
from sexton_http.bodies.cursors import Place, decode, encode, fingerprint
from sexton_http.bodies.grant_shapes import CredentialGrantItem, CredentialGrantPage, GrantTarget
from sexton_http.bodies.shapes import Body, Cursor, Query
from sexton_http.gateway.audit_entries import ask
from sexton_http.gateway.call import Call
from sexton_http.gateway.operations import NoBody, NoQuery, operation
from sexton_storage.records.grants import GrantStatus
from sexton_storage.records.users import Role
from sexton_storage.records.zombies import Zombie

TAG = "Credentials"
ONE = "/v1/workspaces/{workspace_id}/zombies/{zombie_id}/credential-grants/{credential}"
CODES = ("UZ-ZMB-009", "UZ-ZMB-010", "UZ-APPROVAL-002", "UZ-REQ-009")


class CredentialGrantQuery(Query):
    zombie_id: UUID | None = None
    status: GrantStatus | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=100)] = 20
    """Agents that are looked at."""
    cursor: Cursor | None = None


class CredentialGrantPatch(Body):
    status: GrantTarget


@operation("GET", "/v1/workspaces/{workspace_id}/credential-grants", tag=TAG)
async def list_credential_grants(call: Call[NoBody, CredentialGrantQuery]) -> CredentialGrantPage:
    """List which agents may be lent which credentials, by agent, the newest first."""
    query, workspace_id, zombies = call.query, call.id("workspace_id"), call.ctx.world.storage.zombies
    if query.zombie_id is not None:
        zombie = await zombies.load(query.zombie_id)
        if zombie is None or zombie.workspace_id != workspace_id:
            return CredentialGrantPage([], None)
        return CredentialGrantPage(_items(zombie, query.status), None)
    filters = fingerprint("credential-grants", workspace_id, query.status)
    place = None if query.cursor is None else decode(query.cursor, filters)
    rows = await zombies.list(
        workspace_id,
        limit=query.limit + 1,
        after=None if place is None else place.page,
        lending=query.status,
    )
    shown = rows[: query.limit]
    more = len(rows) > query.limit
    following = encode(Place(shown[-1].created_at, shown[-1].id, filters)) if more else None
    return CredentialGrantPage([item for one in shown for item in _items(one, query.status)], following)


@operation("PATCH", ONE, tag=TAG, role=Role.OPERATOR, codes=CODES)
async def change_credential_grant(
    call: Call[CredentialGrantPatch, NoQuery],
) -> CredentialGrantItem | Refusal:
    """Approve, deny or revoke the lending of a credential to an agent.

    Approval holds for the hosts and tools that the agent's files name now; its events that wait go on.
    """
    return await _decided(call, GrantStatus(call.body.status.value))


@operation("DELETE", ONE, tag=TAG, role=Role.OPERATOR, status=204, codes=CODES)
async def revoke_credential_grant(call: Call[NoBody, NoQuery]) -> Refusal | None:
    """Take the grant back: the agent's events wait from the next one on."""
    reply = await _decided(call, GrantStatus.REVOKED)
    return reply if isinstance(reply, Refusal) else None


async def _decided(call: Call[Any, Any], status: GrantStatus) -> CredentialGrantItem | Refusal:
    zombie_id = call.id("zombie_id")
    await call.services.scopes.require_zombie(call.id("workspace_id"), zombie_id)
    message = DecideCredential(call.text("credential"), status, call.member.by)
    reply = await ask(call.ctx.system, "zombie", zombie_id, message)
    return reply if isinstance(reply, Refusal) else _item(zombie_id, reply)


def _items(zombie: Zombie, status: GrantStatus | None) -> list[CredentialGrantItem]:
    grants = grants_of(zombie.lending, from_json(zombie.compiled))
    return [_item(zombie.id, grant) for grant in grants if status in {None, grant.status}]


def _item(zombie_id: UUID, grant: CredentialGrant) -> CredentialGrantItem:
    return CredentialGrantItem(
        zombie_id=zombie_id,
        credential=grant.credential,
        status=grant.status,
        hosts=grant.reach.hosts,
        tools=grant.reach.tools,
        requested_at=grant.requested_at,
        requested_by=grant.requested_by,
        decided_at=grant.decided_at,
        decided_by=grant.decided_by,
    )
