"""How long a workspace keeps what it has: shown, set, and counted before it goes."""

from typing import Annotated, Any, Final

import msgspec

from sexton_actors.retention_terms import DAY_MS, plan_days, shortest
from sexton_http.answers import Problem
from sexton_http.bodies.shapes import Body, Query, Shape
from sexton_http.gateway.call import Call
from sexton_http.gateway.operations import NoBody, NoQuery, operation
from sexton_http.routes.shared.plan_limits import entitled_of
from sexton_storage.records.deliveries import DELIVERIES_KEEP_MS
from sexton_storage.records.retention import KeptClass, RetentionPolicy
from sexton_storage.records.users import Role

TAG: Final = "Retention"
PATH: Final = "/v1/workspaces/{workspace_id}/retention"
CODES: Final = ("UZ-ENTL-001",)
MOST_COUNTED: Final = 10_000
"""Rows of a class, and of a table, that a preview looks at: the oldest."""
Days = Annotated[int, msgspec.Meta(ge=1, le=36_500)]


class RetentionItem(Shape):
    what: KeptClass
    own_days: int | None
    """What the workspace has chosen; null: nothing."""
    plan_days: int | None
    server_days: int | None
    """What the server keeps at most. Null: no bound."""
    days: int | None
    """The smallest of the three, which counts; null: as long as their agent."""


class RetentionView(Shape):
    items: list[RetentionItem]
    slice_days: int | None
    """The server's: days until metering rows become one for each attempt, whose sums stay; null: never."""


class RetentionPut(Body):
    """The whole policy: what is left out is kept as long as the plan and the server keep it."""

    event_days: Days | None = None
    """Days after an event has ended."""
    transcript_days: Days | None = None
    file_days: Days | None = None
    delivery_days: Days | None = None
    drop_charged: bool = False
    """Events that were charged may go although they are due at once; export first what you need of them."""


class RetentionQuery(Query):
    """What is left out counts as it is set."""

    event_days: Days | None = None
    transcript_days: Days | None = None
    file_days: Days | None = None
    delivery_days: Days | None = None


class DueItem(Shape):
    what: KeptClass
    days: int | None
    rows: int
    bytes: int
    """The size of payloads, entries, files and bodies as they are stored."""
    oldest_at: int | None
    charged_nanos: int
    """What the events among them were charged. The sums stay when the events go."""
    more: bool
    """Only the oldest 10,000 rows were counted, and there may be more."""


class RetentionPreview(Shape):
    items: list[DueItem]


@operation("GET", PATH, tag=TAG, codes=CODES)
async def get_retention(call: Call[NoBody, NoQuery]) -> RetentionView:
    """Show how many days the workspace keeps what it has, and who says so."""
    policy = await call.ctx.world.storage.retention.load(call.id("workspace_id"))
    return await _view(call, policy)


@operation("PUT", PATH, tag=TAG, role=Role.ADMIN, codes=(*CODES, "UZ-RETENTION-001"))
async def put_retention(call: Call[RetentionPut, NoQuery]) -> RetentionView:
    """Set how many days the workspace keeps what it has; the plan's and the server's bounds still count.

    Where events that were charged would go at once, it is refused unless `drop_charged` says that they may,
    or the server archives them first.
    """
    world, workspace_id = call.ctx.world, call.id("workspace_id")
    body = call.body
    policy = RetentionPolicy(
        workspace_id,
        body.event_days,
        body.transcript_days,
        body.file_days,
        body.delivery_days,
        world.now_ms(),
    )
    before = await _view(call, await world.storage.retention.load(workspace_id))
    after = await _view(call, policy)
    # What an archive gets first is not lost: it goes there with what it was charged.
    if not body.drop_charged and world.archive is None:
        await _keep_charged(call, _days_of_events(before), _days_of_events(after))
    await world.storage.retention.save(policy)
    return after


@operation("GET", PATH + "/preview", tag=TAG, codes=CODES)
async def preview_retention(call: Call[NoBody, RetentionQuery]) -> RetentionPreview:
    """Count what would go, class by class, with the days that are set or with others; nothing is deleted."""
    world, workspace_id, asked = call.ctx.world, call.id("workspace_id"), call.query
    kept = await world.storage.retention.load(workspace_id)
    own = RetentionPolicy(workspace_id, None, None, None, None, 0) if kept is None else kept
    policy = RetentionPolicy(
        workspace_id,
        own.event_days if asked.event_days is None else asked.event_days,
        own.transcript_days if asked.transcript_days is None else asked.transcript_days,
        own.file_days if asked.file_days is None else asked.file_days,
        own.delivery_days if asked.delivery_days is None else asked.delivery_days,
        0,
    )
    view = await _view(call, policy)
    return RetentionPreview([await _due(call, item) for item in view.items])


async def _due(call: Call[Any, Any], item: RetentionItem) -> DueItem:
    if item.days is None:
        return DueItem(item.what, None, 0, 0, None, 0, more=False)
    due = await call.ctx.world.storage.retention.due(
        call.id("workspace_id"), item.what, keep_ms=item.days * DAY_MS, limit=MOST_COUNTED
    )
    return DueItem(item.what, item.days, due.rows, due.bytes, due.oldest_at, due.charged_nanos, more=due.more)


async def _keep_charged(call: Call[Any, Any], before: int | None, after: int | None) -> None:
    """Raises Problem UZ-RETENTION-001 when fewer days would delete events that were charged."""
    if after is None or (before is not None and before <= after):
        return
    due = await call.ctx.world.storage.retention.due(
        call.id("workspace_id"), KeptClass.EVENTS, keep_ms=after * DAY_MS, limit=MOST_COUNTED
    )
    if due.charged_nanos:
        detail = f"{due.rows} events, charged {due.charged_nanos} nanos, would be deleted at once"
        facts = {"rows": due.rows, "charged_nanos": due.charged_nanos}
        raise Problem("UZ-RETENTION-001", detail, facts=facts)


def _days_of_events(view: RetentionView) -> int | None:
    return next(item.days for item in view.items if item.what is KeptClass.EVENTS)


async def _view(call: Call[Any, Any], policy: RetentionPolicy | None) -> RetentionView:
    world, limits = call.ctx.world, (await entitled_of(call)).limits
    server = {
        KeptClass.EVENTS: None,
        KeptClass.TRANSCRIPTS: world.transcripts.days,
        KeptClass.FILES: world.files.keep_ms // DAY_MS,
        KeptClass.DELIVERIES: DELIVERIES_KEEP_MS // DAY_MS,
    }
    items = []
    for what in KeptClass:
        own, plan = None if policy is None else policy.of(what), plan_days(limits, what)
        items.append(RetentionItem(what, own, plan, server[what], shortest(own, plan, server[what])))
    return RetentionView(items, world.retention.slice_days or None)
