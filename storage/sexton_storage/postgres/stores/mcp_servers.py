"""MCP servers of workspaces, in PostgreSQL."""

from collections.abc import Sequence
from uuid import UUID

from sexton_storage.postgres.connections.connection import Connection
from sexton_storage.postgres.sql.rows import Rows
from sexton_storage.postgres.stores.base import PostgresStore
from sexton_storage.records.mcp_servers import MAX_SERVERS, McpServer

SERVERS = Rows(McpServer)
_SELECT = f"SELECT {SERVERS.columns()} FROM mcp_servers WHERE workspace_id = $1"
_BY_NAME = 'ORDER BY name COLLATE "C"'
_OTHERS = "SELECT count(*) FROM mcp_servers WHERE workspace_id = $1 AND name <> $2"
_LOCK = "SELECT id FROM workspaces WHERE id = $1 FOR NO KEY UPDATE"
_PUT = f"""
{SERVERS.insert("mcp_servers")}
ON CONFLICT (workspace_id, name) DO UPDATE SET url = excluded.url, command = excluded.command,
    headers = excluded.headers, env = excluded.env, tools = excluded.tools,
    updated_at = excluded.updated_at, updated_by = excluded.updated_by
"""


class PostgresMcpServers(PostgresStore):
    async def put(self, server: McpServer) -> bool:
        async def work(connection: Connection) -> bool:
            # Locked, so that two who come at once do not both take the last place.
            await connection.fetchval(_LOCK, server.workspace_id)
            if await connection.fetchval(_OTHERS, server.workspace_id, server.name) >= MAX_SERVERS:
                return False
            await connection.execute(_PUT, *SERVERS.values(server))
            return True

        return await self._database.change(work)

    async def list(self, workspace_id: UUID) -> Sequence[McpServer]:
        return SERVERS.many(await self._rows(f"{_SELECT} {_BY_NAME}", workspace_id))

    async def named(self, workspace_id: UUID, names: Sequence[str]) -> Sequence[McpServer]:
        query = f"{_SELECT} AND name = ANY($2) {_BY_NAME}"
        return SERVERS.many(await self._rows(query, workspace_id, list(names)))

    async def delete(self, workspace_id: UUID, name: str) -> bool:
        query = "DELETE FROM mcp_servers WHERE workspace_id = $1 AND name = $2 RETURNING name"
        return await self._database.change(lambda c: c.fetchval(query, workspace_id, name)) is not None
