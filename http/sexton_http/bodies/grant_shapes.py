"""What is answered about grants, of services and of credentials."""

from enum import StrEnum
from uuid import UUID

from sexton_http.bodies.shapes import Shape
from sexton_storage.records.grants import GrantStatus


class GrantMade(Shape):
    grant_id: UUID
    zombie_id: UUID
    service: str
    status: GrantStatus
    requested_at: int


class GrantItem(GrantMade):
    workspace_id: UUID
    reason: str
    requested_by: str
    decided_at: int | None
    approved_at: int | None
    """When the grant was approved; null unless it is approved now."""
    decided_by: str | None


class GrantPage(Shape):
    items: list[GrantItem]
    next_cursor: str | None


class GrantTarget(StrEnum):
    """``pending`` comes of a request only."""

    APPROVED = "approved"
    DENIED = "denied"
    REVOKED = "revoked"


class CredentialGrantItem(Shape):
    zombie_id: UUID
    credential: str
    status: GrantStatus
    hosts: tuple[str, ...]
    """The hosts that the agent may reach, as far as this was granted or is asked for."""
    tools: tuple[str, ...]
    """The agent's tools, likewise."""
    requested_at: int
    requested_by: str
    """`user:<id>` or `api:<id>`; `system:upgrade` for what agents had before there were such grants."""
    decided_at: int | None
    decided_by: str | None


class CredentialGrantPage(Shape):
    items: list[CredentialGrantItem]
    """All of `limit` agents at most."""
    next_cursor: str | None
