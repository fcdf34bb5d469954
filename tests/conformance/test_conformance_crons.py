"""The schedules of active agents, and a firing that commits with its event or not at all."""

from typing import Any

import pytest
from msgspec.structs import replace

from sexton_storage.records.crons import NEVER, CronEntry, Firing, ScheduleNote
from sexton_storage.records.zombies import Zombie, ZombieStatus
from sexton_storage.refusals import STALE, Lost
from sexton_storage.writes import Appended, AppendEvent, OverBudget
from tests.worlds.storage import StorageWorld, new_id

NIGHTLY = {"type": "cron", "schedule": "0 3 * * *", "timezone": "Europe/Berlin", "message": "go"}
NIGHTLY_UTC = {"type": "cron", "schedule": "0 3 * * *"}
HOURLY = {"type": "cron", "schedule": "0 * * * *", "timezone": "UTC"}
HOOK = {"type": "webhook", "source": "github"}
SOON, LATER = 2_000_000_000_000, 2_000_000_060_000


async def scheduled(world: StorageWorld, *triggers: dict[str, Any], **changes: Any) -> Zombie:
    return await world.agent(compiled={"triggers": list(triggers)}, **changes)


async def entries(world: StorageWorld) -> list[tuple[str, str]]:
    due = await world.storage.crons.due(before=NEVER, limit=99)
    return sorted((entry.schedule, entry.timezone) for entry in due)


async def only(world: StorageWorld) -> CronEntry:
    [entry] = await world.storage.crons.due(before=NEVER, limit=9)
    return entry


async def planned(world: StorageWorld, next_at: int = SOON) -> tuple[Zombie, CronEntry]:
    agent = await scheduled(world, HOURLY)
    entry = CronEntry(agent.id, HOURLY["schedule"], HOURLY["timezone"], agent.updated_at, None)
    assert await world.storage.crons.plan(entry, next_at)
    return agent, replace(entry, next_at=next_at)


def firing(world: StorageWorld, agent: Zombie, due_at: int, next_at: int, **changes: Any) -> AppendEvent:
    over = Firing(HOURLY["schedule"], HOURLY["timezone"], due_at, next_at)
    return AppendEvent(world.event_of(agent), None, None, None, (), firing=over, **changes)


async def test_each_schedule_of_an_agent_in_each_zone_is_an_entry_without_a_plan(world: StorageWorld) -> None:
    agent = await scheduled(world, NIGHTLY, HOOK, NIGHTLY_UTC, HOURLY)
    await scheduled(world, HOOK)
    await world.agent()
    assert await entries(world) == [
        ("0 * * * *", "UTC"),
        ("0 3 * * *", "Europe/Berlin"),
        ("0 3 * * *", "UTC"),
    ]

    entry = await world.storage.crons.load(agent.id, "0 3 * * *", "UTC")
    assert entry == CronEntry(agent.id, "0 3 * * *", "UTC", agent.updated_at, None)
    assert await world.storage.crons.next_at() is None


async def test_only_active_agents_have_entries_and_a_new_start_has_a_new_plan(world: StorageWorld) -> None:
    agent, _ = await planned(world)
    stopped = replace(agent, status=ZombieStatus.STOPPED, version=2)
    await world.storage.zombies.save(stopped, ())
    assert await entries(world) == []

    resumed = replace(agent, version=3, updated_at=agent.updated_at + 5)
    await world.storage.zombies.save(resumed, ())
    assert await only(world) == CronEntry(agent.id, "0 * * * *", "UTC", agent.updated_at + 5, None)

    await world.storage.zombies.kill(replace(agent, status=ZombieStatus.KILLED, version=4), (), world.now)
    assert await entries(world) == []


async def test_a_deleted_agent_leaves_no_entry(world: StorageWorld) -> None:
    agent, _ = await planned(world)
    await world.storage.zombies.delete(agent.id)

    assert await entries(world) == []
    assert await world.storage.crons.next_at() is None


async def test_a_new_configuration_keeps_the_plan_of_what_stays(world: StorageWorld) -> None:
    agent, entry = await planned(world)
    changed = replace(
        agent,
        version=2,
        config_version_id=new_id(),
        config_revision=2,
        compiled={"triggers": [HOURLY | {"message": "other"}, NIGHTLY]},
        updated_at=agent.updated_at + 7,
    )
    await world.storage.zombies.save(changed, (), world.config_of(changed))
    assert await world.storage.crons.load(agent.id, "0 * * * *", "UTC") == entry

    new = await world.storage.crons.load(agent.id, "0 3 * * *", "Europe/Berlin")
    assert new == CronEntry(agent.id, "0 3 * * *", "Europe/Berlin", agent.updated_at + 7, None)


