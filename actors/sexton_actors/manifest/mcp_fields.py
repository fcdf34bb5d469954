"""Reads which MCP servers of its workspace an agent uses."""

from collections.abc import Sequence

from sexton_actors.manifest.fields import Fields
from sexton_actors.manifest.known_names import MCP_SERVER, mcp_server
from sexton_actors.manifest.model import Runtime

MAX_SERVERS = 16


def read_mcp_servers(config: Fields, runtime: Runtime, tools: Sequence[str]) -> tuple[str, ...]:
    """The names under ``mcp_servers``; each has to be named in ``tools`` too, or it would give no tool."""
    names = config.texts("mcp_servers", most=MAX_SERVERS, chars=32, pattern=MCP_SERVER)
    if names and runtime is not Runtime.AGENT:
        config.wrong("mcp_servers", "only a model calls tools of MCP servers; the runtime is not `agent`")
        return ()
    used = {mcp_server(tool) for tool in tools}
    for name in names:
        if name not in used:
            config.wrong(
                "mcp_servers", f"no tool of `{name}` is in `tools`: add `mcp:{name}`, or `{name}.TOOL`"
            )
    return names
