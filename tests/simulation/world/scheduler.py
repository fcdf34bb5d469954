"""Decides by the seed who of those that can run goes first, and gives no turn to what is frozen or dead."""

from collections import deque
from collections.abc import Iterator
from random import Random

import trio

from tests.simulation.world.deviations import Windows
from tests.simulation.world.ground import Ground
from tests.simulation.world.processes import PROCESS, State

Task = trio.lowlevel.Task


class SeededQueue(deque[Task]):
    """Stands in for trio's queue of tasks that can run.

    Trio copies it, clears it, and runs the copy from its end. In a window whose order is left out, tasks run
    by their numbers.
    """

    def __init__(self, world: Ground, orders: Windows, first: int) -> None:
        super().__init__()
        self._world = world
        self._orders = orders
        self._first = first
        self.turns = 0

    def __iter__(self) -> Iterator[Task]:
        # Tasks come here in the order of sets, which is that of addresses in memory: first they are numbered.
        tasks, world = list(super().__iter__()), self._world
        if len(tasks) > 1:
            tasks.sort(key=_number, reverse=True)
        if world.standing and not world.is_over:
            tasks = [task for task in tasks if not self._is_parked(task)]
        if len(tasks) == 1:
            self.turns += 1
            world.trace.turn(world.timeline.now, tasks[0]._counter - self._first)
            return iter(tasks)
        if len(tasks) > 1 and (rng := self._orders.now()) is not None:
            _shuffle(tasks, rng)
        self.turns += len(tasks)
        if tasks:
            world.note("turn", *[task._counter - self._first for task in tasks])
        return iter(tasks)

    @staticmethod
    def _is_parked(task: Task) -> bool:
        process = task.context.get(PROCESS)
        if process is None or process.state is State.RUNNING:
            return False
        process.parked.append(task)
        return True


def _shuffle(tasks: list[Task], rng: Random) -> None:
    # What the standard library does takes twice as long, and this is done at each turn.
    chance = rng.random
    for place in range(len(tasks) - 1, 0, -1):
        other = int(chance() * (place + 1))
        tasks[place], tasks[other] = tasks[other], tasks[place]


def _number(task: Task) -> int:
    number: int = task._counter
    return number
