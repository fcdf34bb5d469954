"""The page *Now*: what waits for a person, what is stuck or fails and why, and what runs."""

from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

import msgspec

from sexton_actors.event_waits import WaitKind
from sexton_http.answers import Answer
from sexton_http.gateway.call import Call
from sexton_http.gateway.operations import Auth, NoBody, NoQuery, operation
from sexton_http.pages.console import console_operation, show_page
from sexton_http.pages.form_actions import MEDIA, TAG, act, may
from sexton_http.pages.layout import see
from sexton_http.pages.people import sign_in_page
from sexton_http.pages.side_by_side import Asked, side_by_side
from sexton_http.pages.templates.frame import Frame
from sexton_http.routes.approvals import GatePage, GateQuery, list_approvals
from sexton_http.routes.billing import Balance, get_balance
from sexton_http.routes.console.engine_troubles import engine_troubles
from sexton_http.routes.event_details import EventWhy, explain_workspace_event
from sexton_http.routes.events import (
    ITEM_BYTES,
    EventPage,
    WorkspaceEventQuery,
    list_workspace_events,
)
from sexton_http.routes.failures import FailurePage, FailureQuery, acknowledge_failure, list_failures
from sexton_http.routes.queue import AgentQueue, QueueQuery, WorkspaceQueue, get_queue
from sexton_http.routes.shared.agent_views import ZombiePage
from sexton_http.routes.throughput import Throughput, ThroughputQuery, get_throughput
from sexton_http.routes.webhook_addresses import WebhookItem, WebhookPage, WebhookQuery, list_webhooks
from sexton_http.routes.zombies import ZombieQuery, list_zombies
from sexton_storage.records.events import EventStatus
from sexton_storage.records.failures import FailureStatus
from sexton_storage.records.gates import GateStatus
from sexton_storage.records.zombies import ZombieStatus

HERE: Final = "now"
LOOKED_AT: Final = 100
"""Events that run, or wait, that the page looks at."""
MOST_EXPLAINED: Final = 5
"""Agents whose oldest waiting event is asked why it waits; each costs a read of the queue."""
PLAIN_WAITS: Final = frozenset({WaitKind.TURN, WaitKind.EARLIER_EVENT, WaitKind.APPROVAL})
MOST_FAILURES: Final = 10
MOST_HALTED: Final = 10
"""Agents that the platform has paused, the newest of them."""
RECENT_MS: Final = 3_600_000
"""A webhook of which nothing was refused for so long is no trouble any more."""
SEE_OTHER: Final = 303


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
    query = call.head.query.decode("ascii", "ignore")
    return await _first(call, f"{call.text('place')}?{query}" if query else call.text("place"))


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
    # For both lists of events at once: what either needs by itself, as they are small together as a rule.
    await call.reserve(LOOKED_AT * ITEM_BYTES)
    async with side_by_side() as ask:
        waiting: Asked[EventPage] = ask(_events, call, frame, EventStatus.RECEIVED)
        gates: Asked[GatePage] = ask(
            act, call, who, list_approvals, query=GateQuery(status=GateStatus.PENDING)
        )
        asked = FailureQuery(status=FailureStatus.OPEN, limit=MOST_FAILURES)
        failures: Asked[FailurePage] = ask(act, call, who, list_failures, query=asked)
        throughput: Asked[Throughput] = ask(act, call, who, get_throughput, query=ThroughputQuery())
        queue: Asked[WorkspaceQueue] = ask(act, call, who, get_queue, query=QueueQuery())
        running = ask(_events, call, frame, EventStatus.RUNNING)
        balance: Asked[Balance] = ask(act, call, who, get_balance)
        hooks: Asked[WebhookPage] = ask(act, call, who, list_webhooks, query=WebhookQuery(refusing=True))
        paused = ZombieQuery(status=ZombieStatus.PAUSED, limit=MOST_HALTED)
        halted: Asked[ZombiePage] = ask(act, call, who, list_zombies, query=paused)
        engine = ask(engine_troubles, call, frame)
    async with side_by_side() as ask:
        reasons = [ask(_why, call, frame, agent) for agent in queue.answer.agents[:MOST_EXPLAINED]]
    return show_page(
        call,
        frame,
        "now",
        gates=gates.answer.items,
        failures=failures.answer.items,
        refusing=refusing_agents(hooks.answer.items, call.ctx.world.now_ms()),
        halted=halted.answer.items,
        stuck=[reason.answer for reason in reasons if is_stuck(reason.answer[1])],
        running=running.answer.items,
        waiting=waiting.answer.items,
        more_waiting=waiting.answer.next_cursor is not None,
        balance=balance.answer,
        minutes=throughput.answer.minutes,
        queue=queue.answer,
        allowed=may(who, acknowledge_failure),
        engine=engine.answer,
    )


def refusing_agents(hooks: Sequence[WebhookItem], now: int) -> list[WebhookItem]:
    """One address of each agent that has refused something within the hour, the latest first."""
    found: dict[UUID, WebhookItem] = {}
    for hook in hooks:
        if hook.last_refused_at is not None and hook.last_refused_at > now - RECENT_MS:
            found.setdefault(hook.zombie_id, hook)
    return list(found.values())[:MOST_FAILURES]


def is_stuck(why: EventWhy) -> bool:
    """Whether it waits for anything but its turn, and for a person, which stands above all else already."""
    return any(reason.kind not in PLAIN_WAITS for reason in why.reasons)


async def _why(call: Call[Any, Any], frame: Frame, agent: AgentQueue) -> tuple[AgentQueue, EventWhy]:
    one = msgspec.structs.replace(call, params={**call.params, "event_id": agent.oldest_event_id})
    why: EventWhy = await act(one, frame.signed_in, explain_workspace_event)
    return agent, why


async def _events(call: Call[Any, Any], frame: Frame, status: EventStatus) -> EventPage:
    asked = WorkspaceEventQuery(status=status, limit=LOOKED_AT)
    page: EventPage = await act(call, frame.signed_in, list_workspace_events, query=asked)
    return page
