"""What goes wrong, by the seed: deaths, stops, cuts, clocks, a database that goes away."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

import trio

from sexton_storage.writes import Claimed
from tests.simulation.product.database import TRIP_S, Database
from tests.simulation.product.pace import DENSE, Pace
from tests.simulation.product.strikes import Strike
from tests.simulation.world.processes import Machine, Process, State
from tests.simulation.world.run import World

PATIENCE_S: Final = 120.0
"""What does not end in good order is killed after this."""
STRIKES_WITHIN_S: Final = 60.0
STRIKES_THAT_FREEZE: Final = 0.3


@dataclass
class Program:
    """Something that is started again when it has died."""

    machine: Machine
    start: Callable[[], Process]
    drain: Callable[[], None] | None = None
    """Have the process end in good order."""
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
        self,
        world: World,
        database: Database,
        nodes: list[Program],
        runners: list[Program],
        pace: Pace = DENSE,
        *,
        strikes: bool = False,
        hang_ups: bool = False,
    ) -> None:
        self._lengths = pace.lengths
        self._kinds = [KINDS_BY_NAME[name] for name in pace.kinds]
        if hang_ups:
            self._kinds += [Misfortunes._hang_up] * pace.hang_ups
        if strikes:
            self._kinds += [Misfortunes._strike] * pace.strikes
        self._world = world
        self._database = database
        self._nodes = nodes
        self._runners = runners
        self._rng = Random(world.rng.getrandbits(64))
        self.counts: Counter[str] = Counter()
        self.planned = 0
        """How many the seed has come to, those that are left out included."""
        self._all = trio.CancelScope()

    async def run(self) -> None:
        """One misfortune at a time, though some last while others come. Each has a generator of its own.

        So one that is left out changes neither when the others come nor what they are.
        """
        self._all = trio.CancelScope()
        with self._all:
            async with trio.open_nursery() as nursery:
                for number in itertools.count(self.planned):
                    await trio.sleep(self._rng.uniform(*self._lengths.apart))
                    kind = self._rng.choice(self._kinds)
                    rng = Random(self._rng.getrandbits(64))
                    self.planned = number + 1
                    if self._world.kept.has_fault(number):
                        name = kind.__name__.removeprefix("_")
                        self.counts[name] += 1
                        self._world.note("fault", number, name)
                        nursery.start_soon(kind, self, rng)

    def heal(self) -> None:
        """Mend everything, start what is dead, and let nothing else go wrong."""
        self._all.cancel()
        database, network = self._database, self._world.network
        database.is_down, database.lost_share, database.late_s, database.trip_s = False, 0.0, 0.0, TRIP_S
        network.weather.slow_share = 0.0
        network.heal()
        for program in (*self._nodes, *self._runners):
            program.revive()

    def _any(self, rng: Random) -> Program:
        return rng.choice(self._nodes if rng.random() < 0.5 else self._runners)

    async def _kill(self, rng: Random) -> None:
        program = self._any(rng)
        program.process.crash()
        await trio.sleep(rng.uniform(*self._lengths.dead))
        program.revive()

    async def _power_off(self, rng: Random) -> None:
        program = self._any(rng)
        program.machine.power_off()
        await trio.sleep(rng.uniform(*self._lengths.powerless))
        program.revive()

    async def _strike(self, rng: Random) -> None:
        """Kill or freeze a server between a commit and its answer."""
        freezes = rng.random() < STRIKES_THAT_FREEZE

        def blow(process: Process, _: object) -> None:
            process.freeze() if freezes else process.crash()

        strike = Strike(rng, blow)
        hit = await self._database.strikes.wait(strike, STRIKES_WITHIN_S)
        if hit is None:
            return
        if freezes:
            await trio.sleep(rng.choice([rng.uniform(*span) for span in self._lengths.frozen]))
            hit.thaw()
            return
        await trio.sleep(rng.uniform(*self._lengths.dead))
        for program in self._nodes:
            if program.process is hit:
                program.revive()

    async def _hang_up(self, rng: Random) -> None:
        """Cut off a runner between the commit of a lease and its being told of it."""

        def blow(_: Process, claimed: Any) -> None:
            host = self._database.tables.runners[claimed.lease.runner_id].host_id
            self._world.network.hang_up(self._world.machine(host))

        await self._database.strikes.wait(Strike(rng, blow, of=Claimed), STRIKES_WITHIN_S)

    async def _freeze(self, rng: Random) -> None:
        program = self._any(rng)
        process = program.process
        process.freeze()
        await trio.sleep(rng.choice([rng.uniform(*span) for span in self._lengths.frozen]))
        process.thaw()

    async def _cut(self, rng: Random) -> None:
        runner, node = rng.choice(self._runners), rng.choice(self._nodes)
        both_ways = rng.random() < 0.6
        self._world.network.cut(runner.machine, node.machine, both_ways=both_ways)
        await trio.sleep(rng.uniform(*self._lengths.cut))
        self._world.network.heal()

    async def _reset(self, rng: Random) -> None:
        await trio.lowlevel.checkpoint()
        self._world.network.reset(rng, share=rng.uniform(0.2, 1), one_sided=rng.random() < 0.5)

    async def _lose_database(self, rng: Random) -> None:
        self._database.is_down = True
        await trio.sleep(rng.uniform(*self._lengths.database_away))
        self._database.is_down = False

    async def _cut_off_database(self, rng: Random) -> None:
        node = rng.choice(self._nodes)
        self._world.network.cut(node.machine, self._database.machine)
        await trio.sleep(rng.uniform(*self._lengths.database_cut_off))
        self._world.network.heal()

    async def _slow_database(self, rng: Random) -> None:
        self._database.trip_s = (0.001, rng.uniform(0.05, 1.5))
        await trio.sleep(rng.uniform(*self._lengths.database_slow))
        self._database.trip_s = TRIP_S

    async def _lose_signals(self, rng: Random) -> None:
        self._database.lost_share, self._database.late_s = rng.random(), rng.choice((0, 0.5, 5.0))
        await trio.sleep(rng.uniform(*self._lengths.signals_lost))
        self._database.lost_share = self._database.late_s = 0.0

    async def _shift_clock(self, rng: Random) -> None:
        await trio.lowlevel.checkpoint()
        machine = self._any(rng).machine
        machine.skew_s = rng.choice((0.0, rng.uniform(-self._lengths.skew_s, self._lengths.skew_s)))

    async def _slow_network(self, rng: Random) -> None:
        self._world.network.weather.slow_share = rng.uniform(0.05, 0.4)
        await trio.sleep(rng.uniform(*self._lengths.network_slow))
        self._world.network.weather.slow_share = 0.0

    async def _drain(self, rng: Random) -> None:
        program = rng.choice(self._runners)
        if program.is_up and program.drain is not None:
            program.drain()
        await trio.sleep(rng.uniform(*self._lengths.draining))
        if program.process.has_ended:
            program.revive()

    async def _deploy(self, rng: Random) -> None:
        """Have all programs end in good order and start again, one after the other."""
        for program in (*self._nodes, *self._runners):
            if program.is_up and program.drain is not None:
                program.drain()
                with trio.move_on_after(PATIENCE_S):
                    while program.is_up:
                        await trio.sleep(1)
                program.process.crash()
            program.revive()
            await trio.sleep(rng.uniform(*self._lengths.between_starts))


KINDS: Final[Sequence[Callable[[Misfortunes, Random], Awaitable[None]]]] = (
    Misfortunes._kill,
    Misfortunes._power_off,
    Misfortunes._freeze,
    Misfortunes._cut,
    Misfortunes._reset,
    Misfortunes._lose_database,
    Misfortunes._cut_off_database,
    Misfortunes._slow_database,
    Misfortunes._lose_signals,
    Misfortunes._shift_clock,
    Misfortunes._slow_network,
    Misfortunes._drain,
    Misfortunes._deploy,
    Misfortunes._hang_up,
    Misfortunes._strike,
)
KINDS_BY_NAME: Final = {kind.__name__.removeprefix("_"): kind for kind in KINDS}
