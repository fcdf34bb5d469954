"""Minutes of life with runners that die, people who kill, a database that goes away and actors that crash."""

import logging
from functools import partial
from random import Random

import pytest
import trio
from trio.testing import MockClock

from sexton_storage.records.zombies import ZombieStatus
from tests.worlds import actors as worlds_of_actors
from tests.worlds.actors import open_actors_world
from tests.worlds.simulation import SimulationWorld

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
    async with open_actors_world(seed=seed) as world, trio.open_nursery() as nursery:
        simulation = SimulationWorld(world, Random(seed), nursery)
        simulation.agents += [
            await world.install(f"doctor-{n}", (CRON if n < 2 else "") + "gates: {timeout_ms: 20000}")
            for n in range(AGENTS)
        ]
        runners = [await world.enrol(f"r{n}") for n in range(RUNNERS)]
        for runner_id in runners:
            nursery.start_soon(simulation.run, runner_id)
        for task in (simulation.decide, simulation.manage, simulation.meddle, simulation.plague):
            nursery.start_soon(task)
        nursery.start_soon(simulation.send, EVENTS)
        nursery.start_soon(simulation.drain, runners[0])

        for _ in range(CHAOS_S * 4):
            await trio.sleep(0.25)
            simulation.everything_adds_up()
        simulation.calm, calm_at = True, worlds_of_actors.clock()
        await trio.sleep(40)
        for agent in set(simulation.agents) - simulation.killed:
            await simulation.patiently(partial(world.change_status, agent, "active"))
        for _ in range(PEACE_S):
            await trio.sleep(1)
            simulation.everything_adds_up()
            assert simulation.overdue() == []
            if not simulation.still_open(before=calm_at):
                break

        assert simulation.still_open(before=calm_at) == []
        assert simulation.cancels
        assert len(simulation.accepted) > EVENTS // 3
        assert simulation.reported
        assert simulation.faults > 20
        assert all(world.storage.tables.zombies[z].status is ZombieStatus.KILLED for z in simulation.killed)

        nursery.cancel_scope.cancel()
