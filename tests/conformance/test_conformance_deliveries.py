"""Deliveries of webhooks: the newest are kept, their bodies within bounds, and they go with their agent."""

from typing import Any
from uuid import UUID

from msgspec.structs import replace

from sexton_storage.paging import Page
from sexton_storage.records.deliveries import (
    BODIES_BYTES,
    DELIVERIES_KEEP_MS,
    HOUR_MS,
    OTHERS_KEPT,
    REFUSED_KEPT,
    DeliveryAddress,
    DeliveryVerdict,
    KeptDelivery,
    RefusalCount,
    WebhookDelivery,
)
from sexton_storage.records.zombies import Zombie
from tests.worlds.storage import StorageWorld, new_id

REFUSED, ACCEPTED = DeliveryVerdict.REFUSED, DeliveryVerdict.ACCEPTED


def one(agent: Zombie, at: int, verdict: DeliveryVerdict = REFUSED, body: bytes = b"{}") -> KeptDelivery:
    delivery = WebhookDelivery(
        id=new_id(),
        zombie_id=agent.id,
        workspace_id=agent.workspace_id,
        tenant_id=agent.tenant_id,
        at=at,
        address=DeliveryAddress.SOURCE,
        source="github",
        segment_hash=b"h" * 32,
        verdict=verdict,
        code="UZ-WH-010" if verdict is REFUSED else None,
        reason="signature_mismatch",
        detail="it does not fit",
        event_id=None,
        headers={"x-event": {"value": "push\u00e9", "is_secret": False, "chars": 4}},
        size=len(body),
        body_bytes=len(body),
    )
    return KeptDelivery(delivery, body or None)


