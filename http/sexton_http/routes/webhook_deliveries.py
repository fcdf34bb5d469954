"""What came to the addresses of webhooks: each delivery, what became of it, and the way to replay it."""

from collections.abc import Mapping
from typing import Annotated, Any, Final
from uuid import UUID

import msgspec

from sexton_actors.protocol.zombie import Redeliver
from sexton_actors.retention_terms import DAY_MS, shortest
from sexton_actors.webhooks.kept_headers import shown_headers
from sexton_actors.zombie.redelivery import replayed
from sexton_actors.zombie.refusal_advice import advice_for
from sexton_http.answers import Answer, Problem
from sexton_http.bodies.cursors import Place, decode, encode, fingerprint
from sexton_http.bodies.file_names import DEFAULT_MEDIA_TYPE
from sexton_http.bodies.shapes import Cursor, Moment, Query, Shape
from sexton_http.gateway.audit_entries import ask
from sexton_http.gateway.call import Call
from sexton_http.gateway.operations import Creates, NoBody, NoQuery, operation
from sexton_http.routes.shared.plan_limits import entitled_of
from sexton_storage.records.deliveries import (
    DELIVERIES_KEEP_MS,
    DeliveryAddress,
    DeliveryVerdict,
    WebhookDelivery,
)
from sexton_storage.records.users import Role

TAG: Final = "Webhooks"
DELIVERIES: Final = "/v1/workspaces/{workspace_id}/webhook-deliveries"
DELIVERY: Final = f"{DELIVERIES}/{{delivery_id}}"
SHOWN: Final = ("UZ-WH-040", "UZ-ENTL-001")
"""What may be told instead of a delivery, which says how long the plan keeps it."""


class DeliveryItem(Shape):
    """One delivery, as it came and as it was answered."""

    delivery_id: UUID
    zombie_id: UUID
    zombie_name: str
    at: int
    address: DeliveryAddress
    """How the address named the trigger. The address itself may hold a secret, and is not kept."""
    source: str
    """The trigger's; empty where the address means none."""
    verdict: DeliveryVerdict
    """`replayed`: it woke nobody when it came, and has an event since it was replayed."""
    code: str | None
    """The code of the refusal."""
    reason: str
    """Why it was refused or ignored, in one word."""
    detail: str
    """What the sender was told."""
    advice: str
    """What to do about it; empty where there is nothing to do."""
    event_id: UUID | None
    size: int
    """Bytes of the body."""
    body_kept: bool
    """False where an event has it, it was not read, or newer ones took its room."""
    replays: int
    replayed_at: int | None
    replayed_by: str | None
    may_be_replayed: bool


class DeliveryRecord(DeliveryItem):
    workspace_id: UUID
    headers: Mapping[str, str]
    """As they came, without the values of signatures, tokens and cookies."""
    kept_until: int


class DeliveryPage(Shape):
    items: list[DeliveryItem]
    next_cursor: str | None


class DeliveryQuery(Query):
    zombie_id: UUID | None = None
    verdict: DeliveryVerdict | None = None
    since: Moment | None = None
    """Those from this time on."""
    until: Moment | None = None
    """Those before this time."""
    limit: Annotated[int, msgspec.Meta(ge=1, le=200)] = 50
    cursor: Cursor | None = None


@operation("GET", DELIVERIES, tag=TAG)
async def list_deliveries(call: Call[NoBody, DeliveryQuery]) -> DeliveryPage:
    """List what came to the workspace's webhooks in the last seven days, newest first.

    Of an agent the newest 200 that were refused are kept, and 300 others. Every accepted delivery is an event
    whatever stands here.
    """
    workspace_id, query = call.id("workspace_id"), call.query
    filters = fingerprint(
        "deliveries", workspace_id, query.zombie_id, query.verdict, query.since, query.until
    )
    place = None if query.cursor is None else decode(query.cursor, filters)
    rows = await call.ctx.world.storage.deliveries.list(
        workspace_id,
        limit=query.limit + 1,
        before=None if place is None else place.page,
        zombie_id=query.zombie_id,
        verdict=query.verdict,
        since=query.since,
        until=query.until,
    )
    shown = rows[: query.limit]
    more = len(rows) > query.limit
    following = encode(Place(shown[-1].at, shown[-1].id, filters)) if more else None
    names = await call.ctx.world.storage.zombies.names({delivery.zombie_id for delivery in shown})
    return DeliveryPage([_item(delivery, names) for delivery in shown], following)


@operation("GET", DELIVERY, tag=TAG, codes=SHOWN)
async def get_delivery(call: Call[NoBody, NoQuery]) -> DeliveryRecord:
    """Show one delivery with its headers."""
    return await _record(call, await _find(call))


