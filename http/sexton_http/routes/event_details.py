"""One event, whole: what became of each attempt, why it waits, and where the rest of it is."""

from typing import Any
from uuid import UUID

from sexton_actors.event_waits import Reason, WaitKind, outlook
from sexton_actors.manifest.model import from_json
from sexton_actors.traces.context import context_of
from sexton_http.bodies.shapes import GateView, Query, Shape, WaitMs, view_gate
from sexton_http.gateway.call import Call
from sexton_http.gateway.operations import NoBody, NoQuery, Wait, operation
from sexton_http.routes.events import PAGE_BYTES, TAG, EventItem, sizes_of, view_event
from sexton_http.routes.shared.event_lookup import check_place, find_event, unknown_event
from sexton_http.routes.shared.event_wait import asked_wait_s, until_ended
from sexton_storage.records.events import Event, EventStatus
from sexton_storage.records.insights import Attempt
from sexton_storage.records.leases import LeaseStatus
from sexton_storage.rules import LIVE_LEASE, has_ended

AGENT = "/v1/workspaces/{workspace_id}/zombies/{zombie_id}/events/{event_id}"
WORKSPACE = "/v1/workspaces/{workspace_id}/events/{event_id}"
RUNNER_LOST = "runner_lost"


class EventWait(Query):
    wait_ms: WaitMs = 0
    """How long to wait for its end; the header `Prefer: wait=SECONDS` does the same. When that is over the
    event is shown as it is."""


class EventLease(Shape):
    """One lease of the event."""

    lease_id: UUID
    attempt: int
    runner_id: UUID
    fencing_token: int
    status: LeaseStatus
    outcome: EventStatus | None
    """What the event became by it; null while it runs, and where the event went back to the queue."""
    failure_label: str | None
    granted_at: int
    renewed_at: int
    """When it was renewed last, or ended."""
    renewals: int
    expires_at: int
    ceiling_at: int
    ended_at: int | None
    run_ms: int
    """The time that was billed so far is that up to `renewed_at`; this is the runner's own count."""
    model: str | None
    config_version_id: UUID | None
    tokens: int
    charged_nanos: int


class EventLinks(Shape):
    """Paths of what belongs to the event."""

    agent: str
    why: str
    transcript: str
    artefacts: str
    charges: str
    """The metering rows of the event."""
    stream: str
    """The stream of the agent."""
    replay: str
    cancel: str
    resumes: str | None
    """The event that it repeats."""
    trace: str | None
    """Where its trace can be looked at, outside of this server; null: the server was not told where."""


class WholeEvent(EventItem, kw_only=True):
    input_tokens: int
    cached_input_tokens: int
    cache_write_tokens: int
    output_tokens: int
    first_leased_at: int | None
    parked_ms: int
    traceparent: str | None
    """What its sender sent."""
    trace_id: str
    """The trace that its spans are in: the sender's, else one of its own."""
    leases: list[EventLease]
    """Oldest first; of more than 50 the newest."""
    gates: list[GateView]
    """As many, oldest first."""
    links: EventLinks


class ReasonItem(Shape):
    kind: WaitKind
    says: str
    """One sentence."""
    advice: str
    """What somebody can do about it."""
    until: int | None
    """When it passes by itself, at the latest; null: not by itself, or nobody knows when."""
    names: tuple[str, ...]
    """Needs that no runner meets, or credentials that are not granted."""
    event_id: UUID | None
    gate_id: UUID | None
    link: str | None
    """The path of what the sentence is about."""


class EventWhy(Shape):
    event_id: UUID
    zombie_id: UUID
    status: EventStatus
    waits: bool
    says: str
    """The first reason, or that there is none."""
    reasons: list[ReasonItem]
    """All that keeps it from running now; empty when nothing does."""
    place: int | None
    """Among the older events of all agents that need the same of a runner and may run, from 1. Workspaces
    take turns, so it may come sooner. Null: it is not in the queue."""
    place_of_agent: int | None
    """Among the waiting events of its agent."""
    expected_start_at: int | None
    """From how often runners that can take it took an event in the last ten minutes; null: not known."""
    link: str
    """The path of the event."""


@operation(
    "GET", AGENT, tag=TAG, wait=Wait.LONG_POLL, codes=("UZ-ZMB-009", "UZ-EVENT-001"), agents="UZ-AUTH-001"
)
async def get_zombie_event(call: Call[NoBody, EventWait]) -> WholeEvent:
    """Show one event of an agent, whole; with `wait_ms` or `Prefer: wait`, once it has ended."""
    zombie_id = call.id("zombie_id")
    await call.services.scopes.require_zombie(call.id("workspace_id"), zombie_id)
    return await _whole(call, zombie_id)


@operation("GET", WORKSPACE, tag=TAG, wait=Wait.LONG_POLL, codes=("UZ-EVENT-001",))
async def get_workspace_event(call: Call[NoBody, EventWait]) -> WholeEvent:
    """Show one event of a workspace, whole; with `wait_ms` or `Prefer: wait`, once it has ended."""
    return await _whole(call, None)


@operation("GET", f"{AGENT}/why", tag=TAG, codes=("UZ-ZMB-009", "UZ-EVENT-001"), agents="UZ-AUTH-001")
async def explain_zombie_event(call: Call[NoBody, NoQuery]) -> EventWhy:
    """Say why an event of an agent waits; as under the workspace."""
    zombie_id = call.id("zombie_id")
    await call.services.scopes.require_zombie(call.id("workspace_id"), zombie_id)
    return await _why(call, zombie_id)


@operation("GET", f"{WORKSPACE}/why", tag=TAG, codes=("UZ-EVENT-001",))
async def explain_workspace_event(call: Call[NoBody, NoQuery]) -> EventWhy:
    """Say why an event waits, what to do about it, its place in the queue and when it may start."""
    return await _why(call, None)


