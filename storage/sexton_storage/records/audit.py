"""Lines of the audit log: who changed what, from where, each bound to the one before it."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol
from uuid import UUID

import msgspec

PLATFORM_LOG: Final = UUID(int=0)
"""In place of a tenant's id: the log of what is done to the platform, as its runners."""


class AuditEntry(msgspec.Struct, frozen=True, gc=False):
    """What somebody is about to change. It becomes a line with the first row that changes, or not at all."""

    id: UUID
    """However many transactions a request makes, its line is written once."""
    log_id: UUID
    """The tenant whose log it goes into, or ``PLATFORM_LOG``."""
    action: str
    """A thing and what is done to it, as ``api_key.create``."""
    actor: str
    """As resolvers are written: ``user:<id>``, ``api:<id>``, ``agent:<id>`` or ``slack:<id>``."""
    name: str
    """As a person would know the actor."""
    address: str
    """Where the request came from."""
    request_id: str
    workspace_id: UUID | None = None
    target: str = ""
    """The id or name of the thing; empty: the id of the row that changes."""
    facts: Mapping[str, Any] = msgspec.field(default_factory=dict)
    """What else is worth telling; never a secret."""


class AuditLine(msgspec.Struct, frozen=True, gc=False):
    log_id: UUID
    seq: int
    """From 1, without a gap in its log."""
    at: int
    target: str
    body: str
    """The rest of the entry as JSON, byte for byte as it was hashed."""
    previous_hash: bytes
    hash: bytes


class AuditHead(msgspec.Struct, frozen=True, gc=False):
    """Where a log ends: whoever keeps this elsewhere can tell later that nothing before it was changed."""

    seq: int
    hash: bytes


class AuditFilter(msgspec.Struct, frozen=True, gc=False):
    """None lets everything through."""

    workspace_id: UUID | None = None
    actor: str | None = None
    action: str | None = None
    """A glob, as ``api_key.*``."""
    target: str | None = None
    since: int | None = None
    until: int | None = None
    """Ms; ``since`` is let through, ``until`` is not."""


class AuditStore(Protocol):
    async def append(self, entry: AuditEntry) -> None:
        """Add a line by itself, for what changes no row; the same entry again is the one that is there."""
        ...

    async def list(
        self, log_id: UUID, wanted: AuditFilter, *, limit: int, before: int | None = None
    ) -> Sequence[AuditLine]:
        """Newest first; those before this number."""
        ...

    async def read(self, log_id: UUID, *, limit: int, after: int = 0) -> Sequence[AuditLine]:
        """Oldest first; those after this number."""
        ...

    async def head(self, log_id: UUID) -> AuditHead: ...
