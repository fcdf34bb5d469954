"""How a grant comes about, is decided and is taken back."""

from typing import Any, assert_never
from uuid import UUID

import msgspec

from sexton_actors.protocol.grants import Decide, Request
from sexton_actors.refusal import Refusal
from sexton_storage.records.frame_kinds import FrameKind
from sexton_storage.records.frames import NewFrame
from sexton_storage.records.grants import Grant, GrantStatus

OPEN = frozenset({GrantStatus.PENDING, GrantStatus.APPROVED})
"""A grant that a request finds; another one is requested."""
GRANT_CHANGED = FrameKind.GRANT_CHANGED


class Change(msgspec.Struct, frozen=True):
    """The grant as it will be, and the frame that says so."""

    grant: Grant
    frames: tuple[NewFrame, ...]


class Unchanged(msgspec.Struct, frozen=True):
    """It is as it was asked to be."""

    grant: Grant


def request(grant: Grant | None, zombie_id: UUID, message: Request, now: int) -> Change | Unchanged:
    """Ask for a service; who was denied, or had it revoked, may ask again."""
    if grant is None:
        fresh = Grant(
            id=message.grant_id,
            tenant_id=message.tenant_id,
            workspace_id=message.workspace_id,
            zombie_id=zombie_id,
            service=message.service,
            reason=message.reason,
            status=GrantStatus.PENDING,
            version=1,
            requested_at=now,
            requested_by=message.by,
            created_at=now,
        )
        return _changed(fresh, message.event_id, message.by, now)
    if grant.status in OPEN:
        return Unchanged(grant)
    again = msgspec.structs.replace(
        grant,
        reason=message.reason,
        status=GrantStatus.PENDING,
        version=grant.version + 1,
        requested_at=now,
        requested_by=message.by,
        decided_at=None,
        decided_by=None,
    )
    return _changed(again, message.event_id, message.by, now)


def decide(grant: Grant, message: Decide, now: int) -> Change | Unchanged | Refusal:
    """The word of a person: an answer may be repeated, another comes too late; what is open is revoked."""
    match message.status:
        case GrantStatus.REVOKED if grant.status not in OPEN:
            return _too_late("UZ-REQ-009", grant, message.status)
        case GrantStatus.REVOKED:
            legal = True
        case GrantStatus.APPROVED | GrantStatus.DENIED:
            if grant.status is message.status:
                return Unchanged(grant)
            legal = grant.status is GrantStatus.PENDING
        case GrantStatus.PENDING:
            legal = False
        case _:
            assert_never(message.status)
    if not legal:
        return _too_late("UZ-APPROVAL-002", grant, message.status)
    decided = msgspec.structs.replace(
        grant, status=message.status, version=grant.version + 1, decided_at=now, decided_by=message.by
    )
    return _changed(decided, None, message.by, now)


def _changed(grant: Grant, event_id: UUID | None, by: str, now: int) -> Change:
    data = {**_facts(grant), "by": by}
    if grant.status is GrantStatus.PENDING:
        data["reason"] = grant.reason
    return Change(grant, (NewFrame(grant.zombie_id, event_id, GRANT_CHANGED, now, data),))


def _facts(grant: Grant) -> dict[str, Any]:
    return {"grant_id": str(grant.id), "service": grant.service, "status": str(grant.status)}


def _too_late(code: str, grant: Grant, wanted: GrantStatus) -> Refusal:
    facts = {
        "current_state": str(grant.status),
        "resolved_at": grant.decided_at,
        "resolved_by": grant.decided_by,
    }
    return Refusal(code, f"Grant {grant.id} is {grant.status}; it cannot become {wanted}.", facts)