async def test_those_without_a_plan_come_first_then_the_most_overdue(world: StorageWorld) -> None:
    for next_at in (SOON, LATER, SOON - 1):
        await planned(world, next_at)
    await scheduled(world, NIGHTLY)
    crons = world.storage.crons

    assert [e.next_at for e in await crons.due(before=SOON, limit=9)] == [None, SOON - 1, SOON]
    assert [e.next_at for e in await crons.due(before=SOON, limit=2)] == [None, SOON - 1]
    assert [e.next_at for e in await crons.due(before=0, limit=9)] == [None]
    assert await crons.next_at() == SOON - 1


async def test_a_plan_holds_only_for_what_was_seen(world: StorageWorld) -> None:
    agent, entry = await planned(world)
    assert not await world.storage.crons.plan(replace(entry, next_at=None), LATER)
    assert await world.storage.crons.plan(entry, LATER)
    assert (await only(world)).next_at == LATER
    assert not await world.storage.crons.plan(replace(entry, zombie_id=new_id()), LATER)

    await world.storage.zombies.delete(agent.id)
    assert not await world.storage.crons.plan(entry, LATER)


async def test_a_firing_is_over_with_the_event_that_it_makes(world: StorageWorld) -> None:
    agent, _ = await planned(world)
    write = firing(world, agent, SOON, LATER)
    assert await world.storage.journal.write(write) == Appended(write.event.id)
    assert (await only(world)).next_at == LATER

    again = firing(world, agent, SOON, LATER)
    assert await world.storage.journal.write(again) == Lost(STALE)
    assert await world.storage.events.load(again.event.id) is None
    assert (await only(world)).next_at == LATER


async def test_a_firing_that_cannot_be_paid_for_is_over_without_an_event(world: StorageWorld) -> None:
    agent, _ = await planned(world)
    write = firing(world, agent, SOON, LATER)

    assert await world.storage.journal.write(replace(write, budget_daily_nanos=0)) == OverBudget("day")
    assert (await only(world)).next_at == LATER
    assert await world.storage.events.load(write.event.id) is None


@pytest.mark.parametrize("status", [ZombieStatus.STOPPED, ZombieStatus.PAUSED])
async def test_a_firing_of_an_agent_that_was_stopped_meanwhile_makes_nothing(
    world: StorageWorld, status: ZombieStatus
) -> None:
    agent, _ = await planned(world)
    await world.storage.zombies.save(replace(agent, status=status, version=2), ())

    assert await world.storage.journal.write(firing(world, agent, SOON, LATER)) == Lost(STALE)
    assert await world.storage.events.list(world.workspace_id, limit=9) == []


async def test_a_schedule_is_paused_and_its_missed_firings_are_noted_once(world: StorageWorld) -> None:
    crons, agent, other = world.storage.crons, await world.agent(), await world.agent()
    key = (agent.id, "0 5 * * *", "UTC")
    await crons.pause(ScheduleNote(*key, paused_at=5, paused_by="user:1"))
    await crons.note_missed(ScheduleNote(*key, missed=2, missed_from=10, missed_until=20, missed_why="away"))
    await crons.note_missed(ScheduleNote(*key, missed=1, missed_from=20, missed_until=20, missed_why="late"))

    paused = ScheduleNote(*key, 5, "user:1", 2, 10, 20, "away")
    assert await crons.notes([agent.id, other.id]) == [paused]

    await crons.note_missed(
        ScheduleNote(*key, missed=1, missed_from=30, missed_until=30, missed_why="paused")
    )
    await crons.pause(ScheduleNote(*key))
    assert await crons.notes([agent.id]) == [ScheduleNote(*key, None, None, 3, 30, 30, "paused")]

    first = await world.append(agent, actor="cron:0 5 * * *")
    second = await world.append(agent, actor="cron:0 5 * * *")
    await world.append(other, actor="cron:0 5 * * *")
    fired = await crons.fired(agent.workspace_id, agent.id, "0 5 * * *", limit=9)
    assert [one.event_id for one in fired] == [second.id, first.id]

    await world.storage.zombies.delete(agent.id)
    assert await crons.notes([agent.id]) == []
