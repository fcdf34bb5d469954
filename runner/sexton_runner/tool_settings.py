"""What an operator may choose about the tools of one runner."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit


@dataclass(frozen=True, slots=True, kw_only=True)
class McpServer:
    """One server of the Model Context Protocol: a ``command`` run in a sandbox, or a remote one's address.

    ``headers`` go with every request to the address. Their values may hold secrets of the operator's, so
    they stay out of ``repr``.
    """

    command: tuple[str, ...] = ()
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

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
