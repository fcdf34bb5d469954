"""The schedules of active agents, and a firing that commits with its event or not at all."""

from typing import Any

import pytest
from msgspec.structs import replace

from sexton_storage.records.crons import NEVER, CronEntry, Firing
from sexton_storage.records.zombies import Zombie, ZombieStatus
from sexton_storage.refusals import STALE, Lost
from sexton_storage.writes import Appended, AppendEvent, OverBudget
from tests.conformance.house import House, new_id

NIGHTLY = {"type": "cron", "schedule": "0 3 * * *", "timezone": "Europe/Berlin", "message": "go"}
NIGHTLY_UTC = {"type": "cron", "schedule": "0 3 * * *"}
HOURLY = {"type": "cron", "schedule": "0 * * * *", "timezone": "UTC"}
HOOK = {"type": "webhook", "source": "github"}
SOON, LATER = 2_000_000_000_000, 2_000_000_060_000


async def scheduled(house: House, *triggers: dict[str, Any], **changes: Any) -> Zombie:
    return await house.agent(compiled={"triggers": list(triggers)}, **changes)


async def entries(house: House) -> list[tuple[str, str]]:
    due = await house.storage.crons.due(before=NEVER, limit=99)
    return sorted((entry.schedule, entry.timezone) for entry in due)


async def only(house: House) -> CronEntry:
    [entry] = await house.storage.crons.due(before=NEVER, limit=9)
    return entry


async def planned(house: House, next_at: int = SOON) -> tuple[Zombie, CronEntry]:
    agent = await scheduled(house, HOURLY)
    entry = CronEntry(agent.id, HOURLY["schedule"], HOURLY["timezone"], agent.updated_at, None)
    assert await house.storage.crons.plan(entry, next_at)
    return agent, replace(entry, next_at=next_at)


def firing(house: House, agent: Zombie, due_at: int, next_at: int, **changes: Any) -> AppendEvent:
    over = Firing(HOURLY["schedule"], HOURLY["timezone"], due_at, next_at)
    return AppendEvent(house.event_of(agent), None, None, None, (), firing=over, **changes)


async def test_each_schedule_of_an_agent_in_each_zone_is_an_entry_without_a_plan(house: House) -> None:
    agent = await scheduled(house, NIGHTLY, HOOK, NIGHTLY_UTC, HOURLY)
    await scheduled(house, HOOK)
    await house.agent()
    assert await entries(house) == [
        ("0 * * * *", "UTC"),
        ("0 3 * * *", "Europe/Berlin"),
        ("0 3 * * *", "UTC"),
    ]
    entry = await house.storage.crons.load(agent.id, "0 3 * * *", "UTC")
    assert entry == CronEntry(agent.id, "0 3 * * *", "UTC", agent.updated_at, None)
    assert await house.storage.crons.next_at() is None


async def test_only_active_agents_have_entries_and_a_new_start_has_a_new_plan(house: House) -> None:
    agent, _ = await planned(house)
    stopped = replace(agent, status=ZombieStatus.STOPPED, version=2)
    await house.storage.zombies.save(stopped, ())
    assert await entries(house) == []
    resumed = replace(agent, version=3, updated_at=agent.updated_at + 5)
    await house.storage.zombies.save(resumed, ())
    assert await only(house) == CronEntry(agent.id, "0 * * * *", "UTC", agent.updated_at + 5, None)
    await house.storage.zombies.kill(replace(agent, status=ZombieStatus.KILLED, version=4), (), house.now)
    assert await entries(house) == []


async def test_a_deleted_agent_leaves_no_entry(house: House) -> None:
    agent, _ = await planned(house)
    await house.storage.zombies.delete(agent.id)
    assert await entries(house) == []
    assert await house.storage.crons.next_at() is None


async def test_a_new_configuration_keeps_the_plan_of_what_stays(house: House) -> None:
    agent, entry = await planned(house)
    changed = replace(
        agent,
        version=2,
        config_version_id=new_id(),
        config_revision=2,
        compiled={"triggers": [HOURLY | {"message": "other"}, NIGHTLY]},
        updated_at=agent.updated_at + 7,
    )
    await house.storage.zombies.save(changed, (), house.config_of(changed))
    assert await house.storage.crons.load(agent.id, "0 * * * *", "UTC") == entry
    new = await house.storage.crons.load(agent.id, "0 3 * * *", "Europe/Berlin")
    assert new == CronEntry(agent.id, "0 3 * * *", "Europe/Berlin", agent.updated_at + 7, None)


async def test_those_without_a_plan_come_first_then_the_most_overdue(house: House) -> None:
    for next_at in (SOON, LATER, SOON - 1):
        await planned(house, next_at)
    await scheduled(house, NIGHTLY)
    crons = house.storage.crons
    assert [e.next_at for e in await crons.due(before=SOON, limit=9)] == [None, SOON - 1, SOON]
    assert [e.next_at for e in await crons.due(before=SOON, limit=2)] == [None, SOON - 1]
    assert [e.next_at for e in await crons.due(before=0, limit=9)] == [None]
    assert await crons.next_at() == SOON - 1


async def test_a_plan_holds_only_for_what_was_seen(house: House) -> None:
    agent, entry = await planned(house)
    assert not await house.storage.crons.plan(replace(entry, next_at=None), LATER)
    assert await house.storage.crons.plan(entry, LATER)
    assert (await only(house)).next_at == LATER
    assert not await house.storage.crons.plan(replace(entry, zombie_id=new_id()), LATER)
    await house.storage.zombies.delete(agent.id)
    assert not await house.storage.crons.plan(entry, LATER)


async def test_a_firing_is_over_with_the_event_that_it_makes(house: House) -> None:
    agent, _ = await planned(house)
    write = firing(house, agent, SOON, LATER)
    assert await house.storage.journal.write(write) == Appended(write.event.id)
    assert (await only(house)).next_at == LATER
    again = firing(house, agent, SOON, LATER)
    assert await house.storage.journal.write(again) == Lost(STALE)
    assert await house.storage.events.load(again.event.id) is None
    assert (await only(house)).next_at == LATER


async def test_a_firing_that_cannot_be_paid_for_is_over_without_an_event(house: House) -> None:
    agent, _ = await planned(house)
    write = firing(house, agent, SOON, LATER)
    assert await house.storage.journal.write(replace(write, budget_daily_nanos=0)) == OverBudget("day")
    assert (await only(house)).next_at == LATER
    assert await house.storage.events.load(write.event.id) is None


@pytest.mark.parametrize("status", [ZombieStatus.STOPPED, ZombieStatus.PAUSED])
async def test_a_firing_of_an_agent_that_was_stopped_meanwhile_makes_nothing(
    house: House, status: ZombieStatus
) -> None:
    agent, _ = await planned(house)
    await house.storage.zombies.save(replace(agent, status=status, version=2), ())
    assert await house.storage.journal.write(firing(house, agent, SOON, LATER)) == Lost(STALE)
    assert await house.storage.events.list(house.workspace_id, limit=9) == []
