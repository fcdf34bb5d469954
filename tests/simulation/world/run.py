"""Runs a program of trio in a world where a seed decides everything."""

from __future__ import annotations

import gc
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from random import Random
from typing import Generic, TypeVar

import trio
import trio.lowlevel
from trio._core._run import GLOBAL_RUN_CONTEXT

from tests.simulation.world.descriptors import Kernel, Stalled
from tests.simulation.world.deviations import Kept, Windows
from tests.simulation.world.ground import Ground
from tests.simulation.world.network import Network
from tests.simulation.world.processes import Machine, State
from tests.simulation.world.replacements import replaced
from tests.simulation.world.scheduler import SeededQueue
from tests.simulation.world.sockets import Resolver, SocketFactory
from tests.simulation.world.tale import Tale
from tests.simulation.world.timeline import START_S, Timeline
from tests.simulation.world.trace import Trace

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Life(Generic[T]):
    """What came of one seed."""

    value: T
    sha256: str
    """Of the trace: the same for the same seed, program and version of trio, wherever it runs."""
    seconds: float
    """Of simulated time."""
    turns: int
    """How many turns all tasks took."""
    lines: list[str]
    """The trace itself, if it was asked for."""


class World(Ground):
    """Time, chance, machines and the network between them."""

    def __init__(
        self, seed: int, *, told: bool = False, kept: Kept | None = None, start_s: float = START_S
    ) -> None:
        luck = Random(seed)
        self.seed = seed
        self.kept = kept or Kept()
        """Which deviations of the seed are kept."""
        self.rng = Random(luck.getrandbits(64))
        """For whoever plans what happens; what programs draw leaves it alone."""
        self.trace = Trace(kept=told)
        self.tale: Tale | None = None
        """Told where somebody is to read it."""
        self.timeline = Timeline(start_s)
        self.delays = Windows(self.timeline, luck.getrandbits(64), self.kept.delays)
        self.descriptors = Kernel(self)
        self.kernel = self.descriptors
        self.network = Network(self, self.descriptors, Random(luck.getrandbits(64)))
        self.is_over = False
        self.standing = 0
        self.turns = 0
        self.orders = Windows(self.timeline, luck.getrandbits(64), self.kept.orders)
        self.chance = Random(luck.getrandbits(64))
        """What programs draw."""
        self.machines: dict[str, Machine] = {}

    @property
    def now(self) -> float:
        """Seconds since the beginning."""
        return self.timeline.now

    def note(self, *words: object) -> None:
        self.trace.note(self.timeline.now, *words)
        if self.tale is not None:
            self.tale.noted(words)

    def machine(self, name: str) -> Machine:
        """Find a machine, or set one up."""
        if name not in self.machines:
            number = len(self.machines) + 1
            machine = self.machines[name] = Machine(self, name, f"10.0.0.{number}")
            self.network.machines[machine.address] = machine
        return self.machines[name]

    def tidy(self) -> None:
        """Let go of what nothing needs any more; whoever lives long asks for it at times of its own.

        What is left alone then ends, at a moment that is the same each time the seed is lived through.
        """
        self.network.forget_closed()
        gc.collect()

    async def live(self, main: Callable[[World], Awaitable[T]]) -> T:
        """Run ``main`` beside the programs that it starts; they end with it."""
        await (
            trio.lowlevel.checkpoint()
        )  # Trio's own task for words of other threads begins to wait for them where it can.
        runner = GLOBAL_RUN_CONTEXT.runner
        queue = SeededQueue(self, self.orders, trio.lowlevel.current_task()._counter)
        self.descriptors.install(runner, queue)
        trio.socket.set_custom_socket_factory(SocketFactory(self.network))
        trio.socket.set_custom_hostname_resolver(Resolver(self.network))
        found: list[T] = []
        try:
            with replaced(self.network, self.timeline, self.chance), self.descriptors.end:
                async with trio.open_nursery() as self.nursery:
                    try:
                        found.append(await main(self))
                    finally:
                        self._wind_up()
        finally:
            self.descriptors.uninstall()
        self.turns = queue.turns
        if self.descriptors.stalled is not None:
            raise Stalled(self.descriptors.stalled)
        return found[0]

    def _wind_up(self) -> None:
        self.is_over = True
        for machine in self.machines.values():
            for process in machine.processes:
                if process.state is not State.RUNNING:
                    self.descriptors.put_back(process.parked)
                    process.parked = []
        self.nursery.cancel_scope.cancel()


def run(
    main: Callable[[World], Awaitable[T]],
    *,
    seed: int,
    told: bool = False,
    kept: Kept | None = None,
    start_s: float = START_S,
) -> Life[T]:
    """Run ``main`` in a new world. ``told``: keep the trace, to be read. ``kept``: only these deviations.

    ``start_s``: what calendars show at the beginning, in seconds since 1970. Raises what ``main`` and its
    programs raise, and ``Stalled``.
    """
    world = World(seed, told=told, kept=kept, start_s=start_s)
    was_collecting = gc.isenabled()
    gc.disable()  # It ends what is left alone at moments that no seed decides.
    try:
        value = trio.run(world.live, main, clock=world.timeline)
    finally:
        if was_collecting:
            gc.enable()
    return Life(value, world.trace.sha256(), world.now, world.turns, world.trace.lines)
