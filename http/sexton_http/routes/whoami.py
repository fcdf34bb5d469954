"""Says whom the server takes the bearer of a token for."""

from enum import StrEnum
from typing import Final
from uuid import UUID

from sexton_http.bodies.shapes import Shape
from sexton_http.gateway.call import Call
from sexton_http.gateway.operations import NoBody, NoQuery, operation
from sexton_storage.records.tenants import PlanTier
from sexton_storage.records.users import Role

TAG = "Auth sessions"
KEY: Final = "api:"


class CallerKind(StrEnum):
    USER = "user"
    API_KEY = "api_key"


class Whoami(Shape):
    kind: CallerKind
    id: str
    """The id of the key, or the subject of the user."""
    name: str
    """The name of the key, or of the user as messages show it."""
    role: Role
    tenant_id: UUID
    plan_tier: PlanTier
    platform_admin: bool
    workspace_id: UUID | None
    """The workspace that the token is limited to, if it is."""
    member_id: UUID | None
    """The member who it is, or whose key it is; null: a key of the tenant's own."""
    expires_at: int | None
    """When the token ends by itself."""


@operation("GET", "/v1/whoami", tag=TAG)
async def whoami(call: Call[NoBody, NoQuery]) -> Whoami:
    """Say whom the server takes the caller for, and what the caller may do."""
    member = call.member
    kind = CallerKind.API_KEY if member.by.startswith(KEY) else CallerKind.USER
    return Whoami(
        kind=kind,
        id=member.by.partition(":")[2],
        name=member.name,
        role=member.role,
        tenant_id=member.tenant_id,
        plan_tier=member.plan,
        platform_admin=member.platform_admin,
        workspace_id=member.workspace_id,
        member_id=member.person,
        expires_at=member.expires_at,
    )
