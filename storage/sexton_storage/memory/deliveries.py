"""Deliveries of webhooks in memory."""

from collections.abc import Collection, Sequence
from uuid import UUID

from msgspec.structs import replace

from sexton_storage.documents import storable
from sexton_storage.memory.base import MemoryStore
from sexton_storage.memory.tables import Tables
from sexton_storage.paging import Page
from sexton_storage.records.deliveries import (
    BODIES_BYTES,
    DELIVERIES_KEEP_MS,
    HOUR_MS,
    OTHERS_KEPT,
    REFUSED_KEPT,
    DeliveryVerdict,
    KeptDelivery,
    RefusalCount,
    WebhookDelivery,
)


class MemoryDeliveries(MemoryStore):
    async def keep(self, kept: Sequence[KeptDelivery], counts: Sequence[RefusalCount]) -> int:
        await self._round_trip()
        tables = self._tables
        mine = [one for one in kept if one.delivery.zombie_id in tables.heads]
        for one in mine:
            tables.deliveries[one.delivery.id] = replace(
                one.delivery,
                source=storable(one.delivery.source),
                detail=storable(one.delivery.detail),
            )
            if one.body is not None:
                tables.delivery_bodies[one.delivery.id] = one.body
        for count in counts:
            if count.zombie_id in tables.heads:
                self._count(count)
        for zombie_id in {one.delivery.zombie_id for one in mine}:
            _let_go(tables, zombie_id)
        return len(mine)

    async def trim(self, workspace_id: UUID, *, max_bytes: int, limit: int) -> int:
        await self._round_trip()
        total, over = 0, []
        for row in _newest([r for r in self._tables.deliveries.values() if r.workspace_id == workspace_id]):
            total += row.body_bytes
            if row.body_bytes and total > max_bytes:
                over.append(row)
        for row in over[::-1][:limit]:
            self._tables.deliveries[row.id] = replace(row, body_bytes=0)
            self._tables.delivery_bodies.pop(row.id, None)
        return min(limit, len(over))

    async def load(self, delivery_id: UUID) -> WebhookDelivery | None:
        await self._round_trip()
        return self._tables.deliveries.get(delivery_id)

    async def body(self, delivery_id: UUID) -> bytes | None:
        await self._round_trip()
        return self._tables.delivery_bodies.get(delivery_id)

    async def list(
        self,
        workspace_id: UUID,
        *,
        limit: int,
        before: Page | None = None,
        zombie_id: UUID | None = None,
        verdict: DeliveryVerdict | None = None,
        since: int | None = None,
        until: int | None = None,
    ) -> Sequence[WebhookDelivery]:
        await self._round_trip()
        found = [
            one
            for one in self._tables.deliveries.values()
            if one.workspace_id == workspace_id
            and (before is None or (one.at, one.id) < (before.created_at, before.id))
            and zombie_id in {None, one.zombie_id}
            and verdict in {None, one.verdict}
            and (since is None or one.at >= since)
            and (until is None or one.at < until)
        ]
        return _newest(found)[:limit]

    async def settle(self, delivery: WebhookDelivery) -> None:
        await self._round_trip()
        kept = self._tables.deliveries.get(delivery.id)
        if kept is None or kept.event_id is not None:
            return
        self._tables.deliveries[delivery.id] = replace(
            kept,
            verdict=delivery.verdict,
            code=delivery.code,
            reason=delivery.reason,
            detail=storable(delivery.detail),
            event_id=delivery.event_id,
            replays=kept.replays + 1,
            replayed_at=delivery.replayed_at,
            replayed_by=storable(delivery.replayed_by or ""),
        )

    async def event_of(self, zombie_id: UUID, actor: str, source_event_id: str, since: int) -> UUID | None:
        await self._round_trip()
        sought = (zombie_id, actor, storable(source_event_id))
        found = [
            event
            for event in self._tables.events.values()
            if (event.zombie_id, event.actor, event.source_event_id) == sought and event.created_at >= since
        ]
        return min(found, key=lambda event: event.created_at).id if found else None

    async def refusals(
        self, workspace_id: UUID, *, since: int, limit: int, zombie_ids: Collection[UUID] | None = None
    ) -> Sequence[RefusalCount]:
        await self._round_trip()
        sums: dict[UUID, RefusalCount] = {}
        for count in self._tables.refusals.values():
            if count.workspace_id != workspace_id or count.hour < since // HOUR_MS:
                continue
            if zombie_ids is None or count.zombie_id in zombie_ids:
                before = sums.get(count.zombie_id)
                sums[count.zombie_id] = count if before is None else _sum(before, count)
        found = sorted(sums.values(), key=lambda one: (one.last_at, one.zombie_id), reverse=True)
        return found[:limit]

    def _count(self, count: RefusalCount) -> None:
        key = (count.zombie_id, count.hour)
        before = self._tables.refusals.get(key)
        self._tables.refusals[key] = count if before is None else _sum(before, count)


def _sum(one: RefusalCount, other: RefusalCount) -> RefusalCount:
    last = other if other.last_at >= one.last_at else one
    return replace(
        last,
        hour=max(one.hour, other.hour),
        refused=one.refused + other.refused,
        unkept=one.unkept + other.unkept,
    )


def _newest(found: Collection[WebhookDelivery]) -> Sequence[WebhookDelivery]:
    return sorted(found, key=lambda one: (one.at, one.id), reverse=True)


def _let_go(tables: Tables, zombie_id: UUID) -> None:
    mine = _newest([one for one in tables.deliveries.values() if one.zombie_id == zombie_id])
    refused = [one for one in mine if one.verdict is DeliveryVerdict.REFUSED]
    others = [one for one in mine if one.verdict is not DeliveryVerdict.REFUSED]
    for one in (*refused[REFUSED_KEPT:], *others[OTHERS_KEPT:]):
        delete_delivery(tables, one.id)
    total = 0
    for one in mine:
        if one.id in tables.deliveries and one.body_bytes:
            total += one.body_bytes
            if total > BODIES_BYTES:
                tables.deliveries[one.id] = replace(one, body_bytes=0)
                tables.delivery_bodies.pop(one.id, None)


def delete_delivery(tables: Tables, delivery_id: UUID) -> None:
    """With its body."""
    del tables.deliveries[delivery_id]
    tables.delivery_bodies.pop(delivery_id, None)


def forget_agent(tables: Tables, zombie_id: UUID) -> None:
    """Delete what came for an agent that is purged."""
    for one in [one for one in tables.deliveries.values() if one.zombie_id == zombie_id]:
        delete_delivery(tables, one.id)
    tables.refusals = {key: row for key, row in tables.refusals.items() if key[0] != zombie_id}


def sweep_deliveries(tables: Tables, now: int) -> int:
    """Delete what is past keeping; how many rows."""
    before = now - DELIVERIES_KEEP_MS
    old = [one.id for one in tables.deliveries.values() if one.at < before]
    for delivery_id in old:
        delete_delivery(tables, delivery_id)
    counts = len(tables.refusals)
    tables.refusals = {key: row for key, row in tables.refusals.items() if key[1] >= before // HOUR_MS}
    return len(old) + counts - len(tables.refusals)
