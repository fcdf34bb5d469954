"""Events go by age when they have ended, with what belongs to them; what was charged stays."""

from msgspec.structs import replace

from sexton_storage.records.artefacts import Artefact
from sexton_storage.records.events import EventStatus
from sexton_storage.records.retention import KeptClass, RetentionPolicy
from sexton_storage.records.tenants import PlanTier
from sexton_storage.writes import EventEnd
from tests.conformance.test_conformance_artefacts import artefact_of, blob_of, keep
from tests.conformance.test_conformance_deliveries import one
from tests.conformance.test_conformance_transcripts import append, attempts, note
from tests.worlds.storage import HOUR_MS, StorageWorld, metered

DONE = EventEnd(EventStatus.PROCESSED)
SOON_MS = -HOUR_MS
"""To keep for that long keeps nothing that has ended by now."""


async def test_ended_events_of_a_plan_go_with_all_that_is_theirs_and_their_money_stays(
    world: StorageWorld,
) -> None:
    events, drop = world.storage.events, world.storage.retention.drop
    agent, other = await world.agent(), await world.beside()
    spared = await other.lease()
    await other.end(spared, DONE, nanos=3)
    plan = await world.storage.plans.load(other.tenant_id)
    assert plan is not None
    assert plan[1] is not None

    richer = replace(plan[1], version=plan[1].version + 1, tier=PlanTier.PRO)
    await world.storage.plans.save(richer)
    ended = []
    for _ in range(3):
        await world.append(agent)
        lease = (await world.claim(agent)).lease
        await world.end(lease, DONE, nanos=11)
        ended.append(lease.event_id)
    waiting = await world.append(agent)

    assert await drop(KeptClass.EVENTS, {PlanTier.FREE: HOUR_MS}, limit=10) == 0
    assert await drop(KeptClass.EVENTS, {PlanTier.FREE: SOON_MS}, limit=2) == 2
    assert await drop(KeptClass.EVENTS, {PlanTier.FREE: SOON_MS}, limit=2) == 1
    assert await drop(KeptClass.EVENTS, {PlanTier.FREE: SOON_MS}, limit=2) == 0

    assert [await events.load(event_id) for event_id in ended] == [None] * 3
    assert [event.id for event in await events.list(world.workspace_id, limit=10)] == [waiting.id]
    assert await events.load(spared.event_id) is not None
    assert await metered(world, ended) == 33

    charges = await world.storage.charges.list(world.tenant_id, limit=10)
    assert sorted(charge.event_id for charge in charges) == sorted(ended)

    assert (await world.claim(agent)).lease.event_id == waiting.id


async def put(world: StorageWorld, **days: int) -> None:
    none = dict.fromkeys(("event_days", "transcript_days", "file_days", "delivery_days"))
    await world.storage.retention.save(RetentionPolicy(world.workspace_id, **{**none, **days}, updated_at=1))


async def test_a_workspace_keeps_less_than_its_plan_never_more_and_others_lose_nothing(
    world: StorageWorld,
) -> None:
    store, day, other = world.storage.retention, 24 * HOUR_MS, await world.beside()
    now, agent, theirs = world.now, await world.agent(), await other.agent()
    mine = [one(agent, now - days * day - 1) for days in (1, 2, 3)]
    spared = one(theirs, now - 3 * day)
    await world.storage.deliveries.keep([*mine, spared], [])
    assert await store.load(world.workspace_id) is None
    assert await store.drop(KeptClass.DELIVERIES, {}, limit=10) == 0

    await put(world, delivery_days=2)
    kept = await store.load(world.workspace_id)
    due = await store.due(world.workspace_id, KeptClass.DELIVERIES, keep_ms=2 * day, limit=10)
    some = await store.due(world.workspace_id, KeptClass.DELIVERIES, keep_ms=2 * day, limit=1)
    assert kept is not None
    assert (kept.delivery_days, kept.event_days) == (2, None)
    assert (due.rows, due.bytes, due.oldest_at, due.more) == (2, 4, mine[2].delivery.at, False)
    assert (some.rows, some.more) == (1, True)

    assert await store.drop(KeptClass.DELIVERIES, {PlanTier.FREE: 30 * day}, limit=1) == 1
    assert await store.drop(KeptClass.DELIVERIES, {PlanTier.FREE: 30 * day}, limit=10) == 1

    left = await world.storage.deliveries.list(world.workspace_id, limit=9)
    assert [row.id for row in left] == [mine[0].delivery.id]
    assert await world.storage.deliveries.body(mine[2].delivery.id) is None

    await put(world, delivery_days=9)
    assert await store.drop(KeptClass.DELIVERIES, {PlanTier.FREE: day}, limit=10) == 2
    assert await world.storage.deliveries.load(spared.delivery.id) is None


async def test_files_and_transcripts_go_by_age_and_their_event_stays(world: StorageWorld) -> None:
    lease = await world.lease()
    await append(world, lease, note(1))
    blob = await blob_of(world, lease)
    assert isinstance(await keep(world, artefact_of(world, lease, blob), lease), Artefact)

    await world.end(lease, DONE, nanos=7)
    store, plans = world.storage.retention, {PlanTier.FREE: SOON_MS}

    charged = await store.due(world.workspace_id, KeptClass.EVENTS, keep_ms=SOON_MS, limit=9)
    files = await store.due(world.workspace_id, KeptClass.FILES, keep_ms=SOON_MS, limit=9)
    assert (charged.rows, charged.charged_nanos, charged.bytes > 0) == (1, 7, True)
    assert (files.rows, files.bytes) == (1, blob.size)

    for kept in (KeptClass.FILES, KeptClass.TRANSCRIPTS):
        assert await store.drop(kept, {PlanTier.FREE: HOUR_MS}, limit=9) == 0
        assert await store.drop(kept, plans, limit=9) == 1
        assert (await store.due(world.workspace_id, kept, keep_ms=SOON_MS, limit=9)).rows == 0
    assert await attempts(world, lease) == []
    assert await world.storage.artefacts.list(lease.event_id, after=None, limit=9) == []
    assert await world.storage.events.load(lease.event_id) is not None
