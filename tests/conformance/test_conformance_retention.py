"""Events go by age when they have ended, with what belongs to them; what was charged stays."""

from msgspec.structs import replace

from sexton_storage.records.events import EventStatus
from sexton_storage.records.tenants import PlanTier
from sexton_storage.writes import EventEnd
from tests.worlds.storage import HOUR_MS, StorageWorld, metered

DONE = EventEnd(EventStatus.PROCESSED)
SOON_MS = -HOUR_MS
"""To keep for that long keeps nothing that has ended by now."""


async def test_ended_events_of_a_plan_go_with_all_that_is_theirs_and_their_money_stays(
    world: StorageWorld,
) -> None:
    events = world.storage.events
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

    assert await events.drop_ended(PlanTier.FREE, keep_ms=HOUR_MS, limit=10) == 0
    assert await events.drop_ended(PlanTier.FREE, keep_ms=SOON_MS, limit=2) == 2
    assert await events.drop_ended(PlanTier.FREE, keep_ms=SOON_MS, limit=2) == 1
    assert await events.drop_ended(PlanTier.FREE, keep_ms=SOON_MS, limit=2) == 0

    assert [await events.load(event_id) for event_id in ended] == [None] * 3
    assert [event.id for event in await events.list(world.workspace_id, limit=10)] == [waiting.id]
    assert await events.load(spared.event_id) is not None
    assert await metered(world, ended) == 33

    charges = await world.storage.charges.list(world.tenant_id, limit=10)
    assert sorted(charge.event_id for charge in charges) == sorted(ended)

    assert (await world.claim(agent)).lease.event_id == waiting.id
