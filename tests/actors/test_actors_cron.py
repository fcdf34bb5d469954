"""Schedules that wake agents: once for each firing, over restarts, nodes, pauses and changes."""

import dataclasses
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any
from uuid import UUID

import orjson
import pytest
from msgspec.structs import replace
from trio.testing import MockClock, wait_all_tasks_blocked

from sexton_actors.protocol.scheduler import Look
from sexton_actors.protocol.zombie import Fire, Reconfigure
from sexton_actors.refusal import Refusal
from sexton_actors.scheduler.actor import DUE_PAGE
from sexton_actors.terms import RECORD_FRESH_MS
from sexton_actors.tree import tree
from sexton_engine import open_system
from sexton_storage.memory import open_memory_storage
from sexton_storage.records.events import Event, EventStatus
from sexton_storage.records.gates import GateStatus
from sexton_storage.records.zombies import ZombieStatus
from sexton_storage.writes import AppendEvent
from tests.worlds import actors as worlds_of_actors, samples
from tests.worlds.actors import ActorsWorld, open_actors_world
from tests.worlds.samples import skill_md, trigger_md


@pytest.fixture
async def world(mock_clock: MockClock) -> AsyncIterator[ActorsWorld]:
    """One node on a clock that stands until it is put forward."""
    async with open_actors_world() as opened:
        yield opened


CRON = """
  - type: cron
    schedule: "{schedule}"
    timezone: {zone}
    message: look around
"""
MINUTE_S, HOUR_S = 60, 3600


def cron(schedule: str, zone: str = "UTC") -> str:
    return CRON.format(schedule=schedule, zone=zone)


async def pass_time(clock: MockClock, span_s: float, step_s: float = MINUTE_S) -> None:
    """Jump ahead; after each jump all that it woke comes to rest."""
    left_s = span_s
    while left_s > 0:
        clock.jump(min(step_s, left_s))
        left_s -= step_s
        # What is woken looks, tells, and is told: each round may set a timer for the next moment.
        for _ in range(4):
            await wait_all_tasks_blocked()
            clock.jump(0.05)
        await wait_all_tasks_blocked()


def fired(world: ActorsWorld, zombie_id: UUID | None = None) -> list[Event]:
    events = [e for e in world.storage.tables.events.values() if zombie_id in (None, e.zombie_id)]
    return sorted((e for e in events if e.event_type == "cron"), key=lambda e: e.id)


def said(event: Event) -> dict[str, Any]:
    request: dict[str, Any] = orjson.loads(event.request_json)
    return request


def minutes(world: ActorsWorld, zombie_id: UUID | None = None) -> list[str]:
    """The moments that the firings stand for, as hours and minutes in UTC."""
    stamps = [said(event)["scheduled_at"] for event in fired(world, zombie_id)]
    return [f"{at // 3_600_000 % 24:02}:{at // 60_000 % 60:02}" for at in stamps]


@asynccontextmanager
async def second_node(world: ActorsWorld) -> AsyncIterator[ActorsWorld]:
    """Another one over the same storage."""
    async with open_system(tree(world.actors_world)) as system:
        yield ActorsWorld(system, world.storage, world.actors_world, world.tenant_id, world.workspace_id)


async def test_a_firing_wakes_the_agent_once_with_its_message(
    world: ActorsWorld, mock_clock: MockClock
) -> None:
    zombie_id = await world.install(config=cron("5 0 * * *", "Europe/London"))
    await pass_time(mock_clock, 4 * MINUTE_S)
    assert fired(world) == []

    await pass_time(mock_clock, 10 * MINUTE_S)
    [event] = fired(world)
    assert (event.actor, event.event_type, event.status) == ("cron:5 0 * * *", "cron", EventStatus.RECEIVED)
    assert said(event) == {
        "schedule": "5 0 * * *",
        "timezone": "Europe/London",
        "scheduled_at": samples.START_MS + 5 * 60_000,
        "message": "look around",
    }
    assert 0 <= event.created_at - said(event)["scheduled_at"] <= MINUTE_S * 1000
    assert world.kinds(zombie_id) == ["event_received"]

    world.everything_adds_up()


