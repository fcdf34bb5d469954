"""Sealed secrets of a workspace."""

from collections.abc import Sequence
from typing import Protocol
from uuid import UUID

import msgspec


class Credential(msgspec.Struct, frozen=True, gc=False):
    """One vault entry; ``sealed`` opens only with the master key and this row's identity."""

    workspace_id: UUID
    name: str
    sealed: bytes
    created_at: int
    updated_at: int
    hosts: tuple[str, ...] = ()
    """To which it may be sent; empty: none was named."""
    uses: tuple[str, ...] = ()
    """Where in a request it stands: ``header:NAME``, ``query:NAME`` or ``basic``; empty: nobody said."""


class CredentialStore(Protocol):
    """Sealed bytes only: sealing and opening are the vault's (``sexton_storage.vault``)."""

    async def put(self, credential: Credential) -> None:
        """Create or replace; a replaced one keeps its ``created_at``."""
        ...

    async def load(self, workspace_id: UUID, name: str) -> Credential | None: ...
    async def list(self, workspace_id: UUID, *, limit: int, after: str | None = None) -> Sequence[Credential]:
        """Those that people gave, by name; ``sealed`` is empty in a listing.

        The platform's own have a slash in their names and are left out.
        """
        ...

    async def delete(self, workspace_id: UUID, name: str) -> bool: ...
    async def sealed_before(
        self, version: int, *, after: tuple[UUID, str] | None, limit: int
    ) -> Sequence[Credential]:
        """Those that an older master key sealed, by workspace and name."""
        ...

    async def reseal(self, credential: Credential, sealed: bytes) -> bool:
        """Put ``sealed`` in place of what the credential has; False when it was replaced meanwhile."""
        ...

    async def count_by_key(self) -> dict[int, int]:
        """How many each version of the master key has sealed."""
        ...
