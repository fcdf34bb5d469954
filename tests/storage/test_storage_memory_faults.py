"""The misfortunes that a test can order from the in-memory storage."""

import pytest
import trio
from msgspec.structs import replace

from sexton_storage.errors import Conflict, StorageUnavailable
from sexton_storage.memory import Faults, MemoryStorage, open_memory_storage
from sexton_storage.refusals import Lost
from sexton_storage.writes import Appended, AppendEvent, Claimed, ClaimEvent, NothingToClaim, RenewLease
from tests.worlds.storage import StorageWorld


async def test_a_race_is_lost_as_often_as_was_ordered(
    memory_storage: MemoryStorage, storage_faults: Faults
) -> None:
    world = await StorageWorld(memory_storage).found()
    lease = await world.lease()
    storage_faults.lose(RenewLease, 2)
    for _ in range(2):
        assert isinstance(await memory_storage.journal.write(world.renewal(lease)), Lost)
    assert await memory_storage.leases.load(lease.id) == lease

    await world.renew(lease)


async def test_a_claim_that_loses_its_race_finds_the_agent_leased(
    memory_storage: MemoryStorage, storage_faults: Faults
) -> None:
    world = await StorageWorld(memory_storage).found()
    agent = await world.agent()
    await world.append(agent)
    storage_faults.lose(ClaimEvent)

    assert await memory_storage.journal.write(world.claim_of(agent)) == NothingToClaim("leased")
    assert isinstance(await memory_storage.journal.write(world.claim_of(agent)), Claimed)


async def test_an_outage_keeps_nothing_and_ends(
    memory_storage: MemoryStorage, storage_faults: Faults
) -> None:
    world = await StorageWorld(memory_storage).found()
    agent = await world.agent()
    storage_faults.away = True
    event = world.event_of(agent)
    with pytest.raises(StorageUnavailable):
        await memory_storage.journal.write(AppendEvent(event, None, None, None, ()))
    with pytest.raises(StorageUnavailable):
        await memory_storage.zombies.load(agent.id)
    assert not await memory_storage.healthy()

    storage_faults.away = False
    assert await memory_storage.events.load(event.id) is None

    again = AppendEvent(event, None, None, None, ())
    assert await memory_storage.journal.write(again) == Appended(event.id)


async def test_an_unknown_outcome_has_happened(memory_storage: MemoryStorage, storage_faults: Faults) -> None:
    world = await StorageWorld(memory_storage).found()
    agent = await world.agent()
    event = world.event_of(agent)
    storage_faults.leave_unknown()
    with pytest.raises(StorageUnavailable):
        await memory_storage.journal.write(AppendEvent(event, None, None, None, ()))

    assert await memory_storage.events.load(event.id) == event


async def test_a_save_conflicts_when_ordered(memory_storage: MemoryStorage, storage_faults: Faults) -> None:
    world = await StorageWorld(memory_storage).found()
    agent = await world.agent()
    storage_faults.conflict()
    with pytest.raises(Conflict):
        await memory_storage.zombies.save(replace(agent, version=2), ())
    await memory_storage.zombies.save(replace(agent, version=2), ())


async def test_latency_is_time_on_the_callers_clock(autojump_clock: trio.testing.MockClock) -> None:
    faults = Faults(latency_s=0.25)
    async with open_memory_storage(clock=lambda: 0, faults=faults) as storage:
        began = trio.current_time()

        assert await storage.healthy()
        assert trio.current_time() - began == pytest.approx(0.25)


async def test_another_node_may_look_at_the_same_tables(memory_storage: MemoryStorage) -> None:
    world = await StorageWorld(memory_storage).found()
    lease = await world.lease()
    async with open_memory_storage(clock=memory_storage.clock.now_ms, tables=memory_storage.tables) as other:
        assert await other.leases.load(lease.id) == lease
