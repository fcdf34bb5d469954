"""Counts what a tenant has, in PostgreSQL."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final
from uuid import UUID

from sexton_storage.postgres.stores.base import PostgresStore
from sexton_storage.records.holdings import Holding

_OF_AGENTS: Final = "workspaces w JOIN zombies z ON z.workspace_id = w.id"
# By way of the workspaces where that is what the indexes begin with.
_ROWS: Final[Mapping[Holding, str]] = MappingProxyType(
    {
        Holding.WORKSPACES: "workspaces w WHERE w.tenant_id = $1",
        Holding.CREDENTIALS: (
            "workspaces w JOIN credentials c ON c.workspace_id = w.id"
            " WHERE w.tenant_id = $1 AND strpos(c.name, '/') = 0"
        ),
        Holding.API_KEYS: "api_keys k WHERE k.tenant_id = $1",
        Holding.AGENT_KEYS: (
            "workspaces w JOIN agent_keys k ON k.workspace_id = w.id WHERE w.tenant_id = $1"
        ),
        Holding.PROPOSALS: f"{_OF_AGENTS} JOIN proposals p ON p.zombie_id = z.id WHERE w.tenant_id = $1",
        Holding.DRAFTS: (
            f"{_OF_AGENTS} JOIN config_versions c ON c.zombie_id = z.id"
            " WHERE w.tenant_id = $1 AND c.status NOT IN ('ACTIVE', 'SUPERSEDED')"
        ),
        Holding.QUEUED_MESSAGES: (
            "workspaces w JOIN waiting_events e ON e.workspace_id = w.id WHERE w.tenant_id = $1"
        ),
        Holding.CRONS: f"{_OF_AGENTS} JOIN cron_triggers k ON k.zombie_id = z.id WHERE w.tenant_id = $1",
    }
)


class PostgresHoldings(PostgresStore):
    async def count(self, tenant_id: UUID, holding: Holding, *, at_most: int) -> int:
        query = f"SELECT count(*) FROM (SELECT FROM {_ROWS[holding]} LIMIT $2) held"
        found: int = await self._value(query, tenant_id, at_most)
        return found
