"""Minutes of life with runners that die, people who kill, a database that goes away and actors that crash."""

import logging
from functools import partial
from random import Random

import pytest
import trio
from trio.testing import MockClock

from sexton_storage.records.zombies import ZombieStatus
from tests.actors import plant as plants
from tests.actors.plant import open_plant
from tests.simulation.town import Town

SEEDS = range(12)
AGENTS, RUNNERS, EVENTS = 5, 4, 60
CHAOS_S, PEACE_S = 180, 400
CRON = """
  - type: cron
    schedule: "* * * * *"
"""


@pytest.mark.parametrize("seed", SEEDS)
async def test_whatever_happens_everything_adds_up_and_all_work_ends(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    caplog.set_level(logging.CRITICAL, "sexton_engine")
    # Trio shuffles tasks that are ready together; here the die decides that too, so that a seed is a life.
    monkeypatch.setattr("trio._core._run._ALLOW_DETERMINISTIC_SCHEDULING", True)
    monkeypatch.setattr("trio._core._run._r", Random(seed))
    async with open_plant(seed=seed) as plant, trio.open_nursery() as nursery:
        town = Town(plant, Random(seed), nursery)
        town.agents += [
            await plant.install(f"doctor-{n}", (CRON if n < 2 else "") + "gates: {timeout_ms: 20000}")
            for n in range(AGENTS)
        ]
        runners = [await plant.enrol(f"r{n}") for n in range(RUNNERS)]
        for runner_id in runners:
            nursery.start_soon(town.run, runner_id)
        for task in (town.decide, town.manage, town.meddle, town.plague):
            nursery.start_soon(task)
        nursery.start_soon(town.send, EVENTS)
        nursery.start_soon(town.drain, runners[0])

        for _ in range(CHAOS_S * 4):
            await trio.sleep(0.25)
            town.everything_adds_up()
        town.calm, calm_at = True, plants.clock()
        await trio.sleep(40)
        for agent in set(town.agents) - town.killed:
            await town.patiently(partial(plant.change_status, agent, "active"))
        for _ in range(PEACE_S):
            await trio.sleep(1)
            town.everything_adds_up()
            assert town.overdue() == []
            if not town.still_open(before=calm_at):
                break

        assert town.still_open(before=calm_at) == []
        assert town.cancels
        assert len(town.accepted) > EVENTS // 3
        assert town.reported
        assert town.faults > 20
        assert all(plant.storage.tables.zombies[z].status is ZombieStatus.KILLED for z in town.killed)
        nursery.cancel_scope.cancel()
