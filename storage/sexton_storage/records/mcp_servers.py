"""MCP servers that a workspace declares for its agents."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol
from uuid import UUID

import msgspec

MAX_SERVERS: Final = 64
"""The most that one workspace may have."""


class McpServer(msgspec.Struct, frozen=True, gc=False):
    """One declaration; it has either a ``url`` or a ``command``, the other is empty."""

    workspace_id: UUID
    name: str
    url: str
    command: str
    """The name of a server that runners offer."""
    headers: Mapping[str, Any]
    """Text by header, with ``${secrets.NAME.FIELD}`` where the vault's value belongs."""
    env: Mapping[str, Any]
    """Text by variable of the command, likewise."""
    tools: tuple[str, ...]
    """Those that agents may use; empty: all."""
    created_at: int
    updated_at: int
    updated_by: str
    """``user:<id>`` or ``api:<id>``."""


class McpServerStore(Protocol):
    async def put(self, server: McpServer) -> bool:
        """Create or replace; a replaced one keeps its ``created_at``.

        False, and nothing is made, where the workspace has ``MAX_SERVERS`` others.
        """
        ...

    async def list(self, workspace_id: UUID) -> Sequence[McpServer]:
        """All of a workspace, by name."""
        ...

    async def named(self, workspace_id: UUID, names: Sequence[str]) -> Sequence[McpServer]:
        """Find those of these names, in the order of the names."""
        ...

    async def delete(self, workspace_id: UUID, name: str) -> bool:
        """False when there was none."""
        ...
