"""Whoever pressed a button in a chat: proven by the chat platform's signature, in place of a token."""

from typing import Any, Final
from uuid import UUID

from sexton_actors.manifest.model import from_json
from sexton_actors.webhooks.model import Malformed, Rejected
from sexton_actors.webhooks.slack_actions import Press, is_signed_press, read_press
from sexton_actors.webhooks.trigger_secrets import secrets_of
from sexton_http.answers import Problem, RequestHead
from sexton_http.gateway.call import Call
from sexton_storage.records.zombies import Zombie

SLACK_SOURCE: Final = "slack"


async def press_of(call: Call[Any, Any], zombie: Zombie) -> Press:
    """The decision in a signed form about something of this agent.

    Signed by the agent's own chat app, the one whose events wake it, or by the server's app as it is
    installed in the agent's workspace. Raises Problem UZ-APPROVAL-003 where neither has signed it,
    UZ-REQ-001 where it is signed and says nothing that can be understood.
    """
    # Of an agent that a user wrote, the chat app is one that the user has chosen.
    own = await _secrets_of_trigger(call, zombie) if zombie.decides_by_token else []
    if own and _rejected(call, own) is None:
        return _read(call.raw)
    press = press_of_app(call)
    await check_team(call, press, zombie.workspace_id)
    return press


def press_of_app(call: Call[Any, Any]) -> Press:
    """What the server's own chat app has signed. Raises as ``press_of``."""
    app = call.ctx.slack
    rejected = _rejected(call, [] if app is None else [app.signing_secret])
    if rejected is not None:
        raise Problem("UZ-APPROVAL-003", rejected.detail, facts={"reason": rejected.reason})
    return _read(call.raw)


async def check_team(call: Call[Any, Any], press: Press, workspace_id: UUID) -> None:
    """The app is one for all workspaces: a button pressed elsewhere decides nothing here.

    Raises Problem UZ-APPROVAL-003.
    """
    install = await call.ctx.world.storage.chats.load(workspace_id)
    if install is None or press.team != install.team_id:
        raise Problem("UZ-APPROVAL-003", "the button was pressed in a chat that is not this workspace's")


async def load_agent(call: Call[Any, Any], zombie_id: UUID) -> Zombie:
    """The agent that a form is about. Raises Problem UZ-WH-001."""
    zombie = await call.ctx.world.storage.zombies.load(zombie_id)
    if zombie is None:
        raise Problem("UZ-WH-001", f"no agent has the id {zombie_id}")
    return zombie


def headers_of(head: RequestHead) -> dict[str, str]:
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in head.headers.items()}


def _rejected(call: Call[Any, Any], secrets: list[str]) -> Rejected | None:
    return is_signed_press(headers_of(call.head), call.raw, secrets, call.ctx.world.now_ms())


def _read(body: bytes) -> Press:
    press = read_press(body)
    if isinstance(press, Malformed):
        raise Problem("UZ-REQ-001", press.detail)
    return press


async def _secrets_of_trigger(call: Call[Any, Any], zombie: Zombie) -> list[str]:
    trigger = from_json(zombie.compiled).trigger_for(SLACK_SOURCE)
    if trigger is None or trigger.signature is None:
        return []
    data = await call.ctx.world.secrets.open(zombie.workspace_id, trigger.signature.secret_ref)
    return [] if data is None else secrets_of(data)
