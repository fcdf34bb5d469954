"""MCP servers of a workspace: by name, replaced, bounded, and of one workspace only."""

from typing import Any

from msgspec.structs import replace

from sexton_storage.records.mcp_servers import MAX_SERVERS, McpServer
from tests.worlds.storage import StorageWorld


def server_of(world: StorageWorld, name: str = "hub", **changes: Any) -> McpServer:
    server = McpServer(
        workspace_id=world.workspace_id,
        name=name,
        url="https://mcp.example.com/mcp",
        command="",
        headers={"authorization": "Bearer ${secrets.hub.token}"},
        env={},
        tools=("read", "write"),
        created_at=1_000,
        updated_at=1_000,
        updated_by="user:1",
    )
    return replace(server, **changes)


async def test_a_server_is_kept_replaced_found_and_removed(world: StorageWorld) -> None:
    servers, hub = world.storage.mcp_servers, server_of(world)
    later = replace(hub, url="", command="files", headers={}, env={"A": "b"}, tools=(), created_at=2_000)

    assert await servers.put(hub)
    assert await servers.put(server_of(world, "Zoo"))
    assert await servers.put(later)

    assert await servers.named(world.workspace_id, ["hub", "none"]) == [replace(later, created_at=1_000)]
    assert [row.name for row in await servers.list(world.workspace_id)] == ["Zoo", "hub"]

    assert await servers.delete(world.workspace_id, "hub")
    assert not await servers.delete(world.workspace_id, "hub")
    assert await servers.named(world.workspace_id, ["hub"]) == []


async def test_a_workspace_has_so_many_and_one_that_is_there_can_be_changed_then(world: StorageWorld) -> None:
    servers = world.storage.mcp_servers
    for number in range(MAX_SERVERS):
        assert await servers.put(server_of(world, f"s{number}"))

    assert not await servers.put(server_of(world, "one-more"))
    assert await servers.put(server_of(world, "s0", tools=()))
    assert len(await servers.list(world.workspace_id)) == MAX_SERVERS
