"""What goes wrong, by the seed: deaths, stops, cuts, clocks, a database that goes away."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from random import Random
from typing import Final

import trio

from tests.simulation.product.database import TRIP_S, Database
from tests.simulation.world.processes import Machine, Process, State
from tests.simulation.world.run import World

PAUSE_S: Final = (1.0, 12.0)
"""Between two misfortunes."""


@dataclass
class Program:
    """Something that is started again when it has died."""

    machine: Machine
    start: Callable[[], Process]
    drain: Callable[[], None] | None = None
    process: Process = field(init=False)

    def __post_init__(self) -> None:
        self.process = self.start()

    @property
    def is_up(self) -> bool:
        return self.process.state is State.RUNNING and not self.process.has_ended

    def revive(self) -> None:
        """Have it run, whatever has become of it."""
        self.process.thaw()
        if not self.machine.is_on:
            self.machine.power_on()
        if not self.is_up:
            self.process = self.start()


class Misfortunes:
    """Draws one after the other until all is healed."""

    def __init__(
        self, world: World, database: Database, nodes: list[Program], runners: list[Program]
    ) -> None:
        self._world = world
        self._database = database
        self._nodes = nodes
        self._runners = runners
        self._rng = Random(world.rng.getrandbits(64))
        self.counts: Counter[str] = Counter()
        self._all = trio.CancelScope()

    async def run(self) -> None:
        """One misfortune at a time, though some last while others come."""
        kinds: list[Callable[[], Awaitable[None]]] = [
            self._kill,
            self._power_off,
            self._freeze,
            self._cut,
            self._reset,
            self._lose_database,
            self._cut_off_database,
            self._slow_database,
            self._lose_signals,
            self._shift_clock,
            self._slow_network,
            self._drain,
        ]
        with self._all:
            async with trio.open_nursery() as nursery:
                while True:
                    await trio.sleep(self._rng.uniform(*PAUSE_S))
                    kind = self._rng.choice(kinds)
                    self.counts[kind.__name__.removeprefix("_")] += 1
                    nursery.start_soon(kind)

    def heal(self) -> None:
        """Mend everything, start what is dead, and let nothing else go wrong."""
        self._all.cancel()
        database, network = self._database, self._world.network
        database.is_down, database.lost_share, database.late_s, database.trip_s = False, 0.0, 0.0, TRIP_S
        network.weather.slow_share = 0.0
        network.heal()
        for program in (*self._nodes, *self._runners):
            program.revive()

    def _any(self) -> Program:
        return self._rng.choice(self._nodes if self._rng.random() < 0.5 else self._runners)

    async def _kill(self) -> None:
        program = self._any()
        program.process.crash()
        await trio.sleep(self._rng.uniform(0.1, 40))
        program.revive()

    async def _power_off(self) -> None:
        program = self._any()
        program.machine.power_off()
        await trio.sleep(self._rng.uniform(1, 60))
        program.revive()

    async def _freeze(self) -> None:
        program = self._any()
        process = program.process
        process.freeze()
        await trio.sleep(self._rng.choice((self._rng.uniform(0.1, 5), self._rng.uniform(20, 90))))
        process.thaw()

    async def _cut(self) -> None:
        runner, node = self._rng.choice(self._runners), self._rng.choice(self._nodes)
        both_ways = self._rng.random() < 0.6
        self._world.network.cut(runner.machine, node.machine, both_ways=both_ways)
        await trio.sleep(self._rng.uniform(0.5, 50))
        self._world.network.heal()

    async def _reset(self) -> None:
        await trio.lowlevel.checkpoint()
        self._world.network.reset(share=self._rng.uniform(0.2, 1), one_sided=self._rng.random() < 0.5)

    async def _lose_database(self) -> None:
        self._database.is_down = True
        await trio.sleep(self._rng.uniform(0.2, 25))
        self._database.is_down = False

    async def _cut_off_database(self) -> None:
        node = self._rng.choice(self._nodes)
        self._world.network.cut(node.machine, self._database.machine)
        await trio.sleep(self._rng.uniform(0.5, 45))
        self._world.network.heal()

    async def _slow_database(self) -> None:
        self._database.trip_s = (0.001, self._rng.uniform(0.05, 1.5))
        await trio.sleep(self._rng.uniform(1, 20))
        self._database.trip_s = TRIP_S

    async def _lose_signals(self) -> None:
        self._database.lost_share, self._database.late_s = self._rng.random(), self._rng.choice((0, 0.5, 5.0))
        await trio.sleep(self._rng.uniform(5, 40))
        self._database.lost_share = self._database.late_s = 0.0

    async def _shift_clock(self) -> None:
        await trio.lowlevel.checkpoint()
        machine = self._any().machine
        machine.skew_s = self._rng.choice((0.0, self._rng.uniform(-3600, 3600)))

    async def _slow_network(self) -> None:
        self._world.network.weather.slow_share = self._rng.uniform(0.05, 0.4)
        await trio.sleep(self._rng.uniform(2, 30))
        self._world.network.weather.slow_share = 0.0

    async def _drain(self) -> None:
        program = self._rng.choice(self._runners)
        if program.is_up and program.drain is not None:
            program.drain()
        await trio.sleep(self._rng.uniform(5, 40))
        if program.process.has_ended:
            program.revive()
