"""What both stores keep of a run with several models, and of an event that waits until one may answer."""

from msgspec.structs import replace

from sexton_storage.records.events import EventStatus
from sexton_storage.records.leases import LeaseStatus, ModelShare
from sexton_storage.refusals import NOT_YET
from sexton_storage.writes import EventEnd, NothingToClaim
from tests.worlds.storage import StorageWorld

FIRST = ModelShare("anthropic", "large", input_nanos_per_mtok=3, output_nanos_per_mtok=9)
SECOND = ModelShare("openai", "other", own_key=True)


async def test_the_shares_of_models_go_with_the_lease_and_end_as_its_charge(world: StorageWorld) -> None:
    lease = await world.lease(shares=(FIRST, SECOND))
    storage = world.storage
    assert (await storage.leases.load(lease.id)) == lease

    renewed = (replace(FIRST, input_tokens=7, token_cost_nanos=21), replace(SECOND, output_tokens=3))
    write = world.renewal(lease)
    part = replace(write.slice, shares=renewed, d_cache_write_tokens=6)
    wanted = replace(write.lease, shares=renewed, cache_write_tokens=6)
    await storage.journal.write(replace(write, lease=wanted, slice=part))
    assert (await storage.leases.load(lease.id)) == wanted

    last = (renewed[0], replace(renewed[1], output_tokens=4))
    ending = world.end_of(wanted, EventEnd(EventStatus.PROCESSED), nanos=5)
    assert ending.slice is not None

    ending = replace(ending, slice=replace(ending.slice, shares=last, d_cache_write_tokens=2))
    await storage.journal.write(ending)
    kept = await storage.leases.load(lease.id)
    assert kept is not None
    assert (kept.shares, kept.cache_write_tokens) == (last, 8)

    (charge,) = await storage.charges.list(lease.tenant_id, limit=9)
    assert (charge.models, charge.token_count_input) == (last, 24 + 8)

    periods = await storage.metering.list(lease.tenant_id, lease.event_id)
    assert [period.d_cache_write_tokens for period in periods] == [6, 2]


async def test_an_event_that_waits_for_its_time_is_given_to_nobody_nor_are_those_behind_it(
    world: StorageWorld,
) -> None:
    lease = await world.lease()
    agent = await world.storage.zombies.load(lease.zombie_id)
    assert agent is not None

    await world.append(agent)
    at = world.now + 3_600_000
    end = EventEnd(EventStatus.RECEIVED, give_attempt_back=True, retry_at=at)
    ended = await world.end(lease, end, status=LeaseStatus.RELEASED)
    assert (ended.event.retry_at, ended.next_event_at) == (at, None)
    assert await world.storage.events.ready_agent(agent.id) is None
    assert await world.storage.events.ready(after=None, limit=9) == []
    assert await world.storage.journal.write(world.claim_of(agent)) == NothingToClaim(NOT_YET)

    claimed = await world.claim(agent, now=at)
    assert (claimed.event.id, claimed.event.retry_at) == (lease.event_id, None)


async def test_an_event_whose_time_has_come_is_ready(world: StorageWorld) -> None:
    lease = await world.lease()
    end = EventEnd(EventStatus.RECEIVED, give_attempt_back=True, retry_at=world.now - 1)
    await world.end(lease, end, status=LeaseStatus.RELEASED)
    ready = await world.storage.events.ready_agent(lease.zombie_id)

    assert ready is not None
