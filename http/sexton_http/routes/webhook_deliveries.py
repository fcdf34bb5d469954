"""What came to the addresses of webhooks: each delivery, what became of it, and the way to replay it."""

from collections.abc import Mapping
from typing import Annotated, Any, Final
from uuid import UUID

import msgspec

from sexton_actors.manifest.model import WebhookTrigger, from_json
from sexton_actors.protocol.zombie import Redeliver
from sexton_actors.webhooks.kept_headers import shown_headers
from sexton_actors.zombie.redelivery import replayed
from sexton_actors.zombie.refusal_advice import advice_for
from sexton_actors.zombie.versions import masked_paths
from sexton_http.answers import Answer, Problem
from sexton_http.bodies.cursors import Place, decode, encode, fingerprint
from sexton_http.bodies.file_names import DEFAULT_MEDIA_TYPE
from sexton_http.bodies.shapes import Cursor, Moment, Query, Shape
from sexton_http.gateway.call import Call
from sexton_http.gateway.operations import Creates, NoBody, NoQuery, operation
from sexton_http.routes.shared.agent_files import urls
from sexton_storage.records.deliveries import (
    DELIVERIES_KEEP_MS,
    DeliveryAddress,
    DeliveryVerdict,
    RefusalCount,
    WebhookDelivery,
)
from sexton_storage.records.users import Role
from sexton_storage.records.zombies import Zombie, ZombieStatus

TAG: Final = "Webhooks"
WEBHOOKS: Final = "/v1/workspaces/{workspace_id}/webhooks"
DELIVERIES: Final = "/v1/workspaces/{workspace_id}/webhook-deliveries"
DELIVERY: Final = f"{DELIVERIES}/{{delivery_id}}"
CODES: Final = ("UZ-WH-040",)
DAY_MS: Final = 24 * 3_600_000


class DeliveryItem(Shape):
    """One delivery, as it came and as it was answered."""

    delivery_id: UUID
    zombie_id: UUID
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


class WebhookItem(Shape):
    """One address of an agent, with what was refused there; the counts are the agent's."""

    zombie_id: UUID
    zombie_name: str
    status: ZombieStatus
    source: str
    url: str
    """A secret in it is `zwh_***`."""
    signed: bool
    """False: the secret stands in the address."""
    secret_ref: str | None
    """The credential that its signatures are verified with."""
    header: str | None
    events: tuple[str, ...] | None
    """What it wakes for; null: everything."""
    refused_in_day: int
    refused_in_week: int
    unkept_in_week: int
    """Refused ones that were only counted, because too many came at once."""
    last_refused_at: int | None
    last_code: str | None
    last_reason: str | None
    last_advice: str
    """What to do about the last refusal."""


class WebhookPage(Shape):
    items: list[WebhookItem]
    next_cursor: str | None


class WebhookQuery(Query):
    zombie_id: UUID | None = None
    refusing: bool = False
    """Only agents of which a delivery was refused in the last 24 hours, the latest first; without pages."""
    limit: Annotated[int, msgspec.Meta(ge=1, le=100)] = 50
    """Agents that are looked at; each has up to eight addresses, or none."""
    cursor: Cursor | None = None


@operation("GET", WEBHOOKS, tag=TAG, codes=("UZ-ZMB-009",))
async def list_webhooks(call: Call[NoBody, WebhookQuery]) -> WebhookPage:
    """List the addresses of a workspace's agents, and how much was refused of what came there."""
    workspace_id, query = call.id("workspace_id"), call.query
    storage, now = call.ctx.world.storage, call.ctx.world.now_ms()
    following = None
    if query.zombie_id is not None:
        await call.services.scopes.require_zombie(workspace_id, query.zombie_id)
        agents = [zombie] if (zombie := await storage.zombies.load(query.zombie_id)) is not None else []
    elif query.refusing:
        refused = await storage.deliveries.refusals(workspace_id, since=now - DAY_MS, limit=query.limit)
        recent = [one for one in refused if one.last_at >= now - DAY_MS]
        loaded = [await storage.zombies.load(one.zombie_id) for one in recent]
        agents = [zombie for zombie in loaded if zombie is not None]
    else:
        filters = fingerprint("webhooks", workspace_id)
        place = None if query.cursor is None else decode(query.cursor, filters)
        after = None if place is None else place.page
        rows = await storage.zombies.list(workspace_id, limit=query.limit + 1, after=after)
        agents = list(rows[: query.limit])
        if len(rows) > query.limit:
            following = encode(Place(agents[-1].created_at, agents[-1].id, filters))
    alive = [zombie for zombie in agents if zombie.status is not ZombieStatus.KILLED]
    return WebhookPage(await _addresses(call, alive, now), following)


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
    return DeliveryPage([_item(delivery) for delivery in shown], following)


