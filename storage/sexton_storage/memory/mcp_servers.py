"""MCP servers of workspaces, in memory."""

from collections.abc import Sequence
from uuid import UUID

from msgspec.structs import replace

from sexton_storage.documents import copied
from sexton_storage.memory.base import MemoryStore
from sexton_storage.records.mcp_servers import MAX_SERVERS, McpServer


class MemoryMcpServers(MemoryStore):
    async def put(self, server: McpServer) -> bool:
        await self._round_trip()
        rows, key = self._tables.mcp_servers, (server.workspace_id, server.name)
        others = [place for place in rows if place[0] == server.workspace_id and place != key]
        if len(others) >= MAX_SERVERS:
            return False
        created_at = rows[key].created_at if key in rows else server.created_at
        rows[key] = replace(
            server, headers=copied(server.headers), env=copied(server.env), created_at=created_at
        )
        return True

    async def list(self, workspace_id: UUID) -> Sequence[McpServer]:
        await self._round_trip()
        found = [row for place, row in self._tables.mcp_servers.items() if place[0] == workspace_id]
        return sorted(found, key=lambda row: row.name)

    async def named(self, workspace_id: UUID, names: Sequence[str]) -> Sequence[McpServer]:
        return [row for row in await self.list(workspace_id) if row.name in names]

    async def delete(self, workspace_id: UUID, name: str) -> bool:
        await self._round_trip()
        return self._tables.mcp_servers.pop((workspace_id, name), None) is not None
