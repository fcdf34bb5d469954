"""Assistants: the official client of the Model Context Protocol, and single messages by hand."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import mcp_types as types
import msgspec
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

from tests.worlds.http import HttpWorld

MODERN = "2026-07-28"
LEGACY = "legacy"
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
}
ACCEPT = {"accept": "application/json, text/event-stream", "content-type": "application/json"}


class Person:
    """Who is asked by an assistant, and says this."""

    def __init__(self, says: str = "accept", *, sure: bool = True) -> None:
        self.says, self.sure = says, sure
        self.asked: list[str] = []

    async def __call__(self, context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        del context
        self.asked.append(params.message)
        content = {"confirm": self.sure} if self.says == "accept" else None
        return types.ElicitResult.model_validate({"action": self.says, "content": content})


@asynccontextmanager
async def assistant(
    world: HttpWorld, token: str = "", query: str = "", *, mode: str = MODERN, person: Person | None = None
) -> AsyncIterator[Client]:
    """The official client, connected."""
    headers = {"authorization": f"Bearer {token or world.api_key}"}
    async with httpx2.AsyncClient(headers=headers, timeout=30.0) as http:
        transport = streamable_http_client(f"{world.base_url}/mcp{query}", http_client=http)
        async with Client(transport, mode=mode, elicitation_callback=person) as client:
            yield client


async def rpc(
    world: HttpWorld,
    method: str,
    params: Mapping[str, Any] | None = None,
    *,
    token: str | None = "",
    query: str = "",
    headers: Mapping[str, str] | None = None,
    modern: bool = False,
) -> httpx2.Response:
    """One request by hand, of an older client or of a stateless one."""
    given, more = dict(params or {}), dict(headers or {})
    if modern:
        given.setdefault("_meta", META)
        named = {"mcp-name": given["name"]} if method == "tools/call" and "name" in given else {}
        more = {"mcp-protocol-version": MODERN, "mcp-method": method, **named, **more}
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": given}
    return await send(world, msgspec.json.encode(body), token=token, query=query, headers=more)


async def send(
    world: HttpWorld,
    body: bytes,
    *,
    token: str | None = "",
    query: str = "",
    headers: Mapping[str, str] | None = None,
) -> httpx2.Response:
    """These bytes, whatever they are."""
    sent = {**ACCEPT, **(headers or {})}
    return await world.call("POST", f"/mcp{query}", token, content=body, headers=sent)


def error_of(answer: httpx2.Response) -> tuple[int, int]:
    """The status and the code of an answer with an error."""
    return answer.status_code, answer.json()["error"]["code"]


def names_of(answer: httpx2.Response) -> set[str]:
    """The names in a list of tools."""
    return {tool["name"] for tool in answer.json()["result"]["tools"]}


def text_of(result: types.CallToolResult) -> str:
    """All texts of a result."""
    return "\n".join(part.text for part in result.content if isinstance(part, types.TextContent))
