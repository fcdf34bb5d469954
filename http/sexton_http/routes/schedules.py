"""Schedules of agents: next, last and missed firings, and the ways to pause one or run it now."""

from collections.abc import Sequence
from typing import Annotated, Any, Final
from uuid import UUID, uuid5

import msgspec

from sexton_actors.manifest.model import CronTrigger, from_json
from sexton_actors.protocol.zombie import Accepted, AlreadyAccepted, RunSchedule
from sexton_actors.refusal import Refusal
from sexton_actors.schedules import times
from sexton_http.answers import Problem
from sexton_http.bodies.cursors import Place, decode, encode, fingerprint
from sexton_http.bodies.shapes import Cursor, Query, Shape
from sexton_http.gateway.audit_entries import ask
from sexton_http.gateway.call import Call
from sexton_http.gateway.operations import Creates, NoBody, NoQuery, operation
from sexton_http.gateway.seeds import key_of
from sexton_storage.paging import Page
from sexton_storage.records.crons import NEVER, CronEntry, Fired, ScheduleNote
from sexton_storage.records.events import EventStatus
from sexton_storage.records.users import Role
from sexton_storage.records.zombies import Zombie, ZombieStatus

TAG: Final = "Schedules"
SCHEDULES: Final = "/v1/workspaces/{workspace_id}/schedules"
SCHEDULE: Final = "/v1/workspaces/{workspace_id}/zombies/{zombie_id}/schedules/{schedule_id}"
CODES: Final = ("UZ-ZMB-009", "UZ-SCHEDULE-001")
RUN_CODES: Final = (
    "UZ-ZMB-001",
    "UZ-ZMB-012",
    "UZ-BILLING-005",
    "UZ-ENTL-001",
    "UZ-ENTL-003",
    "UZ-EVENT-002",
)
CRON: Final = "cron"
"""The type of a trigger that is a schedule."""
SHOWN: Final = 3
"""Firings that are shown, of those to come and of those that were."""
LOOKED_AT: Final = 2 * SHOWN
"""Events of a schedule that are read: one may have the same fields in another time zone."""
AGENTS_PAGE: Final = 250
AGENTS_MAX: Final = 1_000
"""Agents that one page looks through."""


class Firing(Shape):
    """An event that the schedule made."""

    event_id: UUID
    status: EventStatus
    scheduled_at: int
    """The moment that it stands for."""
    created_at: int
    late_ms: int
    asked_by: str | None
    """Who had it run out of its turn; null: it was due."""


class Missed(Shape):
    """Firings that nobody made up for."""

    total: int
    """All that were noted of this schedule."""
    since: int
    """When the latest of these were due: the first of them, and the last."""
    until: int
    why: str
    """`server_away`, `workspace_paused`, `schedule_paused` or `over_budget`."""


class ScheduleItem(Shape):
    schedule_id: UUID
    """It comes of agent, schedule and time zone, and stays when the agent's files change otherwise."""
    zombie_id: UUID
    zombie_name: str
    schedule: str
    timezone: str
    message: str
    status: str
    """`active`, `paused`, `resting` while agent or workspace is not active, or `never`: no time fits."""
    next: list[int]
    """The next three firings; none while it is not active."""
    last: list[Firing]
    """The last three, the latest first."""
    missed: Missed | None
    paused_at: int | None
    paused_by: str | None


class SchedulePage(Shape):
    items: list[ScheduleItem]
    next_cursor: str | None


class ScheduleQuery(Query):
    zombie_id: UUID | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=100)] = 50
    """Agents with schedules; each has up to eight. A page may hold fewer, and still have one after it."""
    cursor: Cursor | None = None


class ScheduleRun(Shape):
    event_id: UUID
    status: str = "accepted"


