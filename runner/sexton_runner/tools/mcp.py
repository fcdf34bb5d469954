"""Tools of servers that speak the Model Context Protocol, by the names that an operator gave the servers."""

import importlib
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from typing import Any, Protocol
from urllib.parse import urlsplit

import structlog
import trio

from sexton_runner.errors import ToolsMissing
from sexton_runner.run import Run
from sexton_runner.tool_settings import McpServer
from sexton_runner.tools.base import Tool, ToolResult
from sexton_runner.tools.truncation import clipped
from sexton_runner.wire import DeclaredServer

OPEN_S = 30.0
CALL_S = 300.0
MAX_TOOLS = 128
MAX_NAME_CHARS = 64
ALL_OF = "mcp:"
# The SDK takes half a second to import, which a runner without such servers should not wait for.
SESSIONS = "sexton_runner.tools.mcp_session"
ADVICE = "install this runner's sexton with the extra models"
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
        try:
            open_session: OpenSession = importlib.import_module(SESSIONS).open_session
        except ImportError as missing:
            self.fault = f"the package 'mcp' cannot be imported ({missing}): {ADVICE}"
            log.warning("mcp_server_lost", server=self.name, fault=self.fault)
            self._answered.set()
            return
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
        self._session, self.fault = None, self._refusal() or type(fault).__name__
        log.warning("mcp_server_lost", server=self.name, fault=self.fault)
        self._answered.set()

    def _refusal(self) -> str | None:
        if self._run.servers is None or not self._settings.declared:
            return None
        return self._run.servers.refusals.get(urlsplit(self._settings.url).hostname or "")

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
        self._declared = {one.name: one for one in run.live.lease.policy.mcp_servers}
        known = {**run.tools.mcp_servers, **dict(_settings_of(run, self._declared.values()))}
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
        """Wait for the servers; give their tools, and a sentence for each server or tool that is missing.

        Raises ``ToolsMissing`` for those that the workspace declares: a run does not begin without them.
        """
        tools: dict[str, Tool] = {}
        missing: list[str] = []
        for name, served in self._served.items():
            declared = self._declared.get(name)
            offered = await served.offered()
            if offered is None:
                lack = f"the MCP server {name} cannot be used: {served.fault}"
                if declared is not None:
                    raise ToolsMissing(lack)
                missing.append(lack)
                continue
            if declared is not None and declared.tools:
                offered = [one for one in offered if one.name in declared.tools]
            wanted = {tool for server, tool in self._wanted if server == name}
            names = {one.name for one in offered}
            for one in offered:
                if None in wanted or one.name in wanted:
                    tools[called(name, one.name)] = McpTool(served, one)
            lacking = sorted(one for one in wanted if one is not None and one not in names)
            lacks = [f"UZ-TOOL-005: the MCP server {name} has no tool {tool}" for tool in lacking]
            if declared is not None and lacks:
                raise ToolsMissing("; ".join(lacks))
            missing += lacks
        return tools, missing


def _settings_of(run: Run, declared: Iterable[DeclaredServer]) -> Iterator[tuple[str, McpServer]]:
    for one in declared:
        if one.url:
            headers = {} if run.servers is None else run.servers.headers.get(one.name, {})
            yield one.name, McpServer(url=one.url, headers=headers, declared=True)
        elif (offered := run.tools.mcp_servers.get(one.command)) is not None:
            yield one.name, replace(offered, env=one.env)
        else:
            raise ToolsMissing(
                f"this runner does not offer the MCP server {one.command}, by which {one.name} is run"
            )
