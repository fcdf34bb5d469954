"""Failures in groups: what fails alike, since when and how often; known, muted, or done again."""

from collections.abc import Mapping
from typing import Annotated, Any, Final
from uuid import UUID

import msgspec

from sexton_actors.refusal import Refusal
from sexton_http.answers import Problem
from sexton_http.bodies.cursors import Place, decode, encode, fingerprint
from sexton_http.bodies.shapes import Body, Cursor, Moment, Query, Shape
from sexton_http.gateway.call import Call
from sexton_http.gateway.operations import Creates, NoBody, NoQuery, operation
from sexton_http.routes.jobs import NEW_CODES, BulkAnswer, Rate, begin_job
from sexton_storage.records.failures import HOUR_MS, FailureGroup, FailureStatus, status_of
from sexton_storage.records.jobs import JobKind
from sexton_storage.records.users import Role

TAG: Final = "Failures"
FAILURES: Final = "/v1/workspaces/{workspace_id}/failures"
FAILURE: Final = f"{FAILURES}/{{failure_id}}"
CODES: Final = ("UZ-FAILURE-001",)
TREND_HOURS: Final = 24
EVERY_EVENT: Final = "after:0"


class FailureView(Shape):
    failure_id: UUID
    workspace_id: UUID
    zombie_id: UUID
    zombie_name: str
    failure_label: str | None
    error_code: str | None
    message: str
    """The first and the last line of the answer, without what is different each time."""
    status: FailureStatus
    """`acknowledged` until the next failure, `muted` for as long as somebody wants."""
    count: int
    first_seen_at: int
    last_seen_at: int
    trend: list[int]
    """How many in each of the last 24 hours, the current hour last."""
    sample_event_id: UUID
    """The latest that failed so."""
    acknowledged_by: str | None
    acknowledged_at: int | None
    muted_by: str | None
    muted_until: int | None


class FailurePage(Shape):
    items: list[FailureView]
    next_cursor: str | None


class FailureQuery(Query):
    status: FailureStatus | None = None
    zombie_id: UUID | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=100)] = 50
    cursor: Cursor | None = None


class Mute(Body):
    until: Moment | None = None
    """Until when it is to be quiet; null: no longer."""


class FailureReplay(Body):
    dry_run: bool = False
    """Count, show some, and do nothing."""
    rate: Rate | None = None
    """Events a second at most; without it, as fast as other work allows."""


@operation("GET", FAILURES, tag=TAG)
async def list_failures(call: Call[NoBody, FailureQuery]) -> FailurePage:
    """List what fails in a workspace, in groups of what fails alike, the last seen first.

    Two failures are alike when agent, label, code and message are, without ids, numbers, times and paths in
    it. An event is in its group a second after it has failed.
    """
    workspace_id, query, now = call.id("workspace_id"), call.query, call.ctx.world.now_ms()
    filters = fingerprint("failures", workspace_id, query.status, query.zombie_id)
    place = None if query.cursor is None else decode(query.cursor, filters)
    rows = await call.ctx.world.storage.failures.list(
        workspace_id,
        limit=query.limit + 1,
        now=now,
        before=None if place is None else place.page,
        zombie_id=query.zombie_id,
        status=query.status,
    )
    shown = rows[: query.limit]
    more = len(rows) > query.limit
    following = encode(Place(shown[-1].last_seen_at, shown[-1].id, filters)) if more else None
    hour = now // HOUR_MS
    hours = await call.ctx.world.storage.failures.hours(
        [group.id for group in shown], since_hour=hour - TREND_HOURS + 1
    )
    names = await call.ctx.world.storage.zombies.names({group.zombie_id for group in shown})
    return FailurePage([_view(group, names, hours.get(group.id, {}), now) for group in shown], following)


@operation("GET", FAILURE, tag=TAG, codes=CODES)
async def get_failure(call: Call[NoBody, NoQuery]) -> FailureView:
    """Show one group of failures."""
    return await _shown(call, await _find(call))


@operation("POST", f"{FAILURE}:acknowledge", tag=TAG, role=Role.OPERATOR, codes=CODES)
async def acknowledge_failure(call: Call[NoBody, NoQuery]) -> FailureView:
    """Say that somebody knows; with the next failure the group is open again."""
    group = await _find(call)
    store, now = call.ctx.world.storage.failures, call.ctx.world.now_ms()
    # A failure is as new as the newest that was shown, whatever clock its node has.
    at = max(now, group.last_seen_at)
    return await _shown(call, await store.acknowledge(group.id, call.member.by, at))


@operation("POST", f"{FAILURE}:mute", tag=TAG, role=Role.OPERATOR, codes=CODES)
async def mute_failure(call: Call[Mute, NoQuery]) -> FailureView:
    """Be quiet about a group until a time, or, without one, no longer."""
    group = await _find(call)
    store = call.ctx.world.storage.failures
    return await _shown(call, await store.mute(group.id, call.member.by, call.body.until))


@operation(
    "POST",
    f"{FAILURE}:replay",
    tag=TAG,
    role=Role.OPERATOR,
    status=202,
    creates=Creates.AGAIN,
    starts_work=True,
    codes=(*CODES, *NEW_CODES),
)
async def replay_failure(call: Call[FailureReplay, NoQuery]) -> BulkAnswer | Refusal:
    """Have the agent work once more on every event of the group, as `events:replay` does."""
    group, body = await _find(call), call.body
    return await begin_job(
        call, JobKind.REPLAY, EVERY_EVENT, dry_run=body.dry_run, rate=body.rate, failure_id=group.id
    )


async def _find(call: Call[Any, Any]) -> FailureGroup:
    failure_id = call.id("failure_id")
    group = await call.ctx.world.storage.failures.load(failure_id)
    if group is None or group.workspace_id != call.id("workspace_id"):
        raise Problem("UZ-FAILURE-001", f"the workspace has no group of failures {failure_id}")
    return group


async def _shown(call: Call[Any, Any], group: FailureGroup | None) -> FailureView:
    if group is None:
        raise Problem("UZ-FAILURE-001", f"the workspace has no group of failures {call.id('failure_id')}")
    now = call.ctx.world.now_ms()
    since_hour = now // HOUR_MS - TREND_HOURS + 1
    hours = await call.ctx.world.storage.failures.hours([group.id], since_hour=since_hour)
    names = await call.ctx.world.storage.zombies.names([group.zombie_id])
    return _view(group, names, hours[group.id], now)


def _view(group: FailureGroup, names: Mapping[UUID, str], hours: Mapping[int, int], now: int) -> FailureView:
    hour = now // HOUR_MS
    return FailureView(
        failure_id=group.id,
        workspace_id=group.workspace_id,
        zombie_id=group.zombie_id,
        zombie_name=names.get(group.zombie_id, ""),
        failure_label=group.failure_label,
        error_code=group.error_code,
        message=group.message,
        status=status_of(group, now),
        count=group.count,
        first_seen_at=group.first_seen_at,
        last_seen_at=group.last_seen_at,
        trend=[hours.get(one, 0) for one in range(hour - TREND_HOURS + 1, hour + 1)],
        sample_event_id=group.sample_event_id,
        acknowledged_by=group.acknowledged_by,
        acknowledged_at=group.acknowledged_at,
        muted_by=group.muted_by,
        muted_until=group.muted_until,
    )