async def test_each_trigger_fires_by_itself_and_two_zones_are_two(
    world: ActorsWorld, mock_clock: MockClock
) -> None:
    await world.install(config=cron("*/20 * * * *") + cron("0 1 * * *") + cron("0 1 * * *", "Europe/London"))
    await pass_time(mock_clock, HOUR_S + 5 * MINUTE_S, 5 * MINUTE_S)

    assert sorted(minutes(world)) == ["00:20", "00:40", "01:00", "01:00", "01:00"]
    assert sorted({e.actor for e in fired(world)}) == ["cron:*/20 * * * *", "cron:0 1 * * *"]


async def test_two_nodes_and_a_firing_told_many_times_make_one_event(
    world: ActorsWorld, mock_clock: MockClock
) -> None:
    zombie_id = await world.install(config=cron("*/10 * * * *"))
    async with second_node(world) as other, second_node(world) as third:
        for _ in range(6):
            mock_clock.jump(10 * MINUTE_S)
            for node in (world, other, third):
                for _again in range(5):
                    node.system.tell("scheduler", "", Look())
                    node.system.tell("zombie", zombie_id, Fire("*/10 * * * *", "UTC"))
            await wait_all_tasks_blocked()
        await pass_time(mock_clock, MINUTE_S)

    assert minutes(world) == ["00:10", "00:20", "00:30", "00:40", "00:50", "01:00"]


async def test_after_a_time_of_silence_the_last_firing_comes_and_no_other(
    world: ActorsWorld, mock_clock: MockClock
) -> None:
    await world.install(config=cron("0 * * * *"))
    await pass_time(mock_clock, HOUR_S + MINUTE_S, 10 * MINUTE_S)
    assert minutes(world) == ["01:00"]

    # One jump: nobody was up to see what lies between.
    mock_clock.jump(7 * HOUR_S)
    await pass_time(mock_clock, MINUTE_S)
    assert minutes(world) == ["01:00", "08:00"]

    await pass_time(mock_clock, HOUR_S, 10 * MINUTE_S)
    assert minutes(world) == ["01:00", "08:00", "09:00"]


async def test_a_server_that_starts_again_goes_on_where_the_last_one_ended(mock_clock: MockClock) -> None:
    async with open_actors_world() as world:
        await world.install(config=cron("*/10 * * * *"))
        await pass_time(mock_clock, 12 * MINUTE_S)
    for _ in range(3):
        mock_clock.jump(20 * MINUTE_S)
        async with open_memory_storage(clock=worlds_of_actors.clock, tables=world.storage.tables) as storage:
            restarted = dataclasses.replace(world.actors_world, storage=storage)
            async with open_system(tree(restarted)):
                await pass_time(mock_clock, MINUTE_S)

    assert minutes(world) == ["00:10", "00:30", "00:50", "01:10"]


@pytest.mark.parametrize(
    ("day", "schedule", "expected"),
    [
        ("2025-03-29T23:00+00:00", "30 2 * * *", ["01:00"]),
        ("2025-03-29T23:00+00:00", "0 * * * *", ["00:00", "01:00", "02:00", "03:00"]),
        ("2025-10-25T23:00+00:00", "30 2 * * *", ["00:30"]),
        ("2025-10-25T23:00+00:00", "30 * * * *", ["23:30", "00:30", "01:30", "02:30"]),
    ],
)
async def test_the_clock_changes_under_a_running_scheduler(
    monkeypatch: pytest.MonkeyPatch,
    mock_clock: MockClock,
    day: str,
    schedule: str,
    expected: list[str],
) -> None:
    monkeypatch.setattr(samples, "START_MS", round(datetime.fromisoformat(day).timestamp() * 1000) + 1)
    async with open_actors_world() as world:
        await world.install(config=cron(schedule, "Europe/Berlin"))
        await pass_time(mock_clock, 4 * HOUR_S + 5 * MINUTE_S, 15 * MINUTE_S)
        assert minutes(world)[: len(expected)] == expected
        assert len(minutes(world)) <= len(expected) + 1

        world.everything_adds_up()