@operation(
    "GET",
    f"{DELIVERY}/body",
    tag=TAG,
    role=Role.OPERATOR,
    media=DEFAULT_MEDIA_TYPE,
    codes=("UZ-WH-040", "UZ-WH-041"),
)
async def read_delivery_body(call: Call[NoBody, NoQuery]) -> Answer:
    """Give the body of a delivery, byte by byte as it came."""
    body = await _body(call, await _find(call))
    headers = (
        (b"content-type", DEFAULT_MEDIA_TYPE.encode()),
        (b"content-disposition", b'attachment; filename="body"'),
        # What a stranger sent is not to act in a page of this server, whatever opens it.
        (b"content-security-policy", b"sandbox; default-src 'none'"),
        (b"x-content-type-options", b"nosniff"),
    )
    return Answer(200, headers, body)


@operation(
    "POST",
    f"{DELIVERY}:replay",
    tag=TAG,
    role=Role.OPERATOR,
    creates=Creates.AGAIN,
    starts_work=True,
    codes=(*SHOWN, "UZ-WH-041"),
)
async def replay_delivery(call: Call[NoBody, NoQuery]) -> DeliveryRecord:
    """Verify a delivery that woke nobody once more, with the secrets of now, as if it had just come.

    Its signed time is judged by when it came. If it is genuine now, it wakes the agent; it makes one event at
    most, however often this is asked, and none where its sender has sent it again since. What came of it
    stands in the answer, a refusal too.
    """
    delivery = await _find(call)
    if delivery.event_id is not None:
        return await _record(call, delivery)
    message = Redeliver(delivery, await _body(call, delivery), call.traceparent)
    outcome = await ask(call.ctx.system, "zombie", delivery.zombie_id, message)
    world = call.ctx.world
    after = replayed(delivery, outcome, call.member.by, world.now_ms())
    await world.storage.deliveries.settle(after)
    return await _record(call, await world.storage.deliveries.load(delivery.id) or after)


async def _find(call: Call[Any, Any]) -> WebhookDelivery:
    delivery_id = call.id("delivery_id")
    delivery = await call.ctx.world.storage.deliveries.load(delivery_id)
    if delivery is None or delivery.workspace_id != call.id("workspace_id"):
        raise Problem("UZ-WH-040", f"the workspace has no delivery {delivery_id}")
    return delivery


async def _body(call: Call[Any, Any], delivery: WebhookDelivery) -> bytes:
    body = await call.ctx.world.storage.deliveries.body(delivery.id)
    if body is None and delivery.size:
        if delivery.event_id is not None:
            raise Problem("UZ-WH-041", f"it is the request of event {delivery.event_id}")
        raise Problem("UZ-WH-041", "the body of this delivery is not kept; have its sender send it again")
    return body or b""


def _item(delivery: WebhookDelivery, names: Mapping[UUID, str]) -> DeliveryItem:
    return DeliveryItem(**_fields(delivery, names))


async def _record(call: Call[Any, Any], delivery: WebhookDelivery) -> DeliveryRecord:
    names = await call.ctx.world.storage.zombies.names([delivery.zombie_id])
    return DeliveryRecord(
        **_fields(delivery, names),
        workspace_id=delivery.workspace_id,
        headers=shown_headers(delivery.headers),
        kept_until=delivery.at + await _keep_ms(call, delivery.workspace_id),
    )


async def _keep_ms(call: Call[Any, Any], workspace_id: UUID) -> int:
    """As long as the server keeps it, or the workspace or its plan, if that is shorter."""
    policy = await call.ctx.world.storage.retention.load(workspace_id)
    own = None if policy is None else policy.delivery_days
    days = shortest(own, (await entitled_of(call)).limits.delivery_days)
    return DELIVERIES_KEEP_MS if days is None else min(days * DAY_MS, DELIVERIES_KEEP_MS)


def _fields(delivery: WebhookDelivery, names: Mapping[UUID, str]) -> dict[str, Any]:
    kept = delivery.body_bytes == delivery.size and delivery.event_id is None
    return {
        "delivery_id": delivery.id,
        "zombie_id": delivery.zombie_id,
        "zombie_name": names.get(delivery.zombie_id, ""),
        "at": delivery.at,
        "address": delivery.address,
        "source": delivery.source,
        "verdict": delivery.verdict,
        "code": delivery.code,
        "reason": delivery.reason,
        "detail": delivery.detail,
        "advice": "" if delivery.event_id is not None else advice_for(delivery.reason),
        "event_id": delivery.event_id,
        "size": delivery.size,
        "body_kept": delivery.body_bytes == delivery.size,
        "replays": delivery.replays,
        "replayed_at": delivery.replayed_at,
        "replayed_by": delivery.replayed_by,
        "may_be_replayed": kept,
    }
