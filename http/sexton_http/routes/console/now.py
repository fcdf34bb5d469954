"""The page *Now*: what waits for a person, what is stuck or fails and why, and what runs."""

from collections.abc import Sequence
from itertools import groupby
from typing import Any, Final, NamedTuple
from uuid import UUID

from sexton_http.answers import Answer
from sexton_http.gateway.call import Call
from sexton_http.gateway.operations import Auth, NoBody, NoQuery, operation
from sexton_http.pages.console import console_operation
from sexton_http.pages.form_actions import MEDIA, TAG, act
from sexton_http.pages.layout import see
from sexton_http.pages.people import sign_in_page
from sexton_http.pages.templates.frame import Frame, show
from sexton_http.pages.templates.words import AGENTS, EVENTS, Mark
from sexton_http.routes.approvals import GatePage, GateQuery, list_approvals
from sexton_http.routes.billing import Balance, get_balance
from sexton_http.routes.console.events import agents_of, names_of
from sexton_http.routes.events import EventItem, EventPage, WorkspaceEventQuery, list_workspace_events
from sexton_http.routes.shared.agent_views import ZombieItem
from sexton_storage.records.events import EventStatus
from sexton_storage.records.gates import GateStatus
from sexton_storage.records.zombies import ZombieStatus

HERE: Final = "now"
RECENT: Final = "24h"
LOOKED_AT: Final = 100
"""Failed and waiting events that are looked at for what they have in common."""
SEE_OTHER: Final = 303


class Trouble(NamedTuple):
    """One line of what is stuck, fails or is blocked."""

    mark: Mark
    words: str
    reason: str
    at: int
    to: str
    verb: str


@operation("GET", "/console", tag=TAG, auth=Auth.PUBLIC, media=MEDIA, status=SEE_OTHER, extra_statuses=(200,))
async def open_console(call: Call[NoBody, NoQuery]) -> Answer:
    """Go to what waits in the first workspace."""
    return await _first(call, HERE)


@operation(
    "GET",
    "/console/-/{place}",
    tag=TAG,
    auth=Auth.PUBLIC,
    media=MEDIA,
    status=SEE_OTHER,
    extra_statuses=(200,),
)
async def open_place(call: Call[NoBody, NoQuery]) -> Answer:
    """Go to a page of the first workspace."""
    return await _first(call, call.text("place"))


async def _first(call: Call[NoBody, NoQuery], place: str) -> Answer:
    who = await call.services.browsers.find(call.head)
    if who is None:
        return sign_in_page(call.services.ways, "?next=/console")
    mine = await call.ctx.world.storage.workspaces.list(who.tenant.id)
    return see(f"/console/{mine[0].id}/{place}" if mine else "/workspaces")


@console_operation(HERE, HERE, "Now")
async def show_now(call: Call[NoBody, NoQuery], frame: Frame) -> Answer:
    """Show what waits for a person, what is stuck and why, and what runs."""
    who = frame.signed_in
    asked = GateQuery(status=GateStatus.PENDING)
    gates: GatePage = await act(call, who, list_approvals, query=asked)
    balance: Balance = await act(call, who, get_balance)
    agents = await agents_of(call, frame)
    failed = await _events(call, frame, EventStatus.AGENT_ERROR, since=RECENT)
    dead = await _events(call, frame, EventStatus.DEAD_LETTERED, since=RECENT)
    running = await _events(call, frame, EventStatus.RUNNING)
    waiting = await _events(call, frame, EventStatus.RECEIVED)
    names = names_of(agents)
    return show(
        frame,
        "now",
        gates=gates.items,
        troubles=[*halted(agents, frame), *failing([*failed.items, *dead.items], names, frame)],
        running=running.items,
        waiting=waiting.items,
        more_waiting=waiting.next_cursor is not None,
        balance=balance,
        names=names,
        now=call.ctx.world.now_ms(),
    )


def halted(agents: Sequence[ZombieItem], frame: Frame) -> list[Trouble]:
    """Agents that do not work, and that somebody may want to."""
    return [
        Trouble(
            AGENTS[agent.status],
            f"{agent.name} is paused by the platform",
            "It starts nothing until it is resumed.",
            agent.updated_at,
            frame.to("agents", agent.zombie_id),
            "Look",
        )
        for agent in agents
        if agent.status is ZombieStatus.PAUSED
    ]


def failing(events: Sequence[EventItem], names: dict[UUID, str] | Any, frame: Frame) -> list[Trouble]:
    """What fails, by agent and label: the latest first, with how often."""

    def group(event: EventItem) -> tuple[str, str]:
        return str(event.zombie_id), event.failure_label or event.error_code or event.status

    found: list[Trouble] = []
    for (_, label), some in groupby(sorted(events, key=group), key=group):
        alike = list(some)
        last = max(alike, key=lambda event: event.created_at)
        name = names.get(last.zombie_id, "an agent")
        often = "once" if len(alike) == 1 else f"{len(alike)} times"
        to = f"{frame.address('events')}?status={last.status}&zombie_id={last.zombie_id}"
        found.append(
            Trouble(
                EVENTS[last.status],
                f"{name} fails: {label}",
                f"{often} in 24 hours",
                last.created_at,
                to,
                "Look",
            )
        )
    return sorted(found, key=lambda trouble: -trouble.at)


async def _events(
    call: Call[Any, Any], frame: Frame, status: EventStatus, since: str | None = None
) -> EventPage:
    asked = WorkspaceEventQuery(status=status, since=since, limit=LOOKED_AT)
    page: EventPage = await act(call, frame.signed_in, list_workspace_events, query=asked)
    return page
