"""Repeats saved events under another version of their agent, without effects, and holds both side by side."""

from collections.abc import Mapping
from typing import Annotated
from uuid import UUID

import msgspec

from sexton_actors.manifest.model import from_json
from sexton_actors.refusal import Refusal
from sexton_actors.run_versions import CANNOT_RUN, RunVersion, fault_of
from sexton_actors.zombie.versions import may_activate
from sexton_http.answers import Problem
from sexton_http.bodies.cursors import Place, decode, encode, fingerprint
from sexton_http.bodies.shapes import Body, Cursor, Query, Shape
from sexton_http.gateway.call import Call
from sexton_http.gateway.operations import Creates, NoBody, NoQuery, operation
from sexton_http.routes.event_actions import AgentVersion
from sexton_http.routes.jobs import NEW_CODES, BulkAnswer, Changed, JobView, begin_job, find_job, view_job
from sexton_storage.records.events import Event, EventStatus
from sexton_storage.records.jobs import JobKind, ShadowPair
from sexton_storage.records.users import Role

TAG = "Harness"
SHADOW = "/v1/workspaces/{workspace_id}/zombies/{zombie_id}/shadow"
REPORT = "/v1/workspaces/{workspace_id}/jobs/{job_id}/shadow"
FILTER_CHARS = 900
EVENTS_MAX = 1_000
MONEY_MAX = 10**15
ANSWER_CHARS = 4_096
"""What the report shows of an answer."""


class NewShadow(Body):
    agent_version: AgentVersion
    """The number of the version to be tried; a draft has to be compiled before."""
    budget_nanos: Annotated[int, msgspec.Meta(ge=1, le=MONEY_MAX)]
    """What the runs may cost together: they are charged as any others."""
    filter: Annotated[str, msgspec.Meta(max_length=FILTER_CHARS)] = ""
    """Which of the agent's events that are over, in the language of filters; empty: all, the oldest first."""
    limit: Annotated[int, msgspec.Meta(ge=1, le=EVENTS_MAX)] = 20
    """How many events at most."""
    dry_run: bool = False
    """Count, show some, and do nothing."""


class ShadowQuery(Query):
    limit: Annotated[int, msgspec.Meta(ge=1, le=50)] = 20
    cursor: Cursor | None = None


class ShadowSide(Shape):
    """What came of one event, under one version."""

    event_id: UUID
    agent_version: int | None
    status: EventStatus
    failure_label: str | None
    response_text: str | None
    """No more than 4,096 characters."""
    charged_nanos: int
    wall_ms: int
    tokens: int
    tools: Mapping[str, int]
    """How often each tool was called, as far as the frames are still kept."""


class ShadowItem(Shape):
    original: ShadowSide | None
    """Null: it was deleted."""
    shadow: ShadowSide
    same_answer: bool
    would_have_asked: list[str]
    """Tools and actions about which people would have been asked; nobody was."""


class ShadowReport(Shape):
    job: JobView
    spent_nanos: int
    """What its runs have cost so far."""
    items: list[ShadowItem]
    """The oldest first."""
    next_cursor: str | None


@operation(
    "POST",
    SHADOW,
    tag=TAG,
    role=Role.OPERATOR,
    status=202,
    creates=Creates.AGAIN,
    starts_work=True,
    codes=(*NEW_CODES, "UZ-ZMB-009", "UZ-HARNESS-001", "UZ-HARNESS-002", "UZ-HARNESS-003"),
)
async def start_shadow(call: Call[NewShadow, NoQuery]) -> BulkAnswer | Refusal:
    """Run saved events of an agent once more under a version of its files, without effects.

    One after the other, in turn with the agent's own events, until the budget is spent. Nothing is reached
    but the model, lent, remembered or scored, nobody is asked, and nothing follows.
    `GET …/jobs/{job_id}/shadow` shows both side by side.
    """
    zombie_id, body = call.id("zombie_id"), call.body
    await call.services.scopes.require_zombie(call.id("workspace_id"), zombie_id)
    if refusal := await _refused(call, zombie_id):
        return refusal
    return await begin_job(
        call,
        JobKind.SHADOW,
        f"agent:{zombie_id} {body.filter}".strip(),
        dry_run=body.dry_run,
        changed=Changed(asked_version=body.agent_version),
        bounds=(body.budget_nanos, body.limit),
    )


@operation("GET", REPORT, tag=TAG, codes=("UZ-JOB-001",))
async def get_shadow(call: Call[NoBody, ShadowQuery]) -> ShadowReport:
    """Show what came of a shadow so far: answer, cost, tools and time of each event beside the original's."""
    job, query, jobs = await find_job(call), call.query, call.ctx.world.storage.jobs
    if job.kind is not JobKind.SHADOW:
        raise Problem("UZ-JOB-001", f"the job {job.id} is no shadow")
    filters = fingerprint("shadows", job.id)
    place = None if query.cursor is None else decode(query.cursor, filters)
    after = None if place is None else place.page
    rows = await jobs.shadows(job.id, limit=query.limit + 1, after=after)
    shown = rows[: query.limit]
    last = shown[-1].shadow if len(rows) > query.limit else None
    following = None if last is None else encode(Place(last.created_at, last.id, filters))
    return ShadowReport(view_job(job), await jobs.spent(job.id), [_item(pair) for pair in shown], following)


async def _refused(call: Call[NewShadow, NoQuery], zombie_id: UUID) -> Refusal | None:
    """Why the version cannot be tried; None: it can, as the agent is now."""
    zombies, number = call.ctx.world.storage.zombies, call.body.agent_version
    zombie, config = await zombies.load(zombie_id), await zombies.load_version(zombie_id, number)
    if zombie is None or config is None:
        return Refusal("UZ-HARNESS-001", f"The agent has no version {number}.")
    if refusal := may_activate(config):
        return refusal
    manifest = from_json(config.compiled)
    detail = fault_of(zombie, RunVersion(config.id, number, manifest))
    if manifest.allow_unsandboxed:
        detail = f"Version {number} may be run without a sandbox, and a shadow needs one."
    return None if detail is None else Refusal(CANNOT_RUN, detail)


def _item(pair: ShadowPair) -> ShadowItem:
    original, shadow = pair.original, pair.shadow
    return ShadowItem(
        original=None if original is None else _side(original, pair.original_tools),
        shadow=_side(shadow, pair.tools),
        same_answer=original is not None and original.response_text == shadow.response_text,
        would_have_asked=list(pair.would_ask),
    )


def _side(event: Event, tools: Mapping[str, int]) -> ShadowSide:
    text = event.response_text
    return ShadowSide(
        event_id=event.id,
        agent_version=event.ran_version,
        status=event.status,
        failure_label=event.failure_label,
        response_text=None if text is None else text[:ANSWER_CHARS],
        charged_nanos=event.charged_nanos,
        wall_ms=event.wall_ms,
        tokens=event.tokens,
        tools=dict(tools),
    )
