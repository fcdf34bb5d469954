"""The addresses of webhooks: where each agent takes deliveries, and how much was refused there."""

from typing import Annotated, Any, Final
from uuid import UUID

import msgspec

from sexton_actors.manifest.model import WebhookTrigger, from_json
from sexton_actors.zombie.refusal_advice import advice_for
from sexton_actors.zombie.versions import masked_paths
from sexton_http.bodies.cursors import Place, decode, encode, fingerprint
from sexton_http.bodies.shapes import Cursor, Query, Shape
from sexton_http.gateway.call import Call
from sexton_http.gateway.operations import NoBody, operation
from sexton_http.routes.shared.agent_files import urls
from sexton_storage.records.deliveries import DELIVERIES_KEEP_MS, RefusalCount
from sexton_storage.records.zombies import Zombie, ZombieStatus

TAG: Final = "Webhooks"
WEBHOOKS: Final = "/v1/workspaces/{workspace_id}/webhooks"
DAY_MS: Final = 24 * 3_600_000


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
        agents = list(await storage.zombies.load_many([one.zombie_id for one in recent]))
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


async def _addresses(call: Call[Any, Any], agents: list[Zombie], now: int) -> list[WebhookItem]:
    store, ids = call.ctx.world.storage.deliveries, [zombie.id for zombie in agents]
    if not ids:
        return []
    week, day = [
        {
            one.zombie_id: one
            for one in await store.refusals(
                call.id("workspace_id"), since=since, limit=len(ids), zombie_ids=ids
            )
        }
        for since in (now - DELIVERIES_KEEP_MS, now - DAY_MS)
    ]
    found = []
    for zombie in agents:
        manifest = from_json(zombie.compiled)
        addresses = urls(call.ctx, masked_paths(zombie.id, manifest))
        counts = week.get(zombie.id), day.get(zombie.id)
        found += [
            _address(zombie, trigger, addresses[trigger.source], *counts)
            for trigger in manifest.webhook_triggers
        ]
    return found


def _address(
    zombie: Zombie,
    trigger: WebhookTrigger,
    url: str,
    week: RefusalCount | None,
    day: RefusalCount | None,
) -> WebhookItem:
    signature = trigger.signature
    return WebhookItem(
        zombie_id=zombie.id,
        zombie_name=zombie.name,
        status=zombie.status,
        source=trigger.source,
        url=url,
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
