"""Counts what a tenant has, in memory."""

from collections.abc import Iterable
from typing import assert_never
from uuid import UUID

from sexton_storage.memory.base import MemoryStore
from sexton_storage.records.configs import ConfigStatus
from sexton_storage.records.events import EventStatus
from sexton_storage.records.holdings import Holding

_WAS_ACTIVE = frozenset({ConfigStatus.ACTIVE, ConfigStatus.SUPERSEDED})


class MemoryHoldings(MemoryStore):
    async def count(self, tenant_id: UUID, holding: Holding, *, at_most: int) -> int:
        await self._round_trip()
        return min(at_most, sum(owner == tenant_id for owner in self._owners(holding)))

    def _owners(self, holding: Holding) -> Iterable[UUID | None]:
        """The tenant of each row."""
        tables = self._tables
        match holding:
            case Holding.WORKSPACES:
                return (one.tenant_id for one in tables.workspaces.values())
            case Holding.CREDENTIALS:
                return (self._of_workspace(place) for place, name in tables.credentials if "/" not in name)
            case Holding.API_KEYS:
                return (one.tenant_id for one in tables.api_keys.values())
            case Holding.AGENT_KEYS:
                return (one.tenant_id for one in tables.agent_keys.values())
            case Holding.PROPOSALS:
                return (one.tenant_id for one in tables.proposals.values())
            case Holding.DRAFTS:
                drafts = (one for one in tables.configs.values() if one.status not in _WAS_ACTIVE)
                return (self._of_agent(one.zombie_id) for one in drafts)
            case Holding.QUEUED_MESSAGES:
                events = tables.events.values()
                return (one.tenant_id for one in events if one.status is EventStatus.RECEIVED)
            case Holding.CRONS:
                return (self._of_agent(zombie_id) for zombie_id, _, _ in tables.crons)
            case _:
                assert_never(holding)

    def _of_workspace(self, workspace_id: UUID) -> UUID | None:
        workspace = self._tables.workspaces.get(workspace_id)
        return None if workspace is None else workspace.tenant_id

    def _of_agent(self, zombie_id: UUID) -> UUID | None:
        agent = self._tables.zombies.get(zombie_id)
        return None if agent is None else agent.tenant_id