@operation("GET", SCHEDULES, tag=TAG, codes=("UZ-ZMB-009",))
async def list_schedules(call: Call[NoBody, ScheduleQuery]) -> SchedulePage:
    """List the schedules of a workspace or of one agent: next and last firings, and what was missed."""
    workspace_id, query, storage = call.id("workspace_id"), call.query, call.ctx.world.storage
    if query.zombie_id is not None:
        await call.services.scopes.require_zombie(workspace_id, query.zombie_id)
        zombie = await storage.zombies.load(query.zombie_id)
        return SchedulePage(await _shown(call, [] if zombie is None else [zombie]), None)
    filters = fingerprint("schedules", workspace_id)
    after = None if query.cursor is None else decode(query.cursor, filters).page
    found: list[UUID] = []
    looked = 0
    while True:
        rows = await storage.zombies.summaries(workspace_id, limit=AGENTS_PAGE, after=after)
        for agent in rows:
            looked += 1
            after = Page(agent.created_at, agent.id)
            if any(trigger.get("type") == CRON for trigger in agent.triggers):
                found.append(agent.id)
            if len(found) >= query.limit:
                break
        ended = len(rows) < AGENTS_PAGE and (not rows or rows[-1].id == (after.id if after else None))
        if ended or len(found) >= query.limit or looked >= AGENTS_MAX:
            break
    following = None if ended or after is None else encode(Place(after.created_at, after.id, filters))
    return SchedulePage(await _shown(call, await storage.zombies.load_many(found)), following)


@operation("GET", SCHEDULE, tag=TAG, codes=CODES)
async def get_schedule(call: Call[NoBody, NoQuery]) -> ScheduleItem:
    """Show one schedule of an agent."""
    zombie, trigger = await _find(call)
    return await _one(call, zombie, trigger)


@operation("POST", f"{SCHEDULE}:pause", tag=TAG, role=Role.OPERATOR, codes=CODES)
async def pause_schedule(call: Call[NoBody, NoQuery]) -> ScheduleItem:
    """Let a schedule rest: what is due meanwhile is not made up for. Its agent's others go on."""
    return await _set_paused(call, call.ctx.world.now_ms(), call.member.by)


@operation("POST", f"{SCHEDULE}:resume", tag=TAG, role=Role.OPERATOR, codes=CODES)
async def resume_schedule(call: Call[NoBody, NoQuery]) -> ScheduleItem:
    """Let a schedule fire again, from its next time on."""
    return await _set_paused(call, None, None)


@operation(
    "POST",
    f"{SCHEDULE}:run",
    tag=TAG,
    role=Role.OPERATOR,
    status=202,
    creates=Creates.EVENT,
    starts_work=True,
    codes=(*CODES, *RUN_CODES),
)
async def run_schedule(call: Call[NoBody, NoQuery]) -> ScheduleRun | Refusal:
    """Have the agent work as if the schedule fired now; its next firing stays where it is."""
    zombie, trigger = await _find(call)
    message = RunSchedule(
        trigger.schedule, trigger.timezone, call.member.name, call.traceparent, key_of(call.seed)
    )
    match await ask(call.ctx.system, "zombie", zombie.id, message):
        case Refusal() as refusal:
            return refusal
        case Accepted(event_id=event_id) | AlreadyAccepted(event_id=event_id):
            return ScheduleRun(event_id)


def schedule_id_of(zombie_id: UUID, trigger: CronTrigger) -> UUID:
    """The id of an agent's schedule.

    >>> one = schedule_id_of(UUID(int=1), CronTrigger("0 5 * * *"))
    >>> one == schedule_id_of(UUID(int=1), CronTrigger("0 5 * * *", message="other words"))
    True
    >>> one == schedule_id_of(UUID(int=1), CronTrigger("0 5 * * *", "Europe/Berlin"))
    False
    """
    return uuid5(zombie_id, f"{trigger.schedule} in {trigger.timezone}")


def _crons(zombie: Zombie) -> tuple[CronTrigger, ...]:
    return () if zombie.status is ZombieStatus.KILLED else from_json(zombie.compiled).cron_triggers


