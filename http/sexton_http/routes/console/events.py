"""The pages of events: the list with its filters, and one event whole."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal
from urllib.parse import urlencode
from uuid import UUID

from sexton_http.answers import Answer
from sexton_http.bodies.shapes import Body
from sexton_http.gateway.call import Call
from sexton_http.gateway.operations import NoBody, NoQuery
from sexton_http.pages.console import Notice, console_form, console_operation
from sexton_http.pages.form_actions import FormDecoder, act
from sexton_http.pages.layout import see
from sexton_http.pages.templates.frame import Frame, show
from sexton_http.routes.approvals import GatePage, GateQuery, list_approvals
from sexton_http.routes.artefacts import ArtefactPage, ArtefactQuery, list_artefacts
from sexton_http.routes.event_actions import cancel_workspace_event, replay_workspace_event
from sexton_http.routes.event_details import EventWait, WholeEvent, get_workspace_event
from sexton_http.routes.events import EventPage, WorkspaceEventQuery, list_workspace_events
from sexton_http.routes.shared.agent_views import ZombieItem, ZombiePage
from sexton_http.routes.shared.event_filters import NAMED
from sexton_http.routes.zombies import ZombieQuery, list_zombies
from sexton_storage.records.events import EventStatus
from sexton_storage.records.gates import GateStatus

HERE: Final = "events"
AGENTS: Final = 100
"""Agents that the filter offers, and whose names the list shows."""


class EventWish(Body):
    """What the buttons of an event send."""

    verb: Literal["replay", "cancel"]


_WISH: Final = FormDecoder(EventWish)


async def agents_of(call: Call[Any, Any], frame: Frame) -> Sequence[ZombieItem]:
    """Give the newest agents of the workspace."""
    page: ZombiePage = await act(call, frame.signed_in, list_zombies, query=ZombieQuery(limit=AGENTS))
    return page.items


def names_of(agents: Sequence[ZombieItem]) -> Mapping[UUID, str]:
    return {agent.zombie_id: agent.name for agent in agents}


@console_operation(HERE, HERE, "Events")
async def show_events(call: Call[NoBody, WorkspaceEventQuery], frame: Frame) -> Answer:
    """Show the workspace's events, newest first, as the filters in the address say."""
    query = call.query
    page: EventPage = await act(call, frame.signed_in, list_workspace_events, query=query)
    agents = await agents_of(call, frame)
    names = names_of(agents)
    chosen = chosen_of(query)
    here = frame.address(HERE)
    older = None
    if page.next_cursor is not None:
        kept = {name: value for name, value in chosen.items() if name != "since"}
        older = f"{here}?{urlencode({**kept, 'cursor': page.next_cursor})}"
    return show(
        frame,
        "events",
        events=page.items,
        agents=agents,
        names=names,
        query=query,
        states=list(EventStatus),
        chips=[(_words(name, value, names), without(here, chosen, name)) for name, value in chosen.items()],
        older=older,
        now=call.ctx.world.now_ms(),
    )


def chosen_of(query: WorkspaceEventQuery) -> dict[str, str]:
    """What the address chooses, by the names of its parameters."""
    named = {
        "status": query.status,
        "zombie_id": query.zombie_id,
        "actor": query.actor,
        "since": query.since,
        "q": query.q,
        **{name: getattr(query, name) for name in NAMED},
    }
    return {name: str(value) for name, value in named.items() if value is not None}


def without(here: str, chosen: Mapping[str, str], name: str) -> str:
    """Where the list is without one of its filters.

    >>> without("/events", {"status": "running", "actor": "webhook:*"}, "status")
    '/events?actor=webhook%3A%2A'
    """
    kept = {other: value for other, value in chosen.items() if other != name}
    return f"{here}?{urlencode(kept)}" if kept else here


def _words(name: str, value: str, names: Mapping[UUID, str]) -> str:
    if name == "zombie_id":
        return f"agent {names.get(UUID(value), value)}"
    return f"{name} {value}"


@console_operation(HERE + "/{event_id}", HERE, "Event")
async def show_event(call: Call[NoBody, NoQuery], frame: Frame) -> Answer:
    """Show one event whole: its story, its answer, what it cost."""
    return await _page(call, frame)


async def _again(call: Call[Any, Any], frame: Frame, notice: Notice) -> Answer:
    return await _page(call, frame, notice)


@console_form(HERE + "/{event_id}", HERE, "Event", _again, form=EventWish)
async def submit_event(call: Call[NoBody, NoQuery]) -> Answer:
    """Replay or cancel an event, and show the one to look at next."""
    verb, shown = _WISH.decode(call).verb, call.id("event_id")
    if verb == "replay":
        shown = (await act(call, call.signed_in, replay_workspace_event)).event_id
    else:
        await act(call, call.signed_in, cancel_workspace_event)
    return see(f"/console/{call.id('workspace_id')}/{HERE}/{shown}")


async def _page(call: Call[Any, Any], frame: Frame, notice: Notice | None = None) -> Answer:
    who = frame.signed_in
    event: WholeEvent = await act(call, who, get_workspace_event, query=EventWait())
    agent = await call.ctx.world.storage.zombies.load(event.zombie_id)
    asked = GateQuery(status=GateStatus.PENDING, zombie_id=event.zombie_id)
    gates: GatePage = await act(call, who, list_approvals, query=asked)
    files: ArtefactPage = await act(call, who, list_artefacts, query=ArtefactQuery())
    return show(
        frame,
        "event",
        status=200 if notice is None else notice.status,
        event=event,
        name="a deleted agent" if agent is None else agent.name,
        gates=[gate for gate in gates.items if gate.event_id == event.event_id],
        files=files.items,
        story=(),
        notice=notice,
        now=call.ctx.world.now_ms(),
    )
