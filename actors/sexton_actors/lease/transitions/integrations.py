"""Whether a run may have the credential of a service, and the frame that shows that it had it."""

from typing import Any, assert_never
from uuid import UUID

from sexton_actors.refusal import Refusal
from sexton_storage.records.frame_kinds import FrameKind
from sexton_storage.records.frames import NewFrame
from sexton_storage.records.grants import Grant, GrantStatus

GRANT_USED = FrameKind.GRANT_USED


def may_use(grant: Grant | None, service: str) -> Grant | Refusal:
    """The grant by which a service may be used, or why it may not.

    >>> may_use(None, "slack").code
    'UZ-GRANT-001'
    """
    if grant is None:
        return Refusal("UZ-GRANT-001", f"The agent has not asked for {service}.")
    match grant.status:
        case GrantStatus.APPROVED:
            return grant
        case GrantStatus.PENDING:
            return Refusal(
                "UZ-GRANT-002", f"The request for {service} has not been decided yet.", _facts(grant)
            )
        case GrantStatus.DENIED | GrantStatus.REVOKED:
            return Refusal("UZ-GRANT-003", f"The grant for {service} is {grant.status}.", _facts(grant))
        case _:
            assert_never(grant.status)


def used(grant: Grant, event_id: UUID, now: int) -> NewFrame:
    """What shows that a credential has left for a run; nothing of the credential itself."""
    return NewFrame(grant.zombie_id, event_id, GRANT_USED, now, _facts(grant))


def _facts(grant: Grant) -> dict[str, Any]:
    return {"grant_id": str(grant.id), "service": grant.service, "status": str(grant.status)}
