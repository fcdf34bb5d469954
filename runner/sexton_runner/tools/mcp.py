"""Tools of servers that speak the Model Context Protocol, by the names that an operator gave the servers."""

import importlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Protocol

import structlog
import trio

from sexton_runner.run import Run
from sexton_runner.tool_settings import McpServer
from sexton_runner.tools.base import Tool, ToolResult
from sexton_runner.tools.truncation import clipped

OPEN_S = 30.0
CALL_S = 300.0
MAX_TOOLS = 128
MAX_NAME_CHARS = 64
ALL_OF = "mcp:"
# The SDK takes half a second to import, which a runner without such servers should not wait for.
SESSIONS = "sexton_runner.tools.mcp_session"
log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Offered:
    """One tool as its server describes it."""

    name: str
    description: str
    input_schema: Mapping[str, Any]
    read_only: bool = False


class Session(Protocol):
    """An open conversation with one server."""

    @property
    def offered(self) -> Sequence[Offered]:
        """Give the server's tools."""
        ...

    async def call(self, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        """Call one of them."""
        ...


OpenSession = Callable[[McpServer, Run, str], AbstractAsyncContextManager[Session]]


def server_of(wanted: str) -> tuple[str, str | None] | None:
    """Read a name of a trigger file's ``tools``: ``mcp:SERVER`` for all of a server, or ``SERVER.TOOL``.

    >>> server_of("mcp:files"), server_of("files.read"), server_of("shell")
    (('files', None), ('files', 'read'), None)
    """
    if wanted.startswith(ALL_OF):
        return wanted.removeprefix(ALL_OF), None
    server, dot, tool = wanted.partition(".")
    return (server, tool) if dot and server and tool else None


def called(server: str, tool: str) -> str:
    """Give the name by which a model calls a tool: providers admit letters, digits, ``_`` and ``-`` only.

    >>> called("files", "read.text")
    'files__read_text'
    """
    name = f"{server}__{tool}"
    return "".join(char if char.isascii() and (char.isalnum() or char in "_-") else "_" for char in name)[
        :MAX_NAME_CHARS
    ]


@dataclass(frozen=True, slots=True)
class McpTool:
    """A tool of a server. What the server says of it is believed no further than a description goes."""

    server: "Served"
    offered: Offered

    @property
    def name(self) -> str:
        """Give the name that the model calls it by."""
        return called(self.server.name, self.offered.name)

    @property
    def description(self) -> str:
        """Give the server's description."""
        return self.offered.description

    @property
    def input_schema(self) -> Mapping[str, Any]:
        """Give the server's schema."""
        return self.offered.input_schema

    @property
    def parallel_safe(self) -> bool:
        """Tell what the server says of it."""
        return self.offered.read_only

    async def call(self, arguments: Mapping[str, Any]) -> ToolResult:
        """Call it."""
        return await self.server.call(self.offered.name, arguments)


class Served:
    """One server of a run. ``host`` has to run beside whatever calls its tools."""

    def __init__(self, name: str, settings: McpServer, run: Run) -> None:
        self.name = name
        self._settings, self._run = settings, run
        self._answered = trio.Event()
        self._session: Session | None = None
        self.fault = "it did not answer in time"

    async def host(self) -> None:
        """Keep the conversation open; until cancelled, or until the server ends it."""
        open_session: OpenSession = importlib.import_module(SESSIONS).open_session
        try:
            async with open_session(self._settings, self._run, self.name) as session:
                self._session = session
                self._answered.set()
                await trio.sleep_forever()
        except* Exception as group:  # noqa: BLE001 - one server's fault is told, and the run goes on without it
            self._lose(group)

    def _lose(self, group: BaseException) -> None:
        fault = group
        while isinstance(fault, BaseExceptionGroup):
            fault = fault.exceptions[0]
        self._session, self.fault = None, f"{type(fault).__name__}"
        log.warning("mcp_server_lost", server=self.name, fault=self.fault)
        self._answered.set()

    async def offered(self) -> Sequence[Offered] | None:
        """Wait for the server's tools; None when it cannot be used, and ``fault`` says why."""
        with trio.move_on_after(OPEN_S):
            await self._answered.wait()
        return None if self._session is None else self._session.offered[:MAX_TOOLS]

    async def call(self, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        """Call a tool."""
        if self._session is None:
            return ToolResult(f"the server {self.name} is gone: {self.fault}", ok=False)
        with trio.move_on_after(CALL_S):
            result = await self._session.call(name, arguments)
            facts = {"server": self.name, "tool": name}
            return ToolResult(clipped(result.content), result.ok, facts, result.found)
        return ToolResult(f"the server {self.name} took too long", ok=False)


class Servers:
    """The servers that a run's tools name, each opened once."""

    def __init__(self, run: Run, wanted: Sequence[str]) -> None:
        self._wanted = [found for name in wanted if (found := server_of(name)) is not None]
        known = run.tools.mcp_servers
        names = dict.fromkeys(name for name, _ in self._wanted if name in known)
        self._served = {name: Served(name, known[name], run) for name in names}

    @property
    def hosts(self) -> list[Callable[[], Awaitable[None]]]:
        """Give what has to run beside the run."""
        return [served.host for served in self._served.values()]

    def knows(self, name: str) -> bool:
        """Tell whether a name of the trigger file is one of a server that this runner has."""
        found = server_of(name)
        return found is not None and found[0] in self._served

    async def tools(self) -> tuple[dict[str, Tool], list[str]]:
        """Wait for the servers; give their tools, and a sentence for each server or tool that is missing."""
        tools: dict[str, Tool] = {}
        missing: list[str] = []
        for name, served in self._served.items():
            offered = await served.offered()
            if offered is None:
                missing.append(f"the MCP server {name} cannot be used: {served.fault}")
                continue
            wanted = {tool for server, tool in self._wanted if server == name}
            names = {one.name for one in offered}
            for one in offered:
                if None in wanted or one.name in wanted:
                    tools[called(name, one.name)] = McpTool(served, one)
            lacking = sorted(one for one in wanted if one is not None and one not in names)
            missing += [f"UZ-TOOL-005: the MCP server {name} has no tool {tool}" for tool in lacking]
        return tools, missing
