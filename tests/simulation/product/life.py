"""Ten minutes of an installation under one seed: nodes, runners, people, misfortunes, and the judges."""

from __future__ import annotations

import itertools
import logging
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any, Final

import structlog
import trio

from sexton_runner.supervisors import process as supervisor_process
from tests.simulation.product.database import Database
from tests.simulation.product.judges import HEALED, JUDGES, nothing_forgotten
from tests.simulation.product.judges_of_programs import OF_NODES
from tests.simulation.product.misfortunes import Misfortunes, Program
from tests.simulation.product.node import NAME, first_start, run_node
from tests.simulation.product.people import Caller, Promises
from tests.simulation.product.record import Judge, Record, hold
from tests.simulation.product.runner import Lost, SimulatedRunner, play
from tests.simulation.product.runs import Runs
from tests.simulation.product.writes import describe
from tests.simulation.world.deviations import Kept
from tests.simulation.world.processes import Machine, Process
from tests.simulation.world.run import Life, World, run
from tests.simulation.world.tale import Tale

STEP_S: Final = 1.0
"""How often the judges look."""
NODES_EVERY: Final = 10
"""One look in this number is at the nodes' memory too, which costs more."""
SETTLING_S: Final = 40.0
"""After the last fault: a term and a second for what the dead held, and time to connect again."""


@dataclass(frozen=True, slots=True)
class Size:
    """What is simulated."""

    nodes: int = 2
    runners: int = 3
    agents: int = 4
    senders: int = 2
    trouble_s: float = 480.0
    """How long things go wrong."""
    peace_s: float = 120.0
    """How long nothing goes wrong after that."""


def lasting(minutes: float) -> Size:
    """A life of that many minutes, of which at least one is peace."""
    peace_s = max(60.0, minutes * 12)
    return Size(trouble_s=minutes * 60 - peace_s, peace_s=peace_s)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of it, to be shown."""

    record: Record
    faults: dict[str, int]

    def __str__(self) -> str:
        tables, faults = self.record.tables, sum(self.faults.values())
        shown = f"{len(tables.events)} events, {len(tables.leases)} leases, {len(tables.gates)} gates"
        return f"{shown}, {faults} faults"


@dataclass
class Heard:
    """What is known of a life however it ends; given to ``live`` by whoever asks why a promise was broken."""

    told: bool = False
    """Whether its tale is to be kept."""
    tale: Tale | None = None
    record: Record | None = None
    runs: Runs = field(default_factory=Runs)
    ended_s: float = 0.0
    faults: int = 0
    """How many the seed had come to, those that were left out included."""
    counts: dict[str, int] = field(default_factory=dict)
    """How many faults of each kind came."""


async def _live(world: World, size: Size, heard: Heard) -> Outcome:
    database, promises = Database(world), Promises()
    record = Record(database.tables, promises, systems=database.systems, runs=heard.runs)
    heard.record = record
    if heard.told:
        heard.tale = world.tale = Tale(lambda: world.now, describe)
    machines = [world.machine(f"node-{number + 1}") for number in range(size.nodes)]
    world.network.names[NAME] = machines
    luck = Random(world.rng.getrandbits(64))
    people = world.machine("people")

    def die() -> Random:
        # One for each: what one draws is the same however often the others do.
        return Random(luck.getrandbits(64))

    installation, strange_key = await first_start(database, people, die())
    assert installation.api_key is not None
    nodes = [Program(machine, partial(_start_node, database, machine, die())) for machine in machines]

    def person(key: str = installation.api_key) -> Caller:
        return Caller(key, installation.workspace_id, promises, die(), world.tale)

    admin = installation.admin_token(database.now_ms())
    tokens: list[str] = []
    founder = person()

    async def set_up() -> None:
        async with founder.open() as http:
            tokens.extend(await founder.set_up(http, size.agents, size.runners, admin))

    preparing = people.start(set_up)
    while not preparing.has_ended:
        await trio.sleep(0.1)
    runners = [
        _runner(world, record, f"runner-{number + 1}", token, die()) for number, token in enumerate(tokens)
    ]
    for number in range(size.senders):
        people.start(person().send, f"sender-{number}", 6.0)
    people.start(person().decide)
    people.start(person().follow)
    people.start(person(strange_key).pry)
    misfortunes = Misfortunes(world, database, nodes, runners)
    world.machine("fate").start(misfortunes.run)
    try:
        await _judge(world, size, record, misfortunes, (*nodes, *runners))
    finally:
        heard.ended_s, heard.faults = world.now, misfortunes.planned
        heard.counts = dict(sorted(misfortunes.counts.items()))
    return Outcome(record, heard.counts)


async def _judge(
    world: World, size: Size, record: Record, misfortunes: Misfortunes, programs: Sequence[Program]
) -> None:
    looks = itertools.count()

    async def look(*more: Judge) -> None:
        await trio.sleep(STEP_S)
        hold(record, *JUDGES, *more)
        if next(looks) % NODES_EVERY == 0:
            hold(record, *OF_NODES)

    while world.now < size.trouble_s:
        await look()
    misfortunes.heal()
    record.promises.is_calm = True
    healed_at = world.now
    while world.now < healed_at + size.peace_s:
        for program in programs:
            program.revive()
        # It is noted from here on since when agents wait, and judged once all could connect again.
        deque(nothing_forgotten(record), maxlen=0)
        await look(*(HEALED if world.now > healed_at + SETTLING_S else ()))


def _start_node(database: Database, machine: Machine, luck: Random) -> Process:
    return machine.start(run_node, database, machine, luck.getrandbits(64))


def _runner(world: World, record: Record, name: str, token: str, luck: Random) -> Program:
    machine = world.machine(name)
    runner = SimulatedRunner(world, machine, token, Lost(record.runs, record.tables.now))

    def drain() -> None:
        if runner.current is not None:
            runner.current.drain("deploy")

    return Program(machine, lambda: machine.start(runner.run, luck.getrandbits(64)), drain)


@contextmanager
def _scripted(seed: int, runs: Runs) -> Iterator[None]:
    """Runs follow a script, and nothing is logged."""
    kept: Any = supervisor_process._guarded
    configured = structlog.get_config()
    disabled = logging.root.manager.disable
    setattr(supervisor_process, "_guarded", partial(play, seed=seed, runs=runs))  # noqa: B010 - what mypy knows is private
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        setattr(supervisor_process, "_guarded", kept)  # noqa: B010
        structlog.configure(**configured)
        logging.disable(disabled)


def live(
    seed: int,
    size: Size | None = None,
    *,
    told: bool = False,
    kept: Kept | None = None,
    heard: Heard | None = None,
) -> Life[Outcome]:
    """One life, with all of its deviations from the calm, or with some.

    Raises ``Broken`` when a promise is broken, and what a program raises. ``heard`` has what is known then.
    """
    heard = heard or Heard()
    with _scripted(seed, heard.runs):
        main = partial(_live, size=size or Size(), heard=heard)
        return run(main, seed=seed, told=told, kept=kept)
