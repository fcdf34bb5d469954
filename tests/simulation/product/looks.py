"""When the judges look: all the time while things go wrong, and more sternly once all is healed."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Sequence
from typing import Final, Protocol

import trio

from tests.simulation.product.database import Database
from tests.simulation.product.judges import HEALED, JUDGES, nothing_forgotten
from tests.simulation.product.judges_of_programs import OF_NODES, no_false_death, one_run_at_a_time
from tests.simulation.product.judges_of_time import DELETED_MS, OF_TIME, OF_TIME_HEALED, resting
from tests.simulation.product.misfortunes import Misfortunes, Program
from tests.simulation.product.pace import Pace
from tests.simulation.product.record import Judge, Record, hold
from tests.simulation.world.processes import State
from tests.simulation.world.run import World

OF_MOMENTS: Final = (one_run_at_a_time, no_false_death)
"""Those that are asked although nothing was written."""
QUIET_LOOKS: Final = 30
"""Looks in a row that ask nothing about rows, at most, while nothing is written."""
TIDY_S: Final = 6 * 3_600.0
"""How often a life at the slow pace lets go of what nothing needs any more."""


class Span(Protocol):
    """How long trouble and peace last, and how often they come."""

    @property
    def trouble_s(self) -> float: ...
    @property
    def peace_s(self) -> float: ...
    @property
    def rounds(self) -> int: ...


class Looks:
    """One life's judges."""

    def __init__(
        self,
        world: World,
        database: Database,
        record: Record,
        misfortunes: Misfortunes,
        *,
        programs: Sequence[Program],
        pace: Pace,
    ) -> None:
        self._world, self._database, self._record = world, database, record
        self._misfortunes, self._programs, self._pace = misfortunes, programs, pace
        self._numbers = itertools.count()
        self._seen: tuple[int, int] | None = None
        """What had been written and how much had gone wrong when rows were last judged."""
        self._quiet = 0
        self._tidied_s = 0.0

    async def live(self, span: Span) -> None:
        """Look until the last peace is over. Raises Broken."""
        world, record, begins_s = self._world, self._record, 0.0
        for number in range(span.rounds):
            if number:
                begins_s = world.now
                record.settled_at = None
                world.machine("fate").start(self._misfortunes.run)
            while world.now < begins_s + span.trouble_s:
                await self._look()
            self._misfortunes.heal()
            record.promises.is_calm = number + 1 == span.rounds
            record.idle_since.clear()
            await self._be_at_peace(span.peace_s)

    async def _be_at_peace(self, peace_s: float) -> None:
        healed_at = self._world.now
        while (peaceful_s := self._world.now - healed_at) < peace_s:
            for program in self._programs:
                program.revive()
            if self._record.times is not None:
                self._record.resting = resting(self._record)
            # It is noted from here on since when agents wait, and judged once all could connect again.
            deque(nothing_forgotten(self._record), maxlen=0)
            more = HEALED if peaceful_s > self._pace.settling_s else ()
            if more and self._record.settled_at is None:
                self._record.settled_at = self._record.tables.now()
            if self._record.times is not None and peaceful_s * 1000 > DELETED_MS:
                more = (*more, *OF_TIME_HEALED)
            await self._look(*more)

    async def _look(self, *more: Judge) -> None:
        await trio.sleep(self._pace.look_s)
        if self._record.times is None:
            hold(self._record, *JUDGES, *more)
        else:
            self._look_at_times(*more)
        if next(self._numbers) % self._pace.programs_every == 0:
            hold(self._record, *OF_NODES)

    def _look_at_times(self, *more: Judge) -> None:
        record, times = self._record, self._record.times
        assert times is not None
        if any(self._is_able(program) for program in self._programs):
            times.able.append(record.tables.now())
        seen = (self._database.written, self._misfortunes.planned)
        if not more and seen == self._seen and self._quiet < QUIET_LOOKS:
            self._quiet += 1
            hold(record, *OF_MOMENTS)
        else:
            self._seen, self._quiet = seen, 0
            times.kept.update()
            hold(record, *JUDGES, *OF_TIME, *more)
        if self._world.now - self._tidied_s > TIDY_S:
            self._tidied_s = self._world.now
            self._world.tidy()

    def _is_able(self, program: Program) -> bool:
        """Whether it is a server that reaches the database."""
        process = program.process
        return (
            process in self._database.systems
            and process.state is State.RUNNING
            and not process.has_ended
            and self._database.is_reached_from(program.machine)
        )
