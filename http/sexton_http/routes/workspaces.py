"""The tenant's workspaces."""

from typing import Annotated
from uuid import UUID

import msgspec

from sexton_http.answers import Problem
from sexton_http.operations import Call, Creates, NoBody, NoQuery, operation
from sexton_http.shapes import Body, Shape
from sexton_storage.records import PlanTier, Workspace
from sexton_storage.stores import NameTaken

TAG = "Workspaces"
NAME_CHARS = 64


class WorkspaceItem(Shape):
    id: UUID
    workspace_id: UUID
    name: str
    plan_tier: PlanTier
    paused: bool
    created_at: int


class WorkspaceList(Shape):
    items: list[WorkspaceItem]
    total: int


class NewWorkspace(Body):
    name: Annotated[str, msgspec.Meta(min_length=1, max_length=NAME_CHARS)] | None = None
    """Without one, a name is made."""


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
    codes=("UZ-WORKSPACE-003", "UZ-WORKSPACE-004", "UZ-AUTH-001"),
)
async def create_workspace(call: Call[NewWorkspace, NoQuery]) -> WorkspaceMade:
    """Make a workspace."""
    member, world, limit = call.member, call.ctx.world, call.ctx.settings.free_workspaces
    if member.workspace_id is not None:
        raise Problem("UZ-AUTH-001", "the token is limited to one workspace")
    if member.plan is PlanTier.FREE and len(await world.storage.workspaces.list(member.tenant_id)) >= limit:
        raise Problem("UZ-WORKSPACE-003", f"the free plan holds {limit} workspaces")
    workspace_id = call.new_id()
    name = f"workspace-{workspace_id.hex[-8:]}" if call.body.name is None else call.body.name
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


def _item(workspace: Workspace, plan: PlanTier) -> WorkspaceItem:
    return WorkspaceItem(
        id=workspace.id,
        workspace_id=workspace.id,
        name=workspace.name,
        plan_tier=plan,
        paused=workspace.paused,
        created_at=workspace.created_at,
    )
