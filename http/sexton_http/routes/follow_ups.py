"""Follow-ups: a run asks to be woken later; people see what waits, and take it back."""

from typing import Annotated
from uuid import UUID

import msgspec

from sexton_actors.lease.transitions.follow_ups import DELAY_MAX_S, DELAY_MIN_S, MESSAGE_BYTES
from sexton_actors.protocol.lease import AskFollowUp
from sexton_actors.protocol.zombie import CancelFollowUp
from sexton_actors.refusal import Refusal
from sexton_http.bodies.cursors import Place, decode, encode, fingerprint
from sexton_http.bodies.shapes import Body, Count, Cursor, Query, Shape
from sexton_http.gateway.audit_entries import ask
from sexton_http.gateway.call import Call
from sexton_http.gateway.operations import Auth, Creates, NoBody, NoQuery, operation
from sexton_storage.records.follow_ups import FollowUp, FollowUpStatus
from sexton_storage.records.users import Role

TAG = "Follow-ups"
OF_ZOMBIE = "/v1/workspaces/{workspace_id}/zombies/{zombie_id}/follow-ups"
CALL_ID_CHARS = 256


class NewFollowUp(Body):
    """One of ``delay_s`` and ``at``."""

    call_id: Annotated[str, msgspec.Meta(min_length=1, max_length=CALL_ID_CHARS)]
    """A second request with the same id, of the same event, is the same follow-up, whatever else it says."""
    message: Annotated[str, msgspec.Meta(min_length=1, max_length=MESSAGE_BYTES)]
    delay_s: Annotated[int, msgspec.Meta(ge=DELAY_MIN_S, le=DELAY_MAX_S)] | None = None
    at: Count | None = None
    """Unix ms."""


class FollowUpMade(Shape):
    follow_up_id: UUID
    at: int


class FollowUpItem(Shape):
    follow_up_id: UUID
    zombie_id: UUID
    event_id: UUID
    """The event whose run asked."""
    message: str
    at: int
    status: FollowUpStatus
    created_at: int
    closed_at: int | None


class FollowUpPage(Shape):
    items: list[FollowUpItem]
    next_cursor: str | None


class FollowUpQuery(Query):
    limit: Annotated[int, msgspec.Meta(ge=1, le=200)] = 50
    cursor: Cursor | None = None


@operation(
    "POST",
    "/v1/runners/me/leases/{lease_id}/follow-ups",
    tag=TAG,
    auth=Auth.RUNNER,
    status=201,
    codes=("UZ-REQ-009", "UZ-RUN-005", "UZ-RUN-006", "UZ-SHADOW-001"),
    creates=Creates.AGAIN,
)
async def schedule_follow_up(call: Call[NewFollowUp, NoQuery]) -> FollowUpMade | Refusal:
    """Have the agent of a live lease woken once more, a minute to thirty days from now.

    At most 16 of an agent wait; one more is `UZ-REQ-009`.
    """
    body = call.body
    message = AskFollowUp(call.host.runner.id, body.call_id, body.message, body.delay_s, body.at)
    match await call.ctx.system.ask("lease", call.id("lease_id"), message):
        case Refusal() as refusal:
            return refusal
        case FollowUp(id=follow_up_id, at=at):
            return FollowUpMade(follow_up_id, at)


@operation("GET", OF_ZOMBIE, tag=TAG, codes=("UZ-ZMB-009",))
async def list_follow_ups(call: Call[NoBody, FollowUpQuery]) -> FollowUpPage:
    """List an agent's follow-ups, newest first; one that is over is shown for thirty days."""
    zombie_id, query = call.id("zombie_id"), call.query
    await call.services.scopes.require_zombie(call.id("workspace_id"), zombie_id)
    filters = fingerprint("follow_ups", zombie_id)
    place = None if query.cursor is None else decode(query.cursor, filters)
    before = None if place is None else place.page
    store = call.ctx.world.storage.follow_ups
    rows = await store.list(zombie_id, limit=query.limit + 1, before=before)
    shown = rows[: query.limit]
    more = len(rows) > query.limit
    following = encode(Place(shown[-1].created_at, shown[-1].id, filters)) if more else None
    return FollowUpPage([_item(follow_up) for follow_up in shown], following)


@operation(
    "DELETE",
    f"{OF_ZOMBIE}/{{follow_up_id}}",
    tag=TAG,
    role=Role.OPERATOR,
    status=204,
    codes=("UZ-ZMB-009", "UZ-FOLLOWUP-001", "UZ-REQ-009"),
)
async def cancel_follow_up(call: Call[NoBody, NoQuery]) -> Refusal | None:
    """Take back a follow-up that waits; once more changes nothing."""
    zombie_id = call.id("zombie_id")
    await call.services.scopes.require_zombie(call.id("workspace_id"), zombie_id)
    return await ask(call.ctx.system, "zombie", zombie_id, CancelFollowUp(call.id("follow_up_id")))


def _item(follow_up: FollowUp) -> FollowUpItem:
    return FollowUpItem(
        follow_up_id=follow_up.id,
        zombie_id=follow_up.zombie_id,
        event_id=follow_up.event_id,
        message=follow_up.message,
        at=follow_up.at,
        status=follow_up.status,
        created_at=follow_up.created_at,
        closed_at=follow_up.closed_at,
    )
