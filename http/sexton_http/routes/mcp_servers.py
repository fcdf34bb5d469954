"""MCP servers of a workspace: declared by operators, named by agents."""

import re
from typing import Annotated, Any
from uuid import UUID

import msgspec

from sexton_actors.manifest.known_names import MCP_SERVER
from sexton_actors.mcp_declarations import (
    MAX_TOOL_CHARS,
    MAX_TOOLS,
    MAX_URL_CHARS,
    MAX_VALUE_CHARS,
    MAX_VALUES,
    fault,
    host_of,
    may_go,
    places,
)
from sexton_http.answers import Problem
from sexton_http.bodies.shapes import Body, Shape
from sexton_http.gateway.call import Call
from sexton_http.gateway.operations import NoBody, NoQuery, operation
from sexton_http.identity.principals import is_enough
from sexton_storage.records.mcp_servers import MAX_SERVERS, McpServer
from sexton_storage.records.users import Role

TAG = "MCP servers"
PATH = "/v1/workspaces/{workspace_id}/mcp-servers"
Value = Annotated[str, msgspec.Meta(max_length=MAX_VALUE_CHARS)]
Values = Annotated[dict[str, Value], msgspec.Meta(max_length=MAX_VALUES)]
Tool = Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_TOOL_CHARS)]


class McpServerBody(Body):
    """Either a `url` or a `command`."""

    url: Annotated[str, msgspec.Meta(max_length=MAX_URL_CHARS)] = ""
    """Where the server is spoken to over streamable HTTP: `https://HOST/PATH`, perhaps with a port."""
    command: Annotated[str, msgspec.Meta(max_length=32)] = ""
    """The name of a server that runners offer, which is run in the sandbox."""
    headers: Values = msgspec.field(default_factory=dict)
    """Sent with each request to the `url`; `${secrets.NAME.FIELD}` stands for a credential of the vault."""
    env: Values = msgspec.field(default_factory=dict)
    """Variables of the `command`; a secret there is the placeholder of a credential of the agent."""
    tools: Annotated[tuple[Tool, ...], msgspec.Meta(max_length=MAX_TOOLS)] = ()
    """Those that agents may use; none: all that the server has."""


class McpServerItem(Shape):
    name: str
    tools: tuple[str, ...]
    url: str | None
    """Null for the role `user`, and for a command."""
    command: str | None
    """Null for the role `user`, and for a url."""
    headers: dict[str, str] | None
    """As they were declared, without what the vault holds; null for the role `user`."""
    env: dict[str, str] | None
    created_at: int
    updated_at: int
    updated_by: str


class McpServerList(Shape):
    items: list[McpServerItem]


@operation(
    "PUT",
    PATH + "/{name}",
    tag=TAG,
    role=Role.OPERATOR,
    codes=("UZ-MCP-001",),
)
async def put_mcp_server(call: Call[McpServerBody, NoQuery]) -> McpServerItem:
    """Declare a server, replacing one of its name; runs that start from now on are given it so."""
    body, world, workspace_id, name = call.body, call.ctx.world, _workspace(call), call.text("name")
    wrong = fault(
        name, url=body.url, command=body.command, headers=body.headers, env=body.env, tools=body.tools
    )
    if wrong is not None:
        raise _wrong(*wrong)
    for place in places(body.headers):
        named = await world.secrets.hosts(workspace_id, place.credential)
        if not may_go(host_of(body.url), named):
            why = f"the credential {place.credential} may go to {', '.join(named)} only"
            raise _wrong("headers", why)
    now = world.now_ms()
    server = McpServer(
        workspace_id=workspace_id,
        name=name,
        url=body.url,
        command=body.command,
        headers=body.headers,
        env=body.env,
        tools=tuple(dict.fromkeys(body.tools)),
        created_at=now,
        updated_at=now,
        updated_by=call.member.by,
    )
    if not await world.storage.mcp_servers.put(server):
        raise Problem("UZ-MCP-001", f"the workspace has {MAX_SERVERS} MCP servers; remove one first")
    kept = await world.storage.mcp_servers.named(workspace_id, [name])
    return _item(kept[0] if kept else server, sees_all=True)


@operation("GET", PATH, tag=TAG)
async def list_mcp_servers(call: Call[NoBody, NoQuery]) -> McpServerList:
    """List the workspace's servers by name; below the role `operator`, their names and tools only."""
    rows = await call.ctx.world.storage.mcp_servers.list(_workspace(call))
    sees_all = is_enough(call.member.role, Role.OPERATOR)
    return McpServerList([_item(row, sees_all=sees_all) for row in rows])


@operation("DELETE", PATH + "/{name}", tag=TAG, role=Role.OPERATOR, status=204)
async def delete_mcp_server(call: Call[NoBody, NoQuery]) -> None:
    """Remove a server; one that does not exist is removed already. Runs that name it do not start."""
    if re.fullmatch(MCP_SERVER, call.text("name")):
        await call.ctx.world.storage.mcp_servers.delete(_workspace(call), call.text("name"))


def _wrong(field: str, why: str) -> Problem:
    return Problem("UZ-REQ-001", f"/{field}: {why}", facts={"pointer": f"/{field}"})


def _item(row: McpServer, *, sees_all: bool) -> McpServerItem:
    return McpServerItem(
        name=row.name,
        tools=row.tools,
        url=(row.url or None) if sees_all else None,
        command=(row.command or None) if sees_all else None,
        headers=dict(row.headers) if sees_all else None,
        env=dict(row.env) if sees_all else None,
        created_at=row.created_at,
        updated_at=row.updated_at,
        updated_by=row.updated_by,
    )


def _workspace(call: Call[Any, Any]) -> UUID:
    return call.id("workspace_id")