@pytest.mark.parametrize("away", ["stopped", "paused"])
async def test_an_agent_that_is_not_active_misses_its_firings_for_good(
    world: ActorsWorld, mock_clock: MockClock, away: str
) -> None:
    zombie_id = await world.install(config=cron("*/10 * * * *"))
    await pass_time(mock_clock, 15 * MINUTE_S)
    if away == "stopped":
        await world.change_status(zombie_id, "stopped")
    else:
        zombie = await world.storage.zombies.load(zombie_id)
        assert zombie is not None
        paused = replace(zombie, status=ZombieStatus.PAUSED, version=zombie.version + 1)
        await world.storage.zombies.save(paused, ())
        await pass_time(mock_clock, RECORD_FRESH_MS / 1000)
    await pass_time(mock_clock, 30 * MINUTE_S, 5 * MINUTE_S)
    before = minutes(world)
    await world.change_status(zombie_id, "active")
    await pass_time(mock_clock, 3 * MINUTE_S)
    assert minutes(world) == before

    await pass_time(mock_clock, 10 * MINUTE_S)
    assert len(minutes(world)) == len(before) + 1


@pytest.mark.parametrize("end", ["killed", "deleted"])
async def test_an_agent_that_is_gone_fires_no_more(
    world: ActorsWorld, mock_clock: MockClock, end: str
) -> None:
    zombie_id = await world.install(config=cron("*/10 * * * *"))
    await pass_time(mock_clock, 5 * MINUTE_S)
    await world.change_status(zombie_id, "killed")
    if end == "deleted":
        await world.storage.zombies.delete(zombie_id)
    await pass_time(mock_clock, 30 * MINUTE_S, 5 * MINUTE_S)
    assert fired(world) == []
    assert world.storage.tables.crons == {}

    world.system.tell("zombie", zombie_id, Fire("*/10 * * * *", "UTC"))
    await wait_all_tasks_blocked()
    assert fired(world) == []


async def test_a_new_schedule_takes_the_place_of_the_old_one(
    world: ActorsWorld, mock_clock: MockClock
) -> None:
    zombie_id = await world.install(config=cron("*/10 * * * *"))
    await pass_time(mock_clock, 11 * MINUTE_S)
    assert minutes(world) == ["00:10"]

    files = skill_md(), trigger_md(config=cron("15 * * * *"))
    changed = await world.system.ask("zombie", zombie_id, Reconfigure(*files, by="user:1"))
    assert not isinstance(changed, Refusal)

    await pass_time(mock_clock, 20 * MINUTE_S)
    assert minutes(world) == ["00:10", "00:15"]


async def test_a_paused_workspace_fires_nothing_and_makes_up_for_nothing(
    world: ActorsWorld, mock_clock: MockClock
) -> None:
    await world.install(config=cron("*/10 * * * *"))
    tables, workspace = world.storage.tables, world.storage.tables.workspaces[world.workspace_id]
    tables.workspaces[world.workspace_id] = replace(workspace, paused=True)
    await pass_time(mock_clock, 35 * MINUTE_S, 5 * MINUTE_S)
    assert fired(world) == []

    tables.workspaces[world.workspace_id] = workspace
    await pass_time(mock_clock, 4 * MINUTE_S)
    assert fired(world) == []

    await pass_time(mock_clock, 5 * MINUTE_S)
    assert len(fired(world)) == 1


