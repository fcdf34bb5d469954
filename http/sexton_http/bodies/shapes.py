"""The pieces that bodies and answers are made of."""

from enum import StrEnum
from typing import Annotated, Any, Final
from uuid import UUID

import msgspec

from sexton_storage.records.gates import Gate, GateStatus
from sexton_storage.records.tenants import PlanTier
from sexton_storage.records.users import Role

MAX_NUMBER: Final = 2**53 - 1
"""What every JSON reader keeps exactly."""
MAX_PAGE: Final = 1_000_000
"""Later ones are as empty as this one, and are not looked for."""
EXPIRES_SOON_MS: Final = 7 * 24 * 3_600_000
"""How long before its end people are warned of a key."""
NAME_CHARS: Final = 64
"""The bound of a workspace's name."""

Count = Annotated[int, msgspec.Meta(ge=0, le=MAX_NUMBER)]
Positive = Annotated[int, msgspec.Meta(ge=1, le=MAX_NUMBER)]
Moment = Annotated[int, msgspec.Meta(ge=0, le=MAX_NUMBER, description="Milliseconds since 1970.")]
Cursor = Annotated[str, msgspec.Meta(min_length=1, max_length=512)]
WaitMs = Annotated[int, msgspec.Meta(ge=0, le=30_000)]


class Body(msgspec.Struct, forbid_unknown_fields=True):
    """What a client sends: a field that is not declared is a mistake, and said to be one."""


class Nothing(Body):
    """An object without fields, where no body is needed."""


class Shape(msgspec.Struct):
    """What the server answers; ``request_id`` is added to every one on its way out."""


class Query(msgspec.Struct):
    """The fields of a query."""


class KeyItem(Shape):
    id: UUID
    key_name: str
    description: str
    role: Role
    platform_admin: bool
    active: bool
    created_at: int
    last_used_at: int | None
    revoked_at: int | None
    expires_at: int | None
    """Null: it lasts until it is revoked."""
    expires_soon: bool
    """It has a week left, or less."""
    owner_id: UUID | None
    """The member whose key it is; null: the tenant's."""


class KeyPage(Shape):
    items: list[KeyItem]
    total: int
    page: int
    page_size: int


class KeyMade(Shape):
    id: UUID
    key_name: str
    key: str
    """Shown in this answer only."""
    created_at: int
    expires_at: int | msgspec.UnsetType = msgspec.UNSET
    """Only of a key that ends by itself."""


class WorkspaceItem(Shape):
    id: UUID
    workspace_id: UUID
    name: str
    plan_tier: PlanTier
    paused: bool
    created_at: int


class WorkspaceList(Shape):
    items: list[WorkspaceItem]
    total: int


class ApproveOrDeny(StrEnum):
    """What a webhook decides."""

    APPROVE = "approve"
    DENY = "deny"


class GateView(Shape):
    """An approval gate, as people and runners see it."""

    gate_id: UUID
    zombie_id: UUID
    workspace_id: UUID
    event_id: UUID
    action_id: str
    status: GateStatus
    requested_at: int
    timeout_at: int
    zombie_name: str
    tool_name: str
    action_name: str
    gate_kind: str
    proposed_action: str
    evidence: dict[str, Any]
    blast_radius: str
    detail: str
    updated_at: int | None
    resolved_by: str | msgspec.UnsetType = msgspec.UNSET


def view_gate(gate: Gate) -> GateView:
    return GateView(
        gate_id=gate.id,
        zombie_id=gate.zombie_id,
        workspace_id=gate.workspace_id,
        event_id=gate.event_id,
        action_id=gate.action_id,
        status=gate.status,
        requested_at=gate.requested_at,
        timeout_at=gate.timeout_at,
        zombie_name=gate.zombie_name,
        tool_name=gate.tool_name,
        action_name=gate.action_name,
        gate_kind=gate.gate_kind,
        proposed_action=gate.proposed_action,
        evidence=dict(gate.evidence),
        blast_radius=gate.blast_radius,
        detail=gate.detail,
        updated_at=gate.updated_at,
        resolved_by=msgspec.UNSET if gate.resolved_by is None else gate.resolved_by,
    )
