"""What a run is told of the MCP servers that its workspace declares, or why it must not start."""

from typing import Any

import msgspec

from sexton_actors.manifest.model import Manifest
from sexton_actors.mcp_declarations import Place, host_of, may_go, not_allowed, places
from sexton_actors.world import World
from sexton_storage.records.leases import Lease
from sexton_storage.records.mcp_servers import McpServer


class NotToBeHad(msgspec.Struct, frozen=True):
    """The run must not start: a server that it names cannot be given to it."""

    label: str
    """One of ``FAILURE_CODES``."""
    detail: str


async def open_mcp_servers(
    lease: Lease, manifest: Manifest, world: World
) -> list[dict[str, Any]] | NotToBeHad:
    """The servers, with those secrets of the vault that they are sent. Raises StorageUnavailable."""
    if not manifest.mcp_servers:
        return []
    declared = await world.storage.mcp_servers.named(lease.workspace_id, manifest.mcp_servers)
    known = {server.name: server for server in declared}
    told = []
    for name in manifest.mcp_servers:
        server = known.get(name)
        if server is None:
            return _undeclared(name)
        opened = await _opened(server, lease, manifest, world)
        if isinstance(opened, NotToBeHad):
            return opened
        told.append(opened)
    return told


async def _opened(
    server: McpServer, lease: Lease, manifest: Manifest, world: World
) -> dict[str, Any] | NotToBeHad:
    if refused := not_allowed(server.name, server.tools, manifest.tools):
        detail = f"The workspace does not allow these tools of the MCP server {server.name}: "
        return NotToBeHad("invalid_config", f"{detail}{', '.join(refused)}.")
    secrets: dict[str, str] = {}
    for place in places(server.headers):
        value = await _secret(server, place, lease, world)
        if isinstance(value, NotToBeHad):
            return value
        secrets[str(place)] = value
    if unlent := _unlent(server, manifest):
        return unlent
    return {
        "name": server.name,
        "url": server.url,
        "command": server.command,
        "headers": server.headers,
        "env": server.env,
        "tools": server.tools,
        "secrets": secrets,
    }


async def _secret(server: McpServer, place: Place, lease: Lease, world: World) -> str | NotToBeHad:
    data = await world.secrets.open(lease.workspace_id, place.credential)
    value = None if data is None else data.get(place.field)
    if isinstance(value, bool) or not isinstance(value, str | int | float) or not str(value).isprintable():
        lack = "has no credential" if data is None else f"has no text under {place.field} in the credential"
        detail = f"The vault {lack} {place.credential}, which the MCP server {server.name} is to be sent."
        return NotToBeHad("secret_missing", detail)
    named = await world.secrets.hosts(lease.workspace_id, place.credential)
    if not may_go(host_of(server.url), named):
        detail = (
            f"The credential {place.credential} may go to {', '.join(named)} only, and the MCP server"
            f" {server.name} is at {host_of(server.url)}."
        )
        return NotToBeHad("policy_deny", detail)
    return str(value)


def _unlent(server: McpServer, manifest: Manifest) -> NotToBeHad | None:
    """A command runs in the sandbox, so it has the placeholders that the agent has, and no others."""
    lacking = [
        place.credential for place in places(server.env) if place.credential not in manifest.credentials
    ]
    if lacking:
        detail = (
            f"The MCP server {server.name} is run with the credential {lacking[0]}: name it in `credentials`"
            " of the agent, so that its runs are lent it."
        )
        return NotToBeHad("invalid_config", detail)
    if places(server.env) and not manifest.network_hosts:
        detail = (
            f"The MCP server {server.name} is run with a credential, and the agent's network.allow is empty:"
            " name the hosts that it is to reach."
        )
        return NotToBeHad("invalid_config", detail)
    return None


def _undeclared(name: str) -> NotToBeHad:
    detail = (
        f"The workspace declares no MCP server {name}, which the agent's files name; an operator declares it:"
        f" sexton mcp-server set {name} --url URL"
    )
    return NotToBeHad("invalid_config", detail)