async def test_a_spent_budget_skips_the_firing_and_not_the_next_days(
    world: ActorsWorld, mock_clock: MockClock
) -> None:
    zombie_id = await world.install(config=cron("30 * * * *") + "budget: {daily_dollars: 1}")
    tables = world.storage.tables
    tables.spend[zombie_id, samples.START_MS // 86_400_000] = 10**10
    await pass_time(mock_clock, 2 * HOUR_S, 15 * MINUTE_S)
    assert fired(world) == []

    tables.spend.clear()
    await pass_time(mock_clock, HOUR_S, 15 * MINUTE_S)
    assert len(fired(world)) == 1


async def test_a_gate_holds_a_firing_and_an_auto_kill_ends_it_and_the_agent(
    world: ActorsWorld, mock_clock: MockClock
) -> None:
    rule = "gates: {{rules: [{{tool: cron, action: 'cron:*', behavior: {}}}]}}"
    held = await world.install("held", cron("10 * * * *") + rule.format("approve"))
    shot = await world.install("shot", cron("10 * * * *") + rule.format("auto_kill"))
    await pass_time(mock_clock, 12 * MINUTE_S)
    [waits], [ended] = fired(world, held), fired(world, shot)
    assert (waits.status, ended.status) == (EventStatus.WAITING_APPROVAL, EventStatus.GATE_BLOCKED)

    gates = {gate.zombie_id: gate.status for gate in world.storage.tables.gates.values()}
    assert gates == {held: GateStatus.PENDING, shot: GateStatus.AUTO_KILLED}
    assert world.storage.tables.zombies[shot].status is ZombieStatus.PAUSED

    await pass_time(mock_clock, 2 * HOUR_S, 10 * MINUTE_S)
    assert len(fired(world, shot)) == 1

    world.everything_adds_up()


async def test_an_outage_at_the_hour_is_made_up_for_when_it_is_over(
    world: ActorsWorld, mock_clock: MockClock
) -> None:
    await world.install(config=cron("10 * * * *"))
    await pass_time(mock_clock, 5 * MINUTE_S)
    world.faults.away = True
    await pass_time(mock_clock, 10 * MINUTE_S)
    world.faults.away = False
    await pass_time(mock_clock, 2 * MINUTE_S)

    assert minutes(world) == ["00:10"]


@pytest.mark.parametrize("after", [False, True])
async def test_a_crash_at_the_commit_of_a_firing_loses_none_and_doubles_none(
    world: ActorsWorld, mock_clock: MockClock, after: bool
) -> None:
    await world.install(config=cron("*/10 * * * *"))
    crashed = worlds_of_actors.crash_commit_once(
        world.storage.journal, after=after, when=lambda write: isinstance(write, AppendEvent)
    )
    await pass_time(mock_clock, 25 * MINUTE_S)
    assert crashed
    assert minutes(world) == ["00:10", "00:20"]

    world.everything_adds_up()


async def test_more_than_a_page_fires_at_the_same_minute(world: ActorsWorld, mock_clock: MockClock) -> None:
    count = DUE_PAGE + 20
    for number in range(count):
        await world.install(f"agent-{number}", cron("10 0 * * *"))
    await pass_time(mock_clock, 9 * MINUTE_S, 3 * MINUTE_S)
    await pass_time(mock_clock, 2 * MINUTE_S, 10)

    assert len(fired(world)) == count
    assert len({event.zombie_id for event in fired(world)}) == count


async def test_a_schedule_that_cannot_be_read_any_more_hurts_no_other(
    world: ActorsWorld, mock_clock: MockClock
) -> None:
    broken = await world.install("broken", cron("10 * * * *"))
    await world.install("sound", cron("10 * * * *"))
    [entry] = [e for e in world.storage.tables.crons.values() if e.zombie_id == broken]
    bad = replace(entry, timezone="Mars/Olympus", next_at=None)
    world.storage.tables.crons[broken, bad.schedule, bad.timezone] = bad
    await pass_time(mock_clock, 12 * MINUTE_S)

    assert len(fired(world)) == 2
