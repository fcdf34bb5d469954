"""Knows which tenant a workspace or an agent is of, and keeps that in mind for a while."""

from collections.abc import Callable
from typing import Final, TypeVar
from uuid import UUID

import msgspec

from sexton_http.answers import Problem
from sexton_http.identity.principals import Member
from sexton_storage.records.tenants import PlanTier
from sexton_storage.records.workspaces import Workspace
from sexton_storage.records.zombies import ZombieStatus
from sexton_storage.stores import Storage

V = TypeVar("V")

REMEMBER_S: Final = 2.0
REMEMBER_COUNT: Final = 65_536


class Scope(msgspec.Struct, frozen=True):
    """Where an agent belongs, and by which plan its webhooks are counted."""

    workspace_id: UUID
    tenant_id: UUID
    plan: PlanTier
    killed: bool = False


class Scopes:
    """What is not found is never remembered, so a new record is seen at once."""

    def __init__(self, storage: Storage, monotonic: Callable[[], float]) -> None:
        self._storage = storage
        self._monotonic = monotonic
        self._workspaces: dict[UUID, tuple[Workspace, float]] = {}
        self._zombies: dict[UUID, tuple[Scope, float]] = {}

    async def workspace(self, member: Member, workspace_id: UUID) -> Workspace:
        """The caller's own. Raises Problem UZ-AUTH-001 or UZ-WORKSPACE-001."""
        if member.workspace_id is not None and member.workspace_id != workspace_id:
            raise Problem("UZ-AUTH-001", "the token is limited to another workspace")
        found = self._workspaces.get(workspace_id)
        if found is None or found[1] <= self._monotonic():
            workspace = await self._storage.workspaces.load(workspace_id)
            if workspace is None:
                raise Problem("UZ-WORKSPACE-001", f"there is no workspace {workspace_id}")
            found = self._keep(self._workspaces, workspace_id, workspace)
        if found[0].tenant_id != member.tenant_id:
            raise Problem("UZ-WORKSPACE-001", f"there is no workspace {workspace_id}")
        return found[0]

    def forget_workspace(self, workspace_id: UUID) -> None:
        """It was changed on this node, and is so from now on."""
        self._workspaces.pop(workspace_id, None)

    async def zombie(self, zombie_id: UUID) -> Scope | None:
        """None for an agent that does not exist."""
        found = self._zombies.get(zombie_id)
        if found is None or found[1] <= self._monotonic():
            standing = await self._storage.zombies.standing(zombie_id)
            if standing is None:
                return None
            scope = Scope(
                standing.workspace_id,
                standing.tenant_id,
                standing.plan_tier,
                killed=standing.status is ZombieStatus.KILLED,
            )
            found = self._keep(self._zombies, zombie_id, scope)
        return found[0]

    def forget_zombie(self, zombie_id: UUID) -> None:
        """It was deleted on this node, and is so from now on."""
        self._zombies.pop(zombie_id, None)

    async def require_zombie(self, workspace_id: UUID, zombie_id: UUID) -> Scope:
        """The agent of this workspace. Raises Problem UZ-ZMB-009."""
        scope = await self.zombie(zombie_id)
        if scope is None or scope.workspace_id != workspace_id:
            raise Problem("UZ-ZMB-009", f"the workspace has no agent {zombie_id}")
        return scope

    def _keep(self, kept: dict[UUID, tuple[V, float]], key: UUID, value: V) -> tuple[V, float]:
        if len(kept) >= REMEMBER_COUNT:
            kept.clear()
        kept[key] = (value, self._monotonic() + REMEMBER_S)
        return kept[key]
