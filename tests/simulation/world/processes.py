"""Machines with clocks of their own, and programs on them that can be killed and frozen at any await."""

from __future__ import annotations

import enum
from collections.abc import Awaitable, Callable
from contextvars import ContextVar, copy_context
from typing import Any

import trio

from tests.simulation.world.ground import Ground

PROCESS: ContextVar[Process | None] = ContextVar("PROCESS", default=None)
"""The program that a task belongs to; those that it starts inherit it."""


class State(enum.Enum):
    """Whether the tasks of a program are given turns."""

    RUNNING = "running"
    FROZEN = "frozen"
    """As after SIGSTOP: timers expire and bytes arrive, and nobody looks at them."""
    DEAD = "dead"
    """As after SIGKILL: none of its tasks ever runs again, no ``finally`` either."""


class Machine:
    """A place in the network with a clock."""

    def __init__(self, world: Ground, name: str, address: str) -> None:
        self._world = world
        self.name = name
        self.address = address
        self.is_on = True
        self.skew_s = 0.0
        """By how much its calendar is ahead."""
        self.drift = 0.0
        """By what share its clocks run faster than time."""
        self.processes: list[Process] = []

    def __repr__(self) -> str:
        return self.name

    def calendar_s(self) -> float:
        """Seconds since 1970 as this machine has them."""
        return self._world.timeline.start_s + self.monotonic_s() + self.skew_s

    def monotonic_s(self) -> float:
        """Seconds of a clock that nobody sets."""
        return self._world.timeline.now * (1.0 + self.drift)

    def start(self, main: Callable[..., Awaitable[Any]], *args: Any) -> Process:
        """Start a program. A fault that leaves it ends the simulation."""
        process = Process(self._world, self, f"{self.name}/{len(self.processes) + 1}")
        self.processes.append(process)
        self._world.note("start", process)

        def spawn() -> None:
            PROCESS.set(process)
            self._world.nursery.start_soon(process.run, main, args, name=process.name)

        copy_context().run(spawn)
        return process

    def power_off(self) -> None:
        """All programs are gone without a word, and nothing answers at the address."""
        self._world.note("power-off", self)
        self.is_on = False
        for process in self.processes:
            process.die(silent=True)

    def power_on(self) -> None:
        """The network answers again; programs have to be started."""
        self._world.note("power-on", self)
        self.is_on = True


class Process:
    """A program that runs, or has run."""

    def __init__(self, world: Ground, machine: Machine, name: str) -> None:
        self._world = world
        self.machine = machine
        self.name = name
        self.state = State.RUNNING
        self.has_ended = False
        self.numbers: dict[int, None] = {}
        """Its open descriptors, in the order of opening."""
        self.parked: list[trio.lowlevel.Task] = []
        """Tasks that could run, and do not because it is frozen or dead."""

    def __repr__(self) -> str:
        return self.name

    async def run(self, main: Callable[..., Awaitable[Any]], args: tuple[Any, ...]) -> None:
        """Run to the end; only the machine calls this."""
        try:
            await main(*args)
        except Exception:
            if self._is_heard():
                raise
        except BaseExceptionGroup as group:
            if self._is_heard():
                raise
            raise _cancellations(group) from None
        finally:
            self.has_ended = True
            if self.state is State.RUNNING:
                self._world.kernel.close_all(self)

    def _is_heard(self) -> bool:
        # The rest of what was killed is cleared away when all is over, and what it says then is nothing.
        return self.state is State.RUNNING and not self._world.is_over

    def crash(self) -> None:
        """Kill it here and now. Its machine says so to whoever is connected."""
        self.die(silent=False)

    def die(self, *, silent: bool) -> None:
        """End it; ``silent``: nobody is told."""
        if self.state is State.DEAD or self.has_ended:
            return
        self._world.note("kill", self)
        if self.state is State.RUNNING:
            self._world.standing += 1
        self.state = State.DEAD
        self._world.kernel.close_all(self, silent=silent)

    def freeze(self) -> None:
        """Give it no more turns until it is thawed."""
        if self.state is State.RUNNING and not self.has_ended:
            self._world.note("freeze", self)
            self._world.standing += 1
            self.state = State.FROZEN

    def thaw(self) -> None:
        """Let it go on; what came meanwhile comes now."""
        if self.state is State.FROZEN:
            self._world.note("thaw", self)
            self._world.standing -= 1
            self.state = State.RUNNING
            self._world.kernel.put_back(self.parked)
            self.parked = []


def _cancellations(group: BaseExceptionGroup[BaseException]) -> BaseException:
    found = group.subgroup(trio.Cancelled)
    return group if found is None else found