async def _whole(call: Call[Any, EventWait], zombie_id: UUID | None) -> WholeEvent:
    wait_s = asked_wait_s(call.query.wait_ms, call.head)
    if wait_s:
        event = await find_event(call, zombie_id)
        call.leave_door()
        await until_ended(call.ctx, event, wait_s)
    await call.reserve(PAGE_BYTES)
    event = await find_event(call, zombie_id)
    storage = call.ctx.world.storage
    history = await storage.insights.history(event.id)
    names = await storage.zombies.names([event.zombie_id])
    sizes = sizes_of(event)
    return WholeEvent(
        **{
            name: getattr(item, name)
            for item in (view_event(event, names.get(event.zombie_id, ""), sizes),)
            for name in item.__struct_fields__
        },
        input_tokens=event.input_tokens,
        cached_input_tokens=event.cached_input_tokens,
        cache_write_tokens=event.cache_write_tokens,
        output_tokens=event.output_tokens,
        first_leased_at=event.first_leased_at,
        parked_ms=event.parked_ms,
        traceparent=event.traceparent,
        trace_id=context_of(event).trace_id,
        leases=[_attempt(one, event, is_last=one is history.attempts[-1]) for one in history.attempts],
        gates=[view_gate(gate) for gate in history.gates],
        links=_links(event, call.ctx.settings.trace_link),
    )


def _attempt(attempt: Attempt, event: Event, *, is_last: bool) -> EventLease:
    lease = attempt.lease
    ended = is_last and has_ended(event) and lease.status not in LIVE_LEASE
    label = event.failure_label if ended else None
    return EventLease(
        lease_id=lease.id,
        attempt=lease.attempt,
        runner_id=lease.runner_id,
        fencing_token=lease.fencing_token,
        status=lease.status,
        outcome=event.status if ended else None,
        failure_label=label or (RUNNER_LOST if lease.status is LeaseStatus.RECLAIMED else None),
        granted_at=lease.granted_at,
        renewed_at=lease.metered_at,
        renewals=lease.slice_seq,
        expires_at=lease.expires_at,
        ceiling_at=lease.ceiling_at,
        ended_at=lease.ended_at,
        run_ms=lease.run_ms,
        model=lease.model,
        config_version_id=lease.config_version_id,
        tokens=lease.input_tokens
        + lease.cached_input_tokens
        + lease.cache_write_tokens
        + lease.output_tokens,
        charged_nanos=attempt.charged_nanos,
    )


def _path(event: Event, event_id: UUID | None = None) -> str:
    return f"/v1/workspaces/{event.workspace_id}/events/{event_id or event.id}"


def _links(event: Event, trace_link: str | None) -> EventLinks:
    path, agent = _path(event), f"/v1/workspaces/{event.workspace_id}/zombies/{event.zombie_id}"
    resumed = event.resumes_event_id
    return EventLinks(
        agent=agent,
        why=f"{path}/why",
        transcript=f"{path}/transcript",
        artefacts=f"{path}/artefacts",
        charges=f"/v1/tenants/me/billing/charges/{event.id}/metering-periods",
        stream=f"{agent}/events/stream",
        replay=f"{path}/replay",
        cancel=f"{path}/cancel",
        resumes=None if resumed is None else _path(event, resumed),
        trace=None if trace_link is None else trace_link.replace("{trace_id}", context_of(event).trace_id),
    )


async def _why(call: Call[Any, Any], zombie_id: UUID | None) -> EventWhy:
    now = await call.ctx.world.storage.insights.situation(call.id("event_id"))
    if now is None:
        raise unknown_event(call)
    event = now.event
    check_place(call, event, zombie_id)
    found = outlook(now, from_json(now.agent.compiled))
    return EventWhy(
        event_id=event.id,
        zombie_id=event.zombie_id,
        status=event.status,
        waits=bool(found.reasons),
        says=found.reasons[0].says if found.reasons else f"It waits for nothing: {_state_of(event)}.",
        reasons=[_reason(reason, event) for reason in found.reasons],
        place=found.place,
        place_of_agent=found.place_of_agent,
        expected_start_at=found.expected_start_at,
        link=_path(event),
    )


def _state_of(event: Event) -> str:
    if event.completed_at is None:
        return f"it is {event.status}"
    label = event.failure_label
    return f"it ended as {event.status}" if label is None else f"it ended as {event.status} ({label})"


def _reason(reason: Reason, event: Event) -> ReasonItem:
    return ReasonItem(
        kind=reason.kind,
        says=reason.says,
        advice=reason.advice,
        until=reason.until,
        names=reason.names,
        event_id=reason.event_id,
        gate_id=reason.gate_id,
        link=_link(reason, event),
    )


def _link(reason: Reason, event: Event) -> str | None:
    workspace = f"/v1/workspaces/{event.workspace_id}"
    match reason.kind:
        case WaitKind.APPROVAL:
            return f"{workspace}/approvals/{reason.gate_id}"
        case WaitKind.AGENT | WaitKind.BUDGET | WaitKind.NEEDS:
            return f"{workspace}/zombies/{event.zombie_id}"
        case WaitKind.WORKSPACE:
            return workspace
        case WaitKind.BALANCE:
            return "/v1/tenants/me/billing"
        case WaitKind.GRANT:
            return f"{workspace}/credential-grants"
        case WaitKind.EARLIER_EVENT | WaitKind.MODELS:
            return None if reason.event_id is None else f"{_path(event, reason.event_id)}/why"
        case WaitKind.NO_RUNNER | WaitKind.RUNNERS_AWAY | WaitKind.SLOT:
            return "/v1/fleet/runners"
        case WaitKind.TURN:
            return None