@operation("GET", DELIVERY, tag=TAG, codes=CODES)
async def get_delivery(call: Call[NoBody, NoQuery]) -> DeliveryRecord:
    """Show one delivery with its headers."""
    return _record(await _find(call))


@operation(
    "GET",
    f"{DELIVERY}/body",
    tag=TAG,
    role=Role.OPERATOR,
    media=DEFAULT_MEDIA_TYPE,
    codes=(*CODES, "UZ-WH-041"),
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
    codes=(*CODES, "UZ-WH-041"),
)
async def replay_delivery(call: Call[NoBody, NoQuery]) -> DeliveryRecord:
    """Verify a delivery that woke nobody once more, with the secrets of now, as if it had just come.

    Its signed time is judged by when it came. If it is genuine now, it wakes the agent; it makes one event at
    most, however often this is asked, and none where its sender has sent it again since. What came of it
    stands in the answer, a refusal too.
    """
    delivery = await _find(call)
    if delivery.event_id is not None:
        return _record(delivery)
    message = Redeliver(delivery, await _body(call, delivery), call.traceparent)
    outcome = await call.ctx.system.ask("zombie", delivery.zombie_id, message)
    world = call.ctx.world
    after = replayed(delivery, outcome, call.member.by, world.now_ms())
    await world.storage.deliveries.settle(after)
    return _record(await world.storage.deliveries.load(delivery.id) or after)


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


async def _addresses(call: Call[Any, Any], agents: list[Zombie], now: int) -> list[WebhookItem]:
    store, ids = call.ctx.world.storage.deliveries, [zombie.id for zombie in agents]
    week, day = [
        {
            one.zombie_id: one
            for one in await store.refusals(
                call.id("workspace_id"), since=since, limit=len(ids), zombie_ids=ids
            )
        }
        for since in (now - DELIVERIES_KEEP_MS, now - DAY_MS)
    ]
    return [
        _address(call, zombie, trigger, week.get(zombie.id), day.get(zombie.id))
        for zombie in agents
        for trigger in from_json(zombie.compiled).webhook_triggers
    ]


def _address(
    call: Call[Any, Any],
    zombie: Zombie,
    trigger: WebhookTrigger,
    week: RefusalCount | None,
    day: RefusalCount | None,
) -> WebhookItem:
    signature = trigger.signature
    addresses = urls(call.ctx, masked_paths(zombie.id, from_json(zombie.compiled)))
    return WebhookItem(
        zombie_id=zombie.id,
        zombie_name=zombie.name,
        status=zombie.status,
        source=trigger.source,
        url=addresses[trigger.source],
        signed=signature is not None,
        secret_ref=None if signature is None else signature.secret_ref,
        header=None if signature is None else signature.header,
        events=trigger.events,
        refused_in_day=0 if day is None else day.refused,
        refused_in_week=0 if week is None else week.refused,
        unkept_in_week=0 if week is None else week.unkept,
        last_refused_at=None if week is None else week.last_at,
        last_code=None if week is None else week.last_code,
        last_reason=None if week is None else week.last_reason,
        last_advice="" if week is None else advice_for(week.last_reason),
    )


def _item(delivery: WebhookDelivery) -> DeliveryItem:
    return DeliveryItem(**_fields(delivery))


def _record(delivery: WebhookDelivery) -> DeliveryRecord:
    return DeliveryRecord(
        **_fields(delivery),
        workspace_id=delivery.workspace_id,
        headers=shown_headers(delivery.headers),
        kept_until=delivery.at + DELIVERIES_KEEP_MS,
    )


def _fields(delivery: WebhookDelivery) -> dict[str, Any]:
    kept = delivery.body_bytes == delivery.size and delivery.event_id is None
    return {
        "delivery_id": delivery.id,
        "zombie_id": delivery.zombie_id,
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
