"""Conversations with servers of the Model Context Protocol, in a sandbox or over HTTP, by its own SDK."""

import base64
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import anyio
import httpx2
import orjson
import trio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp import ClientSession, types
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage

from sexton_runner.run import Run
from sexton_runner.sandbox.jobs import INSIDE_PATH, Running
from sexton_runner.tool_settings import McpServer
from sexton_runner.tools.base import Found, ToolResult
from sexton_runner.tools.mcp import MAX_TOOLS, Offered
from sexton_runner.tools.mcp_transport import ProxyTransport

MAX_LINE_BYTES = 4 << 20
READ_BYTES = 65536
MAX_DESCRIPTION_CHARS = 2_048
MAX_PICTURES = 16
"""The most of one answer; more are named, not shown."""
QUESTION_S = 60.0

Incoming = MemoryObjectSendStream[SessionMessage | Exception]
Outgoing = MemoryObjectReceiveStream[SessionMessage]


@dataclass(frozen=True, slots=True)
class Conversation:
    """A session of the SDK's, and the tools that it found."""

    session: ClientSession
    offered: Sequence[Offered]

    async def call(self, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        """Call a tool; what is neither text nor picture is named, not shown."""
        answer = await self.session.call_tool(name, dict(arguments), read_timeout_seconds=QUESTION_S * 5)
        parts: list[str] = []
        found: list[Found] = []
        for one in answer.content:
            content = _picture(one)
            if content is not None and len(found) < MAX_PICTURES:
                found.append(Found(content))
            else:
                parts.append(one.text if isinstance(one, types.TextContent) else f"[{one.type}]")
        if not parts and not found and answer.structured_content is not None:
            parts = [orjson.dumps(answer.structured_content).decode()]
        return ToolResult("\n".join(parts), not answer.is_error, found=found)


def _picture(block: types.ContentBlock) -> bytes | None:
    match block:
        case types.ImageContent(data=data):
            pass
        case types.EmbeddedResource(resource=types.BlobResourceContents(mime_type=str(kind), blob=data)) if (
            kind.startswith("image/")
        ):
            pass
        case _:
            return None
    try:
        return base64.b64decode(data, validate=True)
    except ValueError:
        return None


@asynccontextmanager
async def open_session(server: McpServer, run: Run, name: str) -> AsyncIterator[Conversation]:
    """Open a conversation and ask for the server's tools."""
    streams = _over_http(server, run) if server.url else _in_sandbox(server, run, name)
    async with (
        streams as (read, write),
        ClientSession(read, write, read_timeout_seconds=QUESTION_S) as session,
    ):
        await session.initialize()
        yield Conversation(session, await _tools(session))


async def _tools(session: ClientSession) -> list[Offered]:
    found: list[Offered] = []
    params: types.PaginatedRequestParams | None = None
    while len(found) < MAX_TOOLS:
        page = await session.list_tools(params=params)
        for tool in page.tools:
            hints = tool.annotations
            text = (tool.description or tool.title or tool.name)[:MAX_DESCRIPTION_CHARS]
            found.append(
                Offered(tool.name, text, tool.input_schema, bool(hints is not None and hints.read_only_hint))
            )
        if not page.next_cursor:
            break
        params = types.PaginatedRequestParams(cursor=page.next_cursor)
    return found


@asynccontextmanager
async def _over_http(server: McpServer, run: Run) -> AsyncIterator[tuple[Any, Any]]:
    # An answer may be streamed while a tool works; the call has its own bound.
    patience = httpx2.Timeout(QUESTION_S, read=None)
    transport = ProxyTransport(run.servers) if server.declared and run.servers is not None else None
    async with (
        httpx2.AsyncClient(headers=dict(server.headers), timeout=patience, transport=transport) as http,
        streamable_http_client(server.url, http_client=http) as streams,
    ):
        yield streams[0], streams[1]


@asynccontextmanager
async def _in_sandbox(server: McpServer, run: Run, name: str) -> AsyncIterator[tuple[Any, Any]]:
    folder = run.folder / f"mcp-{name}"
    run_dir, workspace = folder / "run", folder / "workspace"
    await trio.to_thread.run_sync(partial(run_dir.mkdir, parents=True))
    await trio.to_thread.run_sync(workspace.mkdir)
    inside = run.sandbox.tier.inside(run_dir, workspace)
    own = {
        key: value if run.network is None else run.network.fill(value) for key, value in server.env.items()
    }
    env = {**own, "PATH": INSIDE_PATH, "HOME": inside.home, "TMPDIR": inside.home, "LANG": "C.UTF-8"}
    serial = f"{run.live.lease.lease_id}-{name}"
    heard, read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    write, said = anyio.create_memory_object_stream[SessionMessage](0)
    async with (
        # What an operator has set up is run with what the host has, whatever image the agent asks for.
        replace(run.sandbox, image=None).open(
            server.command,
            run_dir=run_dir,
            workspace=workspace,
            env=env,
            serial=serial,
            network=run.network,
        ) as running,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(_listen, running, heard)
        nursery.start_soon(_speak, running, said)
        nursery.start_soon(_ignore_errors, running)
        async with heard, read, write, said:
            yield read, write
        nursery.cancel_scope.cancel()


async def _listen(running: Running, heard: Incoming) -> None:
    held = b""
    async with heard:
        while piece := await running.child.stdout.receive_some(READ_BYTES):
            *lines, held = (held + piece).split(b"\n")
            if len(held) > MAX_LINE_BYTES:
                return
            for line in filter(None, lines):
                try:
                    message: SessionMessage | Exception = SessionMessage(
                        types.jsonrpc_message_adapter.validate_json(line, by_name=False)
                    )
                except ValueError as fault:
                    message = fault
                await heard.send(message)


async def _speak(running: Running, said: Outgoing) -> None:
    async with said:
        async for one in said:
            text = one.message.model_dump_json(by_alias=True, exclude_unset=True)
            await running.child.stdin.send_all(text.encode() + b"\n")


async def _ignore_errors(running: Running) -> None:
    while await running.child.stderr.receive_some(READ_BYTES):
        pass
