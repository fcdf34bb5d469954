"""The pages of agents: the list, and one agent with what it does, costs and waits for."""

from typing import Any, Final, Literal

from sexton_http.answers import Answer, Problem
from sexton_http.bodies.shapes import Body
from sexton_http.gateway.call import Call
from sexton_http.gateway.operations import NoBody, NoQuery
from sexton_http.pages.console import Notice, console_form, console_operation
from sexton_http.pages.form_actions import FormDecoder, act
from sexton_http.pages.layout import see
from sexton_http.pages.templates.frame import Frame, show
from sexton_http.routes.events import EventPage, EventQuery, list_zombie_events
from sexton_http.routes.shared.agent_views import ZombiePage, ZombieRecord
from sexton_http.routes.shared.message_form import MESSAGE_BYTES
from sexton_http.routes.zombies import (
    NewMessage,
    ZombiePatch,
    ZombieQuery,
    ZombieTarget,
    change_zombie,
    get_zombie,
    list_zombies,
    steer_zombie,
)

HERE: Final = "agents"
LATEST: Final = 20
"""Events of an agent that its page shows."""


class AgentWish(Body):
    """What the forms of an agent send."""

    verb: Literal["steer", "start", "stop"]
    message: str = ""


_WISH: Final = FormDecoder(AgentWish)
_TARGETS: Final = {"start": ZombieTarget.ACTIVE, "stop": ZombieTarget.STOPPED}


@console_operation(HERE, HERE, "Agents")
async def show_agents(call: Call[NoBody, ZombieQuery], frame: Frame) -> Answer:
    """Show the workspace's agents, newest first."""
    page: ZombiePage = await act(call, frame.signed_in, list_zombies, query=call.query)
    older = None if page.next_cursor is None else f"{frame.address(HERE)}?cursor={page.next_cursor}"
    return show(
        frame,
        "agents",
        agents=page.items,
        total=page.total,
        older=older,
        now=call.ctx.world.now_ms(),
    )


@console_operation(HERE + "/{zombie_id}", HERE, "Agent")
async def show_agent(call: Call[NoBody, NoQuery], frame: Frame) -> Answer:
    """Show one agent: its latest events, its triggers and files, its budget, and the ways to steer it."""
    return await _page(call, frame)


async def _again(call: Call[Any, Any], frame: Frame, notice: Notice) -> Answer:
    return await _page(call, frame, notice)


@console_form(HERE + "/{zombie_id}", HERE, "Agent", _again, form=AgentWish)
async def submit_agent(call: Call[NoBody, NoQuery]) -> Answer:
    """Send an agent a message, stop it, or let it work again; then show what came of it."""
    wish, who = _WISH.decode(call), call.signed_in
    home = f"/console/{call.id('workspace_id')}"
    if wish.verb != "steer":
        await act(call, who, change_zombie, body=ZombiePatch(status=_TARGETS[wish.verb]))
        return see(f"{home}/{HERE}/{call.id('zombie_id')}")
    if not wish.message or len(wish.message.encode()) > MESSAGE_BYTES:
        raise Problem(
            "UZ-REQ-001", f"a message has 1 to {MESSAGE_BYTES:,} bytes", facts={"pointer": "/message"}
        )
    accepted = await act(call, who, steer_zombie, body=NewMessage(wish.message))
    return see(f"{home}/events/{accepted.event_id}")


async def _page(call: Call[Any, Any], frame: Frame, notice: Notice | None = None) -> Answer:
    who = frame.signed_in
    agent: ZombieRecord = await act(call, who, get_zombie)
    events: EventPage = await act(call, who, list_zombie_events, query=EventQuery(limit=LATEST))
    return show(
        frame._replace(title=agent.name),
        "agent",
        status=200 if notice is None else notice.status,
        agent=agent,
        events=events.items,
        notice=notice,
        now=call.ctx.world.now_ms(),
    )
