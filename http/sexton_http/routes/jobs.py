"""Bulk jobs: replay or cancel many events by a filter; see how far it is, pause and stop it."""

from typing import Annotated, Any, Final, NamedTuple
from uuid import UUID

import msgspec

from sexton_actors.protocol.jobs import Begin, Change, Wish
from sexton_actors.refusal import Refusal
from sexton_http.answers import Problem
from sexton_http.bodies.cursors import Place, decode, encode, fingerprint
from sexton_http.bodies.shapes import Body, Cursor, Query, Shape
from sexton_http.gateway.audit_entries import ask
from sexton_http.gateway.call import Call
from sexton_http.gateway.operations import Creates, NoBody, NoQuery, operation
from sexton_http.routes.event_actions import AgentVersion, asked_instead
from sexton_storage.event_filter.parse import FilterError, parse_filter
from sexton_storage.records.event_filters import MAX_CHARS
from sexton_storage.records.jobs import Job, JobKind, JobStatus, Selection
from sexton_storage.records.users import Role

TAG: Final = "Bulk jobs"
WORKSPACE: Final = "/v1/workspaces/{workspace_id}"
JOB: Final = f"{WORKSPACE}/jobs/{{job_id}}"
SAMPLE: Final = 10
BEGIN_S: Final = 25.0
"""Events are counted before a job is made."""
RATE_MAX: Final = 100_000
NEW_CODES: Final = ("UZ-JOB-002",)
Filter = Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_CHARS)]
Rate = Annotated[int, msgspec.Meta(ge=1, le=RATE_MAX)]


class BulkCancel(Body):
    filter: Filter
    """Which events, in the language of filters; `after:0` is every one."""
    dry_run: bool = False
    """Count, show some, and do nothing."""
    rate: Rate | None = None
    """Events a second at most; without it, as fast as other work allows."""


class BulkReplay(BulkCancel):
    request: dict[str, Any] | None = None
    """What the new events ask, in place of what the old ones asked."""
    merge: dict[str, Any] | None = None
    """What is merged into each old request (RFC 7396); not beside `request`."""
    agent_version: AgentVersion | None = None
    """The number of the version, of each agent's own, that is to work on the new events, whichever is active
    then."""


class Changed(NamedTuple):
    """What new events have that differs from the old ones."""

    request_json: str | None = None
    merges: bool = False
    asked_version: int | None = None


UNCHANGED: Final = Changed()


class JobView(Shape):
    job_id: UUID
    workspace_id: UUID
    kind: JobKind
    status: JobStatus
    filter: str
    agent_version: int | None
    """The version that new events of a replay ask for; null: whichever is active then."""
    failure_id: UUID | None
    """The group of failures that it replays, if it was made for one."""
    total: int
    """Events that fitted when the job was made; no more than a million are counted."""
    done: int
    skipped: int
    """Those that were over, or gone, when their turn came."""
    failed: int
    refused: dict[str, int]
    """How many of the failed ones each code refused."""
    rate: int
    """Events a second, with the last page."""
    rate_limit: int | None
    waits_for: str | None
    """Why it does not go on: `queue_full`, `workspace_paused`, `storage` or `busy`; of a shadow also `runs`,
    while an event is run. It goes on by itself."""
    detail: str | None
    """Why it failed, or ended before all that fitted was done."""
    budget_nanos: int | None
    """What the runs of a shadow may cost together."""
    events_limit: int | None
    """How many events a shadow repeats at most."""
    created_by: str
    created_at: int
    updated_at: int
    started_at: int | None
    ended_at: int | None


class BulkAnswer(Shape):
    total: int
    """Events that fit; no more than a million are counted."""
    sample: list[UUID]
    """The oldest of them; only of a dry run."""
    job: JobView | None
    """Null: it was a dry run."""


class JobPage(Shape):
    items: list[JobView]
    next_cursor: str | None


class JobQuery(Query):
    limit: Annotated[int, msgspec.Meta(ge=1, le=100)] = 20
    cursor: Cursor | None = None


@operation(
    "POST",
    f"{WORKSPACE}/events:replay",
    tag=TAG,
    role=Role.OPERATOR,
    status=202,
    creates=Creates.AGAIN,
    starts_work=True,
    codes=NEW_CODES,
)
async def replay_events(call: Call[BulkReplay, NoQuery]) -> BulkAnswer | Refusal:
    """Have agents work once more on all events that are over and that a filter picks.

    Each becomes a new event, once, in the order in which they came; gates, budgets and the bounds of queues
    hold for it. A job does it, beside other work.
    """
    body = call.body
    return await begin_job(
        call,
        JobKind.REPLAY,
        body.filter,
        dry_run=body.dry_run,
        rate=body.rate,
        changed=Changed(asked_instead(body.request, body.merge), body.merge is not None, body.agent_version),
    )


@operation(
    "POST",
    f"{WORKSPACE}/events:cancel",
    tag=TAG,
    role=Role.OPERATOR,
    status=202,
    creates=Creates.AGAIN,
    codes=NEW_CODES,
)
async def cancel_events(call: Call[BulkCancel, NoQuery]) -> BulkAnswer | Refusal:
    """End all events that are not over and that a filter picks; a job does it, beside other work."""
    body = call.body
    return await begin_job(call, JobKind.CANCEL, body.filter, dry_run=body.dry_run, rate=body.rate)


