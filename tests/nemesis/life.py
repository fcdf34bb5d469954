"""One run: clients at work while faults come over the world, then a quiet end and the last reads."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import asyncpg
import trio
from msgspec.structs import replace

from tests.nemesis.clients.task import CLOSE, OPEN, Role, Task
from tests.nemesis.crew import Client, Crew, open_crew, stop_all
from tests.nemesis.injectors import Injectors, Tell
from tests.nemesis.last_reads import OPEN as STILL_OPEN, balances, read_all, until_all_has_ended
from tests.nemesis.merge import Tally, merge_histories
from tests.nemesis.recorder import Recorder
from tests.nemesis.schedule import Fault, Kind, plan
from tests.nemesis.set_up import Cast, set_up
from tests.nemesis.world import World, open_world

SENDERS: Final = 3
"""Processes of them."""
SENDERS_IN_ONE: Final = 64
PATIENCE_S: Final = 300.0
"""For what is under way to come to its end, once all faults have healed."""
MOST_WAITING: Final = 1_500
WAITING_FOR_ONE: Final = 3
"""Agents have one lease after the other: a long queue would not have ended when patience is over."""
LOOK_S: Final = 2.0
LOOK_PATIENCE_S: Final = 10.0
TELL_S: Final = 10.0
READER: Final = 0
"""The life that reads all rows at the end."""
REPORTED: Final = (
    "SELECT count(*) FROM leases WHERE status = 'reported' AND zombie_id = ANY($1::text[]::uuid[])"
)


@dataclass(frozen=True)
class Size:
    """How much of everything."""

    run_s: float
    seed: int
    events_per_s: float = 120.0
    renew_s: float = 0.6
    agents: int = 1_200
    tenants: int = 4
    kinds: tuple[Kind, ...] = tuple(Kind)

    @property
    def most_waiting(self) -> int:
        """Events that are accepted and have not ended; with more, senders begin nothing new."""
        return min(MOST_WAITING, WAITING_FOR_ONE * self.agents)


@dataclass
class Told:
    """What a run comes to, beside its history."""

    faults: dict[str, int] = field(default_factory=dict)
    lacks: dict[str, str] = field(default_factory=dict)
    unended: int = 0
    command_runs: int = 0
    """Reported by the real runners."""
    spent_s: float = 0.0
    loads: list[float] = field(default_factory=list)
    """Of the machine, the average of a minute, from time to time."""
    tally: Tally | None = None


async def live(size: Size, folder: Path, tell: Tell) -> Told:
    """Live through it; the history is then in ``folder``, with the logs of all servers."""
    began = time.monotonic()
    async with open_world(folder) as world:
        told = Told(lacks=world.lacks)
        kinds = [kind for kind in size.kinds if kind not in world.lacks]
        faults = plan(size.seed, size.run_s, kinds)
        tell(f"{len(faults)} faults in {size.run_s:.0f} s; setting up")
        async with world.visit() as node:
            cast = await set_up(node, world.database.dsn, agents=size.agents, tenants=size.tenants)
        given = await balances(world.database.primary)
        async with open_crew(folder / "clients") as crew:
            histories = crew.histories
            life = Life(world, crew, told, tell)
            began_ns, ended_ns = await life.live(size, cast, faults)
        primary = world.database.primary
        told.unended = await until_all_has_ended(primary, 0)
        told.command_runs = await primary.ask(REPORTED, [one for site in cast.sites for one in site.commands])
        tell("all rows are read")
        rows = folder / "clients" / "rows.jsonl"
        with rows.open("wb", buffering=0) as file:
            await read_all(primary, Recorder(file, first_op=READER), READER, given)
    tell("one history is made of all")
    told.tally = Tally(began_ns, ended_ns)
    with (folder / "history.jsonl").open("wb") as whole:
        merge_histories([*histories, rows], whole, told.tally)
    told.spent_s = time.monotonic() - began
    return told


class Life:
    """Clients at work, and what comes over them."""

    def __init__(self, world: World, crew: Crew, told: Told, tell: Tell) -> None:
        self._world = world
        self._crew = crew
        self._told = told
        self._tell = tell

    async def live(self, size: Size, cast: Cast, faults: Sequence[Fault]) -> tuple[int, int]:
        """Clients work while faults come; then senders stop, and the others go on until nothing is left.

        Gives the times, in ns, between which faults came.
        """
        tasks = self._tasks(size, cast)
        holders = await self._crew.start(tasks[Role.HOLDER])
        watchers = await self._crew.start(tasks[Role.WATCHERS])
        injectors = Injectors(self._world, holders, self._tell)
        async with _background() as background:
            background.start_soon(self._say_how_it_goes)
            senders = await self._crew.start(tasks[Role.SENDERS])
            async with _background() as minding:
                minding.start_soon(self._mind_the_tap, senders, size.most_waiting)
                began_ns, ends = time.monotonic_ns(), trio.current_time() + size.run_s
                await injectors.suffer_all(faults)
                await trio.sleep_until(ends)
                ended_ns = time.monotonic_ns()
            await stop_all(senders)
            self._tell("all faults have healed; what is under way comes to its end")
            left = await until_all_has_ended(self._world.database.primary, PATIENCE_S)
            self._tell(f"{left} events have not ended")
            await stop_all([*holders, *watchers])
        self._told.faults = dict(injectors.done)
        return began_ns, ended_ns

    def _tasks(self, size: Size, cast: Cast) -> dict[Role, list[Task]]:
        plain = Task(
            Role.HOLDER,
            life=0,
            seed=size.seed,
            bases=tuple(node.base_url for node in self._world.nodes),
            sites=cast.sites,
            history="",
            every_s=size.renew_s,
        )
        every_s = SENDERS * SENDERS_IN_ONE / size.events_per_s
        sending = replace(plain, role=Role.SENDERS, count=SENDERS_IN_ONE, every_s=every_s)
        # The agents of the real runners are few, and one process sends to them.
        others = tuple(replace(site, commands=()) for site in cast.sites)
        return {
            Role.HOLDER: [replace(plain, token=token) for token in cast.tokens],
            Role.WATCHERS: [replace(plain, role=Role.WATCHERS)],
            Role.SENDERS: [sending, *[replace(sending, sites=others)] * (SENDERS - 1)],
        }

    async def _mind_the_tap(self, senders: Sequence[Client], most_waiting: int) -> None:
        """Hold senders back while too much waits: otherwise a fault would leave more than can be done."""
        while True:
            await trio.sleep(LOOK_S)
            with trio.move_on_after(LOOK_PATIENCE_S):
                try:
                    waiting = int(await self._world.database.primary.ask(STILL_OPEN))
                except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
                    continue  # The database is away; it is asked again.
                for sender in senders:
                    await sender.tell(CLOSE if waiting > most_waiting else OPEN)

    async def _say_how_it_goes(self) -> None:
        while True:
            await trio.sleep(TELL_S)
            load, _, _ = os.getloadavg()
            self._told.loads.append(load)
            crew = self._crew
            self._tell(f"{crew.events} events accepted, {crew.renewals} leases renewed, load {load:.1f}")


@asynccontextmanager
async def _background() -> AsyncIterator[trio.Nursery]:
    """Tasks that are ended with the block."""
    async with trio.open_nursery() as nursery:
        yield nursery
        nursery.cancel_scope.cancel()
