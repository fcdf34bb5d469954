"""The pages of grants: what the interface does, in forms that need no script."""

from typing import Any, Final
from uuid import UUID

from msgspec.structs import replace

from sexton_http.answers import Answer, Problem
from sexton_http.bodies.grant_shapes import CredentialGrantPage, GrantPage
from sexton_http.bodies.shapes import Cursor, Query, WorkspaceItem, WorkspaceList
from sexton_http.gateway.call import Call
from sexton_http.gateway.operations import NoBody, NoQuery, Operation
from sexton_http.identity.principals import SignedIn
from sexton_http.pages.form_actions import FormDecoder, act, form_operation, may, page_operation
from sexton_http.pages.forms import Trouble, trouble_of
from sexton_http.pages.grants import Shown, grants_page, no_grants_page
from sexton_http.pages.layout import see
from sexton_http.routes.credential_grants import (
    CredentialGrantPatch,
    CredentialGrantQuery,
    change_credential_grant,
    list_credential_grants,
)
from sexton_http.routes.grants import GrantPatch, WorkspaceGrantQuery, change_grant, list_workspace_grants
from sexton_http.routes.workspaces import list_workspaces
from sexton_storage.records.grants import GrantStatus
from sexton_storage.records.users import Role

HOME: Final = "/grants"
ONE: Final = HOME + "/{workspace_id}"
NOT_FOUND: Final = 404
WAITING: Final = 50
DECIDED: Final = 20
# With these the page comes back and says why.
REFUSED: Final = (403, NOT_FOUND, 409)


class GrantsQuery(Query):
    workspace_id: UUID | None = None
    """Without it, the tenant's first."""
    waiting_credentials: Cursor | None = None
    """Where the list of credentials that wait for a word goes on."""
    waiting_services: Cursor | None = None
    """Where the list of services that wait for a word goes on."""
    credentials: Cursor | None = None
    """Where the list of credentials goes on."""
    services: Cursor | None = None
    """Where the list of services goes on."""


_CREDENTIAL: Final = FormDecoder(CredentialGrantPatch)
_SERVICE: Final = FormDecoder(GrantPatch)


@page_operation(HOME, extra_statuses=(NOT_FOUND,))
async def show_grants(call: Call[NoBody, GrantsQuery], who: SignedIn) -> Answer:
    """Show which agents of a workspace may use which credentials and services, and what waits for a word."""
    return await _page(call, who, call.query)


async def _refused(call: Call[NoBody, NoQuery], problem: Problem) -> Answer:
    # There is no page of the person's own that leads to a workspace that is not there.
    if problem.code == "UZ-WORKSPACE-001":
        raise problem
    query = GrantsQuery(call.id("workspace_id"))
    return await _page(call, call.signed_in, query, trouble_of(problem, call.request_id, ()))


@form_operation(
    ONE + "/credentials/{zombie_id}/{credential}", _refused, statuses=REFUSED, form=CredentialGrantPatch
)
async def submit_credential_grant(call: Call[NoBody, NoQuery]) -> Answer:
    """Approve, deny or revoke the lending of a credential, and go back to the list."""
    return await _decided(call, change_credential_grant, _CREDENTIAL)


@form_operation(ONE + "/services/{zombie_id}/{grant_id}", _refused, statuses=REFUSED, form=GrantPatch)
async def submit_grant(call: Call[NoBody, NoQuery]) -> Answer:
    """Approve, deny or revoke the grant of a service, and go back to the list."""
    return await _decided(call, change_grant, _SERVICE)


async def _decided(call: Call[NoBody, NoQuery], route: Operation, form: FormDecoder[Any]) -> Answer:
    await act(call, call.signed_in, route, body=form.decode(call))
    return see(f"{HOME}?workspace_id={call.id('workspace_id')}")


async def _page(
    call: Call[NoBody, GrantsQuery] | Call[NoBody, NoQuery],
    who: SignedIn,
    query: GrantsQuery,
    trouble: Trouble | None = None,
) -> Answer:
    listed: WorkspaceList = await act(call, who, list_workspaces)
    here = [row for row in listed.items if query.workspace_id in {None, row.id}]
    if not here:
        return no_grants_page(who, NOT_FOUND)
    shown = await _shown(call, who, query, here[0], listed)
    role = change_grant.role or Role.OPERATOR
    return grants_page(who, shown, changeable=may(who, change_grant), needed=role.value, trouble=trouble)


async def _shown(
    call: Call[NoBody, GrantsQuery] | Call[NoBody, NoQuery],
    who: SignedIn,
    query: GrantsQuery,
    workspace: WorkspaceItem,
    listed: WorkspaceList,
) -> Shown:
    there = replace(call, params={**call.params, "workspace_id": workspace.id})
    waiting = GrantStatus.PENDING
    asked: CredentialGrantPage = await act(
        there,
        who,
        list_credential_grants,
        query=CredentialGrantQuery(status=waiting, limit=WAITING, cursor=query.waiting_credentials),
    )
    services_asked: GrantPage = await act(
        there,
        who,
        list_workspace_grants,
        query=WorkspaceGrantQuery(status=waiting, limit=WAITING, cursor=query.waiting_services),
    )
    credentials: CredentialGrantPage = await act(
        there,
        who,
        list_credential_grants,
        query=CredentialGrantQuery(limit=DECIDED, cursor=query.credentials),
    )
    services: GrantPage = await act(
        there, who, list_workspace_grants, query=WorkspaceGrantQuery(limit=DECIDED, cursor=query.services)
    )
    lent, used = (*asked.items, *credentials.items), (*services_asked.items, *services.items)
    ids = {grant.zombie_id for grant in lent} | {grant.zombie_id for grant in used}
    found = [await call.ctx.world.storage.zombies.load(zombie_id) for zombie_id in ids]
    names = {zombie.id: zombie.name for zombie in found if zombie is not None}
    return Shown(workspace, listed.items, asked, services_asked, credentials, services, names)