async def _find(call: Call[Any, Any]) -> tuple[Zombie, CronTrigger]:
    zombie_id, schedule_id = call.id("zombie_id"), call.id("schedule_id")
    zombie = await call.ctx.world.storage.zombies.load(zombie_id)
    if zombie is None or zombie.workspace_id != call.id("workspace_id"):
        raise Problem("UZ-ZMB-009", f"the workspace has no agent {zombie_id}")
    for trigger in _crons(zombie):
        if schedule_id_of(zombie.id, trigger) == schedule_id:
            return zombie, trigger
    raise Problem("UZ-SCHEDULE-001", f"the agent has no schedule {schedule_id}")


async def _set_paused(call: Call[Any, Any], at: int | None, by: str | None) -> ScheduleItem:
    zombie, trigger = await _find(call)
    note = ScheduleNote(zombie.id, trigger.schedule, trigger.timezone, at, by)
    await call.ctx.world.storage.crons.pause(note)
    return await _one(call, zombie, trigger)


async def _one(call: Call[Any, Any], zombie: Zombie, trigger: CronTrigger) -> ScheduleItem:
    wanted = schedule_id_of(zombie.id, trigger)
    return next(item for item in await _shown(call, [zombie]) if item.schedule_id == wanted)


async def _shown(call: Call[Any, Any], agents: Sequence[Zombie]) -> list[ScheduleItem]:
    crons, ids = call.ctx.world.storage.crons, [zombie.id for zombie in agents]
    entries = {(one.zombie_id, one.schedule, one.timezone): one for one in await crons.of_agents(ids)}
    notes = {(one.zombie_id, one.schedule, one.timezone): one for one in await crons.notes(ids)}
    workspace = await call.ctx.world.storage.workspaces.load(call.id("workspace_id"))
    is_paused = workspace is None or workspace.paused
    items = []
    for zombie in agents:
        for trigger in _crons(zombie):
            key = (zombie.id, trigger.schedule, trigger.timezone)
            fired = await crons.fired(zombie.workspace_id, zombie.id, trigger.schedule, limit=LOOKED_AT)
            note = notes.get(key, ScheduleNote(*key))
            entry = None if is_paused else entries.get(key)
            items.append(_item(zombie, trigger, entry, note, _firings(trigger, fired)))
    return items


def _item(
    zombie: Zombie, trigger: CronTrigger, entry: CronEntry | None, note: ScheduleNote, last: list[Firing]
) -> ScheduleItem:
    upcoming = _upcoming(entry)
    status = "active" if upcoming else "never"
    if note.paused_at is not None:
        status, upcoming = "paused", []
    elif entry is None:
        status = "resting"
    return ScheduleItem(
        schedule_id=schedule_id_of(zombie.id, trigger),
        zombie_id=zombie.id,
        zombie_name=zombie.name,
        schedule=trigger.schedule,
        timezone=trigger.timezone,
        message=trigger.message,
        status=status,
        next=upcoming,
        last=last,
        missed=_missed(note),
        paused_at=note.paused_at,
        paused_by=note.paused_by,
    )


def _upcoming(entry: CronEntry | None) -> list[int]:
    if entry is None or entry.next_at == NEVER:
        return []
    try:
        if entry.next_at is None:
            return times.upcoming(entry.schedule, entry.timezone, entry.since, SHOWN)
        later = times.upcoming(entry.schedule, entry.timezone, entry.next_at, SHOWN - 1)
    except times.Unreadable:
        return []
    return [entry.next_at, *later]


def _missed(note: ScheduleNote) -> Missed | None:
    if note.missed_from is None or note.missed_until is None:
        return None
    return Missed(note.missed, note.missed_from, note.missed_until, note.missed_why or "")


def _firings(trigger: CronTrigger, fired: Sequence[Fired]) -> list[Firing]:
    found = []
    for one in fired:
        request = msgspec.json.decode(one.request_json)
        if request.get("timezone") == trigger.timezone and isinstance(request.get("scheduled_at"), int):
            at = request["scheduled_at"]
            late = max(0, one.created_at - at)
            found.append(Firing(one.event_id, one.status, at, one.created_at, late, request.get("asked_by")))
    return found[:SHOWN]
