"""What an operator may choose about the tools of one runner."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import msgspec

from sexton_runner.errors import BadSettings

LOOPBACK_VARIABLE = "SEXTON_HTTP_ALLOW_LOOPBACK"
MCP_VARIABLE = "SEXTON_MCP_SERVERS"
ServerName = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,31}$")]


@dataclass(frozen=True, slots=True, kw_only=True)
class McpServer:
    """One server of the Model Context Protocol: a ``command`` run in a sandbox, or a remote one's address.

    ``headers`` go with every request to the address. Their values may hold secrets of the operator's, so
    they stay out of ``repr``. ``env`` are variables of the command. One that a workspace has ``declared`` is
    reached by the proxy of such servers.
    """

    command: tuple[str, ...] = ()
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    env: Mapping[str, str] = field(default_factory=dict)
    declared: bool = False

    def problem(self) -> str | None:
        """Say what is wrong with it; None when it can be used."""
        if bool(self.command) == bool(self.url):
            return "an MCP server has either a command or a url"
        if self.url and (
            urlsplit(self.url).scheme not in ("http", "https") or not urlsplit(self.url).hostname
        ):
            return "the url of an MCP server must be an http:// or https:// address"
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSettings:
    """``allow_loopback`` lets ``http_request`` reach this host, for development and tests."""

    allow_loopback: bool = False
    mcp_servers: Mapping[str, McpServer] = field(default_factory=dict)


class _Server(msgspec.Struct, forbid_unknown_fields=True):
    command: list[str] = []
    url: str = ""
    headers: dict[str, str] = {}


def read_tool_settings(environment: Mapping[str, str]) -> ToolSettings:
    """Read what an operator has set; raises ``BadSettings``.

    >>> read_tool_settings({"SEXTON_HTTP_ALLOW_LOOPBACK": "1"}).allow_loopback
    True
    """
    choice = environment.get(LOOPBACK_VARIABLE, "0")
    if choice not in ("0", "1"):
        raise BadSettings(f"{LOOPBACK_VARIABLE} must be 0 or 1")
    file = environment.get(MCP_VARIABLE)
    return ToolSettings(
        allow_loopback=choice == "1", mcp_servers={} if not file else _read_servers(Path(file))
    )


def _read_servers(file: Path) -> dict[str, McpServer]:
    try:
        servers = msgspec.json.decode(file.read_bytes(), type=dict[ServerName, _Server])
    except (OSError, msgspec.DecodeError, msgspec.ValidationError) as fault:
        raise BadSettings(f"{MCP_VARIABLE}: {file} cannot be used: {fault}") from fault
    return {
        name: McpServer(command=tuple(one.command), url=one.url, headers=one.headers)
        for name, one in servers.items()
    }
