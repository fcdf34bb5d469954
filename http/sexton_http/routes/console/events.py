"""The pages of events: the list with its filters, and one event whole."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Literal
from urllib.parse import urlencode
from uuid import UUID

import msgspec

from sexton_http.answers import Answer, Problem
from sexton_http.bodies.shapes import Body, Cursor, Query
from sexton_http.gateway.call import Call
from sexton_http.gateway.operations import NoBody, NoQuery
from sexton_http.pages.console import Notice, console_form, console_operation, older_of, see_page, show_page
from sexton_http.pages.form_actions import FormDecoder, act, may
from sexton_http.pages.side_by_side import Asked, side_by_side
from sexton_http.pages.templates.frame import Frame
from sexton_http.routes.artefacts import ArtefactPage, ArtefactQuery, list_artefacts
from sexton_http.routes.billing import Periods, list_metering_periods
from sexton_http.routes.console.changed_requests import Change, How, changed_request
from sexton_http.routes.console.event_story import story_of, timeline_of
from sexton_http.routes.event_actions import ReplayOrder, cancel_workspace_event, replay_workspace_event
from sexton_http.routes.event_details import (
    EventWait,
    EventWhy,
    WholeEvent,
    explain_workspace_event,
    get_workspace_event,
)
from sexton_http.routes.events import EventPage, WorkspaceEventQuery, list_workspace_events
from sexton_http.routes.harness import VersionItem, VersionPage, VersionQuery, list_harness_versions
from sexton_http.routes.shared.agent_views import ZombiePage, budget_of
from sexton_http.routes.transcripts import TranscriptPage, TranscriptQuery, get_workspace_transcript
from sexton_http.routes.zombies import ZombieQuery, list_zombies
from sexton_storage.records.configs import ConfigStatus
from sexton_storage.records.events import EventStatus
from sexton_storage.records.gates import GateStatus

HERE: Final = "events"
MOST_ENTRIES: Final = 200
"""Entries of the transcript that the timeline is drawn from."""
RUNNABLE: Final = frozenset({ConfigStatus.COMPILED, ConfigStatus.ACTIVE, ConfigStatus.SUPERSEDED})
"""Versions that a replay may ask for."""
NOTHING_SAID: Final = TranscriptPage([], [], None)
"""For those who may not read transcripts."""
AGENTS: Final = 100
"""Agents that the filter offers, the newest of the workspace."""


class EventSearch(Query):
    """What the form above the list sends; an empty field chooses nothing."""

    q: str = ""
    status: str = ""
    agent: str = ""
    after: str = ""
    cursor: Cursor | None = None


class EventWish(Body):
    """What the buttons of an event send."""

    verb: Literal["replay", "cancel"]
    agent_version: Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)] = 0
    """What a replay runs under; 0: the version that is active then."""
    change: Change = ""
    how: How = "merge"


_WISH: Final = FormDecoder(EventWish)


@console_operation(HERE, HERE, "Events")
async def show_events(call: Call[NoBody, EventSearch], frame: Frame) -> Answer:
    """Show the workspace's events, newest first, as the filters in the address say."""
    search = call.query
    async with side_by_side() as ask:
        page: Asked[EventPage] = ask(
            act, call, frame.signed_in, list_workspace_events, query=asked_of(search)
        )
        agents: Asked[ZombiePage] = ask(
            act, call, frame.signed_in, list_zombies, query=ZombieQuery(limit=AGENTS)
        )
    events, offered = page.answer.items, {agent.zombie_id: agent.name for agent in agents.answer.items}
    names = {**offered, **{event.zombie_id: event.zombie_name for event in events}}
    chosen = chosen_of(search)
    is_other = search.agent and search.agent not in map(str, offered)
    here = frame.address(HERE)
    return show_page(
        call,
        frame,
        "events",
        events=events,
        agents=agents.answer.items,
        other_agent=name_of(search.agent, names) if is_other else None,
        search=search,
        states=list(EventStatus),
        chips=[(_words(name, value, names), without(here, chosen, name)) for name, value in chosen.items()],
        bulk=f"{frame.address('jobs')}?{urlencode({'filter': filter_text(chosen)})}" if chosen else None,
        export=export_address(call.id("workspace_id"), chosen),
        older=older_of(call, frame, HERE, page.answer.next_cursor),
    )


def export_address(workspace_id: UUID, chosen: Mapping[str, str]) -> str:
    """Where the same choice is given whole.

    >>> export_address(UUID(int=7), {"status": "running"}).partition("export")[2]
    '?status=running'
    """
    path = f"/v1/workspaces/{workspace_id}/events/export"
    return f"{path}?{urlencode(chosen)}" if chosen else path