def count(agent: Zombie, at: int, refused: int, code: str = "UZ-WH-010") -> RefusalCount:
    return RefusalCount(agent.id, at // HOUR_MS, agent.workspace_id, refused, 1, at, code, "why")


async def test_deliveries_are_listed_by_what_became_of_them(world: StorageWorld) -> None:
    store, agent, other = world.storage.deliveries, await world.agent(), await world.agent()
    now = world.now
    first, second, third = one(agent, now), one(other, now + 1), one(agent, now + 2, ACCEPTED, b"")
    gone = one(replace(agent, id=new_id()), now)
    assert await store.keep([first, second, third, gone], []) == 3

    async def listed(**only: Any) -> list[UUID]:
        return [row.id for row in await store.list(world.workspace_id, limit=9, **only)]

    ids = [kept.delivery.id for kept in (third, second, first)]
    assert await listed() == ids
    assert await listed(zombie_id=agent.id) == [ids[0], ids[2]]
    assert await listed(verdict=REFUSED) == ids[1:]
    assert await listed(since=now + 1, until=now + 2) == [ids[1]]
    assert await listed(before=Page(now + 1, ids[1])) == [ids[2]]
    assert await store.list(new_id(), limit=9) == []

    assert await store.load(ids[2]) == first.delivery
    assert (await store.body(ids[2]), await store.body(ids[0])) == (b"{}", None)
    assert await store.load(gone.delivery.id) is None


async def test_the_newest_are_kept_and_their_bodies_within_a_bound(world: StorageWorld) -> None:
    store, agent, now = world.storage.deliveries, await world.agent(), world.now
    await store.keep([one(agent, now + at) for at in range(REFUSED_KEPT)], [])
    await store.keep([one(agent, now + at, ACCEPTED) for at in range(OTHERS_KEPT + 1)], [])
    third = BODIES_BYTES // 3
    large = [one(agent, now + 1000 + at, body=b"x" * third) for at in range(4)]
    await store.keep(large, [])

    refused = await store.list(world.workspace_id, limit=999, verdict=REFUSED)
    others = await store.list(world.workspace_id, limit=999, verdict=ACCEPTED)
    assert (len(refused), refused[-1].at, len(others), others[-1].at) == (REFUSED_KEPT, now + 4, 300, now + 1)
    assert [row.body_bytes for row in refused[:5]] == [third, third, third, 0, 0]
    assert [await store.body(kept.delivery.id) is None for kept in large] == [True, False, False, False]

    await world.storage.instance.sweep(now + 1002 + DELIVERIES_KEEP_MS)
    assert [row.at - now for row in await store.list(world.workspace_id, limit=9)] == [1003, 1002]


async def test_the_bodies_of_a_workspace_have_a_bound_and_its_rows_stay(world: StorageWorld) -> None:
    store, now = world.storage.deliveries, world.now
    agents = [await world.agent() for _ in range(2)]
    await store.keep([one(agents[at % 2], now + at, body=b"x" * 100) for at in range(6)], [])

    async def kept() -> list[int]:
        return [row.body_bytes for row in await store.list(world.workspace_id, limit=9)]

    assert await store.trim(new_id(), max_bytes=0, limit=9) == 0
    assert await store.trim(world.workspace_id, max_bytes=600, limit=9) == 0
    assert await store.trim(world.workspace_id, max_bytes=350, limit=2) == 2
    assert await kept() == [100, 100, 100, 100, 0, 0]

    assert await store.trim(world.workspace_id, max_bytes=350, limit=2) == 1

    rows = await store.list(world.workspace_id, limit=9)
    assert [row.body_bytes for row in rows] == [100, 100, 100, 0, 0, 0]
    assert [await store.body(row.id) is None for row in rows] == [False] * 3 + [True] * 3
    assert {row.reason for row in rows} == {"signature_mismatch"}


async def test_a_replay_is_noted_until_there_is_an_event(world: StorageWorld) -> None:
    store, agent, now = world.storage.deliveries, await world.agent(), world.now
    kept = one(agent, now)
    await store.keep([kept], [])
    tried = replace(kept.delivery, code="UZ-WH-003", detail="stopped", replayed_at=now, replayed_by="user:1")
    await store.settle(tried)
    assert await store.load(kept.delivery.id) == replace(tried, replays=1)

    event = await world.append(agent, source_event_id="d-1")
    done = replace(tried, verdict=DeliveryVerdict.REPLAYED, event_id=event.id, code=None)
    await store.settle(done)
    await store.settle(replace(tried, detail="too late"))
    assert await store.load(kept.delivery.id) == replace(done, replays=2)

    of_sender = (agent.id, event.actor, "d-1")
    assert await store.event_of(*of_sender, event.created_at) == event.id
    assert await store.event_of(*of_sender, event.created_at + 1) is None
    assert await store.event_of(agent.id, event.actor, "another", 0) is None


async def test_refusals_are_counted_by_agent_and_hour_and_go_with_the_agent(world: StorageWorld) -> None:
    store, agent, other = world.storage.deliveries, await world.agent(), await world.agent()
    hour, nobody = world.now // HOUR_MS * HOUR_MS, replace(agent, id=new_id())
    await store.keep(
        [one(agent, hour)], [count(agent, hour, 2), count(other, hour + 5, 1), count(nobody, 1, 1)]
    )
    await store.keep([], [count(agent, hour + 9, 3, "UZ-WH-020"), count(agent, hour + 3, 1)])
    await store.keep([], [count(agent, hour + HOUR_MS, 4, "UZ-WH-011")])

    mine, theirs = await store.refusals(world.workspace_id, since=hour, limit=9)
    assert (mine.zombie_id, mine.refused, mine.unkept, mine.last_at) == (agent.id, 10, 4, hour + HOUR_MS)
    assert (mine.last_code, theirs.refused) == ("UZ-WH-011", 1)

    [later] = await store.refusals(world.workspace_id, since=hour + HOUR_MS, limit=9)
    assert later.refused == 4

    [asked] = await store.refusals(world.workspace_id, since=hour, limit=9, zombie_ids=[other.id])
    assert asked.zombie_id == other.id
    assert await store.refusals(new_id(), since=0, limit=9) == []

    assert await world.storage.zombies.delete(agent.id)
    assert await store.list(world.workspace_id, limit=9) == []
    assert [row.zombie_id for row in await store.refusals(world.workspace_id, since=0, limit=9)] == [other.id]
