"""The tenant's workspaces."""

from typing import Annotated
from uuid import UUID

import msgspec
from msgspec.structs import replace

from sexton_actors.signals import workspace_changed
from sexton_http.answers import Problem
from sexton_http.bodies.names import shown
from sexton_http.bodies.shapes import NAME_CHARS, Body, Shape, WorkspaceItem, WorkspaceList
from sexton_http.gateway.call import Call
from sexton_http.gateway.operations import Creates, NoBody, NoQuery, operation
from sexton_http.routes.shared.plan_limits import entitled_of
from sexton_storage.errors import NameTaken
from sexton_storage.records.tenants import PlanTier
from sexton_storage.records.users import Role
from sexton_storage.records.workspaces import Workspace

TAG = "Workspaces"


Name = Annotated[str, msgspec.Meta(min_length=1, max_length=NAME_CHARS)]


class NewWorkspace(Body):
    name: Name | None = None
    """Without one, a name is made."""


class WorkspacePatch(Body):
    """What is left out stays as it is."""

    name: Name | None = None
    paused: bool | None = None


class WorkspaceMade(Shape):
    workspace_id: UUID
    name: str


@operation("GET", "/v1/tenants/me/workspaces", tag=TAG)
async def list_workspaces(call: Call[NoBody, NoQuery]) -> WorkspaceList:
    """List the tenant's workspaces, or the one that the token is limited to."""
    member = call.member
    rows = await call.ctx.world.storage.workspaces.list(member.tenant_id)
    items = [_item(row, member.plan) for row in rows if member.workspace_id in {None, row.id}]
    return WorkspaceList(items, len(items))


@operation(
    "POST",
    "/v1/workspaces",
    tag=TAG,
    status=201,
    creates=Creates.AGAIN,
    tenant_wide=True,
    codes=("UZ-WORKSPACE-003", "UZ-WORKSPACE-004", "UZ-ENTL-001"),
)
async def create_workspace(call: Call[NewWorkspace, NoQuery]) -> WorkspaceMade:
    """Make a workspace."""
    member, world = call.member, call.ctx.world
    entitled = await entitled_of(call)
    limit = entitled.limits.workspaces
    if limit is not None and len(await world.storage.workspaces.list(member.tenant_id)) >= limit:
        raise Problem("UZ-WORKSPACE-003", f"the {entitled.tier} plan allows {limit} workspaces")
    workspace_id = call.new_id()
    name = f"workspace-{workspace_id.hex[-8:]}" if call.body.name is None else shown(call.body.name, "/name")
    workspace = Workspace(workspace_id, member.tenant_id, name, paused=False, created_at=world.now_ms())
    try:
        await world.storage.workspaces.create(workspace)
    except NameTaken as taken:
        if await world.storage.workspaces.load(workspace_id) is not None:
            return WorkspaceMade(workspace_id, name)  # By this request, before its server died.
        raise Problem("UZ-WORKSPACE-004", f"there is a workspace named {name!r}") from taken
    return WorkspaceMade(workspace_id, name)


@operation("GET", "/v1/workspaces/{workspace_id}", tag=TAG)
async def get_workspace(call: Call[NoBody, NoQuery]) -> WorkspaceItem:
    """Show one workspace."""
    workspace = await call.services.scopes.workspace(call.member, call.id("workspace_id"))
    return _item(workspace, call.member.plan)


@operation("PATCH", "/v1/workspaces/{workspace_id}", tag=TAG, role=Role.OPERATOR, codes=("UZ-WORKSPACE-004",))
async def change_workspace(call: Call[WorkspacePatch, NoQuery]) -> WorkspaceItem:
    """Rename a workspace, pause it, or let it go on."""
    scopes, store, patch = call.services.scopes, call.ctx.world.storage.workspaces, call.body
    known = await scopes.workspace(call.member, call.id("workspace_id"))
    # What is remembered may be two seconds old, and a save writes both of its fields.
    old = await store.load(known.id) or known
    new = replace(
        old,
        name=old.name if patch.name is None else shown(patch.name, "/name"),
        paused=old.paused if patch.paused is None else patch.paused,
    )
    try:
        await store.save(new)
    except NameTaken as taken:
        raise Problem("UZ-WORKSPACE-004", f"there is a workspace named {new.name!r}") from taken
    scopes.forget_workspace(new.id)
    workspace_changed(call.ctx.world, call.ctx.system.tell, new.id)
    return _item(new, call.member.plan)


def _item(workspace: Workspace, plan: PlanTier) -> WorkspaceItem:
    return WorkspaceItem(
        id=workspace.id,
        workspace_id=workspace.id,
        name=workspace.name,
        plan_tier=plan,
        paused=workspace.paused,
        created_at=workspace.created_at,
    )