def asked_of(search: EventSearch) -> WorkspaceEventQuery:
    """Give the query of the list. Raises Problem UZ-REQ-001."""
    try:
        status = EventStatus(search.status) if search.status else None
    except ValueError:
        facts = {"parameter": "status"}
        raise Problem("UZ-REQ-001", "status: there is no such state", facts=facts) from None
    return WorkspaceEventQuery(
        q=search.q.strip() or None,
        status=status,
        agent=search.agent or None,
        after=search.after.strip() or None,
        cursor=search.cursor,
    )


def chosen_of(search: EventSearch) -> dict[str, str]:
    """Give what the address chooses, by the names of its parameters.

    >>> chosen_of(EventSearch(q=" code:UZ-RUN-001 ", after="2h"))
    {'q': 'code:UZ-RUN-001', 'after': '2h'}
    """
    named = {
        "q": search.q.strip(),
        "status": search.status,
        "agent": search.agent,
        "after": search.after.strip(),
    }
    return {name: value for name, value in named.items() if value}


def filter_text(chosen: Mapping[str, str]) -> str:
    """Give the same choice in the language of filters.

    >>> filter_text({"q": "code:UZ-RUN-001", "status": "agent_error"})
    'code:UZ-RUN-001 status:agent_error'
    """
    return " ".join(value if name == "q" else f"{name}:{value}" for name, value in chosen.items())


def without(here: str, chosen: Mapping[str, str], name: str) -> str:
    """Where the list is without one of its filters.

    >>> without("/events", {"status": "running", "q": "actor:webhook:*"}, "status")
    '/events?q=actor%3Awebhook%3A%2A'
    """
    kept = {other: value for other, value in chosen.items() if other != name}
    return f"{here}?{urlencode(kept)}" if kept else here


def _words(name: str, value: str, names: Mapping[UUID, str]) -> str:
    if name == "q":
        return value
    if name == "agent":
        return f"agent {name_of(value, names)}"
    return f"{name} {value}"


def name_of(agent: str, names: Mapping[UUID, str]) -> str:
    """The name of the agent that the address names by its id; of one that is not known, what stands there."""
    return next((name for one, name in names.items() if str(one) == agent), agent)


async def _page(call: Call[Any, Any], frame: Frame, notice: Notice | None = None) -> Answer:
    who = frame.signed_in
    event: WholeEvent = await act(call, who, get_workspace_event, query=EventWait())
    async with side_by_side() as ask:
        found = ask(call.ctx.world.storage.zombies.load, event.zombie_id)
        why: Asked[EventWhy | None] | None = None
        if not event.ended:
            why = ask(act, call, who, explain_workspace_event)
        files: Asked[ArtefactPage] = ask(act, call, who, list_artefacts, query=ArtefactQuery())
        transcript: Asked[TranscriptPage] | None = None
        if may(who, get_workspace_transcript):
            entries = TranscriptQuery(limit=MOST_ENTRIES)
            transcript = ask(act, call, who, get_workspace_transcript, query=entries)
        charges: Asked[Periods] = ask(act, call, who, list_metering_periods)
    agent = found.answer
    versions: Sequence[VersionItem] = ()
    if event.ended and agent is not None:
        newest = VersionQuery(agent_id=event.zombie_id)
        listed: VersionPage = await act(call, who, list_harness_versions, query=newest)
        versions = [version for version in listed.items if version.status in RUNNABLE]
    budget = None if agent is None else budget_of(agent)
    now = call.ctx.world.now_ms()
    said = NOTHING_SAID if transcript is None else transcript.answer
    return show_page(
        call,
        frame,
        "event",
        notice,
        event=event,
        name="a deleted agent" if agent is None else agent.name,
        why=None if why is None else why.answer,
        gates=[gate for gate in event.gates if gate.status is GateStatus.PENDING],
        files=files.answer.items,
        versions=versions,
        story=story_of(event),
        timeline=timeline_of(event, said.items, charges.answer.items, now),
        budget=None if budget is None else budget.daily_nanos,
        attempts=said.attempts,
        reads=transcript is not None,
        allowed={
            "replay": may(who, replay_workspace_event),
            "cancel": may(who, cancel_workspace_event),
        },
        now=now,
    )


@console_operation(HERE + "/{event_id}", HERE, "Event")
async def show_event(call: Call[NoBody, NoQuery], frame: Frame) -> Answer:
    """Show one event whole: its story, its answer, what it cost."""
    return await _page(call, frame)


@console_form(HERE + "/{event_id}", HERE, "Event", _page, form=EventWish)
async def submit_event(call: Call[NoBody, NoQuery]) -> Answer:
    """Replay or cancel an event, and show the one to look at next."""
    wish, shown = _WISH.decode(call), call.id("event_id")
    if wish.verb == "replay":
        order = ReplayOrder(*changed_request(wish.change, wish.how), wish.agent_version or None)
        shown = (await act(call, call.signed_in, replay_workspace_event, body=order)).event_id
    else:
        await act(call, call.signed_in, cancel_workspace_event)
    return see_page(call, HERE, shown)
