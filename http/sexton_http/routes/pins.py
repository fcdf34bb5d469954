"""Pins an agent to the version that it works by, and lets it go."""

from typing import Annotated, Any
from uuid import UUID

import msgspec

from sexton_actors.pins import Pin, pin_of
from sexton_actors.protocol.pins import PinAgent, UnpinAgent
from sexton_actors.refusal import Refusal
from sexton_http.bodies.shapes import Body, Shape
from sexton_http.gateway.audit_entries import ask
from sexton_http.gateway.call import Call
from sexton_http.gateway.operations import NoBody, NoQuery, operation
from sexton_http.routes.shared.agent_views import AgentPin, view_pin
from sexton_storage.records.users import Role
from sexton_storage.records.zombies import Zombie

TAG = "Harness"
PIN = "/v1/workspaces/{workspace_id}/zombies/{zombie_id}/pin"
VERSION_MAX = 2**31 - 1


class NewPin(Body):
    agent_version: Annotated[int, msgspec.Meta(ge=1, le=VERSION_MAX)]
    """The number of the active version; should another be active by now, nothing is pinned."""
    reason: Annotated[str, msgspec.Meta(max_length=512)] = ""


class PinState(Shape):
    zombie_id: UUID
    config_revision: int
    """The number of the active version."""
    pin: AgentPin | None
    """Null: the agent is pinned to none."""


@operation(
    "PUT",
    PIN,
    tag=TAG,
    role=Role.OPERATOR,
    codes=("UZ-ZMB-009", "UZ-ZMB-010", "UZ-REQ-009", "UZ-HARNESS-004"),
)
async def pin_agent(call: Call[NewPin, NoQuery]) -> PinState | Refusal:
    """Have an agent work by its active version, whatever files it is given, until it is let go.

    Files that it is given meanwhile are kept as a version that waits.
    """
    body = call.body
    message = PinAgent(body.agent_version, body.reason, call.member.by)
    return _shown(await ask(call.ctx.system, "zombie", await _agent(call), message))


@operation("DELETE", PIN, tag=TAG, role=Role.OPERATOR, codes=("UZ-ZMB-009",))
async def unpin_agent(call: Call[NoBody, NoQuery]) -> PinState | Refusal:
    """Let an agent go: the active version stays, until another is activated.

    Files that it was given meanwhile are a compiled version, which `POST …/harness/activate` activates.
    """
    return _shown(await ask(call.ctx.system, "zombie", await _agent(call), UnpinAgent(call.member.by)))


async def _agent(call: Call[Any, Any]) -> UUID:
    zombie_id = call.id("zombie_id")
    await call.services.scopes.require_zombie(call.id("workspace_id"), zombie_id)
    return zombie_id


def _shown(reply: Zombie | Refusal) -> PinState | Refusal:
    if isinstance(reply, Refusal):
        return reply
    pin: Pin | None = pin_of(reply.pin)
    return PinState(reply.id, reply.config_revision, view_pin(pin))