@operation("GET", f"{WORKSPACE}/jobs", tag=TAG)
async def list_jobs(call: Call[NoBody, JobQuery]) -> JobPage:
    """List a workspace's bulk jobs, newest first; one that is over is shown for ninety days."""
    workspace_id, query = call.id("workspace_id"), call.query
    filters = fingerprint("jobs", workspace_id)
    place = None if query.cursor is None else decode(query.cursor, filters)
    before = None if place is None else place.page
    rows = await call.ctx.world.storage.jobs.list(workspace_id, limit=query.limit + 1, before=before)
    shown = rows[: query.limit]
    more = len(rows) > query.limit
    following = encode(Place(shown[-1].created_at, shown[-1].id, filters)) if more else None
    return JobPage([view_job(job) for job in shown], following)


@operation("GET", JOB, tag=TAG, codes=("UZ-JOB-001",))
async def get_job(call: Call[NoBody, NoQuery]) -> JobView:
    """Show how far a bulk job is."""
    return view_job(await find_job(call))


@operation("POST", f"{JOB}:pause", tag=TAG, role=Role.OPERATOR, codes=("UZ-JOB-001", "UZ-REQ-009"))
async def pause_job(call: Call[NoBody, NoQuery]) -> JobView | Refusal:
    """Have a job wait, after the events that it has in hand; once more changes nothing."""
    return await _change(call, Wish.PAUSE)


@operation("POST", f"{JOB}:resume", tag=TAG, role=Role.OPERATOR, codes=("UZ-JOB-001", "UZ-REQ-009"))
async def resume_job(call: Call[NoBody, NoQuery]) -> JobView | Refusal:
    """Let a paused job go on where it was."""
    return await _change(call, Wish.RESUME)


@operation("POST", f"{JOB}:stop", tag=TAG, role=Role.OPERATOR, codes=("UZ-JOB-001", "UZ-REQ-009"))
async def stop_job(call: Call[NoBody, NoQuery]) -> JobView | Refusal:
    """End a job after the events that it has in hand; what it has done stays done."""
    return await _change(call, Wish.STOP)


async def begin_job(
    call: Call[Any, Any],
    kind: JobKind,
    text: str,
    *,
    dry_run: bool = False,
    rate: int | None = None,
    changed: Changed = UNCHANGED,
    failure_id: UUID | None = None,
    bounds: tuple[int | None, int | None] = (None, None),
) -> BulkAnswer | Refusal:
    """Make the job, or show what it would be about; ``bounds`` are a shadow's, in nanos and events.

    Raises Problem UZ-REQ-001 for a filter that is none.
    """
    workspace_id, world = call.id("workspace_id"), call.ctx.world
    try:
        picked = parse_filter(text, now=world.now_ms())
    except FilterError as fault:
        facts = {"pointer": "/filter", "position": fault.position}
        raise Problem("UZ-REQ-001", f"/filter: {fault}", facts=facts) from fault
    if dry_run:
        selection = Selection(workspace_id, kind, picked, failure_id)
        survey = await world.storage.jobs.survey(selection, sample=SAMPLE)
        return BulkAnswer(survey.total, list(survey.sample), None)
    message = Begin(
        call.member.tenant_id,
        workspace_id,
        kind,
        text,
        call.member.by,
        call.member.name,
        failure_id,
        *changed,
        rate or 0,
        *bounds,
    )
    match await ask(call.ctx.system, "job", call.new_id(), message, timeout=BEGIN_S):
        case Refusal() as refusal:
            return refusal
        case Job() as job:
            return BulkAnswer(job.total, [], view_job(job))


async def find_job(call: Call[Any, Any]) -> Job:
    job = await call.ctx.world.storage.jobs.load(call.id("job_id"))
    if job is None or job.workspace_id != call.id("workspace_id"):
        raise Problem("UZ-JOB-001", f"the workspace has no job {call.id('job_id')}")
    return job


async def _change(call: Call[Any, Any], wish: Wish) -> JobView | Refusal:
    job = await find_job(call)
    match await ask(call.ctx.system, "job", job.id, Change(wish)):
        case Refusal() as refusal:
            return refusal
        case Job() as changed:
            return view_job(changed)


def view_job(job: Job) -> JobView:
    return JobView(
        job_id=job.id,
        workspace_id=job.workspace_id,
        kind=job.kind,
        status=job.status,
        filter=job.filter,
        agent_version=job.asked_version,
        failure_id=job.failure_id,
        total=job.total,
        done=job.done,
        skipped=job.skipped,
        failed=job.failed,
        refused=dict(job.refused),
        rate=job.rate,
        rate_limit=job.rate_limit or None,
        waits_for=job.waits_for,
        detail=job.detail,
        budget_nanos=job.budget_nanos,
        events_limit=job.events_limit,
        created_by=job.created_by,
        created_at=job.created_at,
        updated_at=job.updated_at,
        started_at=job.started_at,
        ended_at=job.ended_at,
    )
