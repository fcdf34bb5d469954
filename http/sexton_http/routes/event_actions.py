"""What people do about one event: have it worked on again, or end it."""

from typing import Annotated, Any, Final
from uuid import UUID

import msgspec

from sexton_actors.protocol.queue import Cancel, Cancelling
from sexton_actors.protocol.zombie import Accepted, AlreadyAccepted, Replay
from sexton_actors.refusal import Refusal
from sexton_http.answers import Problem
from sexton_http.bodies.shapes import Body, Shape
from sexton_http.gateway.audit_entries import ask
from sexton_http.gateway.call import Call
from sexton_http.gateway.operations import Creates, NoBody, NoQuery, operation
from sexton_http.gateway.seeds import key_of
from sexton_http.routes.shared.event_lookup import find_event
from sexton_http.routes.shared.message_files import settle_files
from sexton_storage.records.users import Role

TAG: Final = "Events"
AGENT: Final = "/v1/workspaces/{workspace_id}/zombies/{zombie_id}/events/{event_id}"
WORKSPACE: Final = "/v1/workspaces/{workspace_id}/events/{event_id}"
REPLAY_CODES: Final = (
    "UZ-EVENT-001",
    "UZ-REQ-009",
    "UZ-ZMB-001",
    "UZ-ZMB-012",
    "UZ-BILLING-005",
    "UZ-ENTL-001",
    "UZ-ENTL-003",
    "UZ-EVENT-002",
    "UZ-FILE-014",
    "UZ-HARNESS-001",
    "UZ-HARNESS-002",
    "UZ-HARNESS-003",
)
CANCEL_CODES: Final = ("UZ-EVENT-001", "UZ-REQ-009")


AgentVersion = Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]


class ReplayOrder(Body):
    request: dict[str, Any] | None = None
    """What the new event asks, in place of what the old one asked."""
    merge: dict[str, Any] | None = None
    """What is merged into the old request (RFC 7396); not beside `request`."""
    agent_version: AgentVersion | None = None
    """The number of the version of its agent that is to work on the new event, whichever is active then."""


class Replayed(Shape):
    event_id: UUID
    """The id of the new event."""
    resumes_event_id: UUID
    """The one that it repeats."""
    status: str = "accepted"


class EventCancelled(Shape):
    event_id: UUID
    status: str
    """`cancelled`, or `cancelling` while its runner is being told."""


@operation(
    "POST",
    f"{AGENT}/replay",
    tag=TAG,
    role=Role.OPERATOR,
    status=202,
    creates=Creates.EVENT,
    starts_work=True,
    codes=("UZ-ZMB-009", *REPLAY_CODES),
)
async def replay_event(call: Call[ReplayOrder, NoQuery]) -> Replayed | Refusal:
    """Have the agent work once more on an event that is over.

    A new event with the same actor, type and files, and with the same request unless the body has another. It
    begins at the beginning, and passes gates and budgets again. With `agent_version` it runs under that
    version of the agent's files, whichever is active.
    """
    await call.services.scopes.require_zombie(call.id("workspace_id"), call.id("zombie_id"))
    return await _replay(call, call.id("zombie_id"))


@operation("POST", f"{AGENT}/cancel", tag=TAG, status=202, codes=("UZ-ZMB-009", *CANCEL_CODES))
async def cancel_event(call: Call[NoBody, NoQuery]) -> EventCancelled | Refusal:
    """End an event that is not over.

    One that waits ends at once, with the approvals that were asked for it; one that runs as soon as its
    runner has heard of it.
    """
    await call.services.scopes.require_zombie(call.id("workspace_id"), call.id("zombie_id"))
    return await _cancel(call, call.id("zombie_id"))


@operation(
    "POST",
    f"{WORKSPACE}/replay",
    tag=TAG,
    role=Role.OPERATOR,
    status=202,
    creates=Creates.EVENT,
    starts_work=True,
    codes=REPLAY_CODES,
)
async def replay_workspace_event(call: Call[ReplayOrder, NoQuery]) -> Replayed | Refusal:
    """Have the event's agent work once more on an event that is over; as under the agent."""
    return await _replay(call, await _agent_of(call))


@operation("POST", f"{WORKSPACE}/cancel", tag=TAG, status=202, codes=CANCEL_CODES)
async def cancel_workspace_event(call: Call[NoBody, NoQuery]) -> EventCancelled | Refusal:
    """End an event that is not over; as under its agent."""
    return await _cancel(call, await _agent_of(call))


async def _agent_of(call: Call[Any, Any]) -> UUID:
    return (await find_event(call)).zombie_id


def asked_instead(request: dict[str, Any] | None, merge: dict[str, Any] | None) -> str | None:
    """Give the request of a replay, or what is merged into it, as JSON; None: it stays the same.

    Raises Problem UZ-REQ-001 for both at once.
    """
    if request is not None and merge is not None:
        raise Problem("UZ-REQ-001", "/merge: not beside request", facts={"pointer": "/merge"})
    asked = merge if request is None else request
    return None if asked is None else msgspec.json.encode(asked).decode()


async def _replay(call: Call[ReplayOrder, NoQuery], zombie_id: UUID) -> Replayed | Refusal:
    event_id = call.id("event_id")
    made = call.ctx.world.new_id()
    order = call.body
    message = Replay(
        event_id,
        call.member.name,
        call.traceparent,
        key_of(call.seed),
        new_id=made,
        request_json=asked_instead(order.request, order.merge),
        merges=order.merge is not None,
        asked_version=order.agent_version,
    )
    reply = await call.ctx.system.ask("zombie", zombie_id, message)
    await settle_files(call, made, reply)
    match reply:
        case Refusal() as refusal:
            return refusal
        case Accepted(event_id=new_id) | AlreadyAccepted(event_id=new_id):
            return Replayed(new_id, event_id)


async def _cancel(call: Call[Any, Any], zombie_id: UUID) -> EventCancelled | Refusal:
    match await ask(call.ctx.system, "queue", zombie_id, Cancel(call.id("event_id"), call.member.by)):
        case Refusal() as refusal:
            return refusal
        case Cancelling(event_id=event_id, status=status):
            return EventCancelled(event_id, status)
