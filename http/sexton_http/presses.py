"""Whoever pressed a button in a chat: proven by the chat platform's signature, in the place of a token."""

from typing import Any, Final
from uuid import UUID

from sexton_actors.manifest.model import from_json
from sexton_actors.webhooks.model import Malformed, Rejected
from sexton_actors.webhooks.presses import Press, is_signed_press, read_press
from sexton_actors.webhooks.secrets import secrets_of
from sexton_http.answers import Problem, RequestHead
from sexton_http.operations import Call
from sexton_storage.records import Zombie

SLACK_SOURCE: Final = "slack"


async def press_of(call: Call[Any, Any], zombie: Zombie) -> Press:
    """The decision in a signed form about something of this agent.

    Raises Problem UZ-APPROVAL-003 where nobody known has signed it, UZ-REQ-001 where it is signed and says
    nothing that can be understood.
    """
    headers = headers_of(call.head)
    own = await _secrets_of_trigger(call, zombie)
    rejected = is_signed_press(headers, call.raw, own, call.ctx.world.now_ms())
    if rejected is not None:
        raise bad_signature(rejected)
    return read(call.raw)


def headers_of(head: RequestHead) -> dict[str, str]:
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in head.headers.items()}


def bad_signature(rejected: Rejected) -> Problem:
    return Problem("UZ-APPROVAL-003", rejected.detail, facts={"reason": rejected.reason})


def read(body: bytes) -> Press:
    """Raises Problem UZ-REQ-001."""
    press = read_press(body)
    if isinstance(press, Malformed):
        raise Problem("UZ-REQ-001", press.detail, facts={"pointer": ""})
    return press


async def load_agent(call: Call[Any, Any], zombie_id: UUID) -> Zombie:
    """The agent that a form is about. Raises Problem UZ-WH-001."""
    zombie = await call.ctx.world.storage.zombies.load(zombie_id)
    if zombie is None:
        raise Problem("UZ-WH-001", f"no agent has the id {zombie_id}")
    return zombie


async def _secrets_of_trigger(call: Call[Any, Any], zombie: Zombie) -> list[str]:
    """Of the agent's own chat app: the one whose events wake it signs its buttons, too."""
    trigger = from_json(zombie.compiled).trigger_for(SLACK_SOURCE)
    if trigger is None or trigger.signature is None:
        return []
    data = await call.ctx.world.secrets.open(zombie.workspace_id, trigger.signature.secret_ref)
    return [] if data is None else secrets_of(data)
