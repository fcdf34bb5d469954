"""A server of the Model Context Protocol over HTTP, by the official SDK: ``python mcp_server.py PORT``."""

from __future__ import annotations

import sys

from mcp.server import MCPServer

server = MCPServer("herons")


@server.tool()
def count(place: str) -> str:
    """Count the herons of a place."""
    return f"{len(place)} herons in {place}"


@server.tool()
def fail() -> str:
    """Fail."""
    raise ValueError("no herons today")


if __name__ == "__main__":
    server.run(transport="streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
