"""Ten minutes of an installation under one seed: nodes, runners, people, misfortunes, and the judges."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any, Final

import structlog
import trio

from sexton_runner.supervisors import process as supervisor_process
from tests.simulation.product.database import Database
from tests.simulation.product.judges import HEALED, JUDGES, Record, hold
from tests.simulation.product.misfortunes import Misfortunes, Program
from tests.simulation.product.node import NAME, first_start, run_node
from tests.simulation.product.people import Caller, Promises
from tests.simulation.product.runner import SimulatedRunner, play
from tests.simulation.world.processes import Machine, Process
from tests.simulation.world.run import Life, World, run

STEP_S: Final = 1.0
"""How often the judges look."""
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


async def _live(world: World, size: Size) -> Outcome:
    database, promises = Database(world), Promises()
    record = Record(database.tables, promises)
    machines = [world.machine(f"node-{number + 1}") for number in range(size.nodes)]
    world.network.names[NAME] = machines
    luck = Random(world.rng.getrandbits(64))
    people = world.machine("people")

    installation = await first_start(database, people, luck)
    assert installation.api_key is not None
    nodes = [Program(machine, partial(_start_node, database, machine, luck)) for machine in machines]
    caller = Caller(installation.api_key, installation.workspace_id, promises, luck)
    admin = installation.admin_token(database.now_ms())
    tokens: list[str] = []

    async def set_up() -> None:
        async with caller.open() as http:
            tokens.extend(await caller.set_up(http, size.agents, size.runners, admin))

    preparing = people.start(set_up)
    while not preparing.has_ended:
        await trio.sleep(0.1)
    runners = [_runner(world, f"runner-{number + 1}", token, luck) for number, token in enumerate(tokens)]
    for number in range(size.senders):
        people.start(caller.send, f"sender-{number}", 6.0)
    people.start(caller.decide)
    misfortunes = Misfortunes(world, database, nodes, runners)
    world.machine("fate").start(misfortunes.run)

    while world.now < size.trouble_s:
        await trio.sleep(STEP_S)
        hold(record, *JUDGES)
    misfortunes.heal()
    promises.is_calm = True
    healed_at = world.now
    while world.now < healed_at + size.peace_s:
        await trio.sleep(STEP_S)
        for program in (*nodes, *runners):
            program.revive()
        hold(record, *JUDGES)
        if world.now > healed_at + SETTLING_S:
            hold(record, *HEALED)
    return Outcome(record, dict(sorted(misfortunes.counts.items())))


def _start_node(database: Database, machine: Machine, luck: Random) -> Process:
    return machine.start(run_node, database, machine, luck.getrandbits(64))


def _runner(world: World, name: str, token: str, luck: Random) -> Program:
    machine = world.machine(name)
    runner = SimulatedRunner(world, machine, token)

    def drain() -> None:
        if runner.current is not None:
            runner.current.drain("deploy")

    return Program(machine, lambda: machine.start(runner.run, luck.getrandbits(64)), drain)


@contextmanager
def _scripted() -> Iterator[None]:
    """Runs follow a script, and nothing is logged."""
    kept: Any = supervisor_process._guarded
    configured = structlog.get_config()
    disabled = logging.root.manager.disable
    setattr(supervisor_process, "_guarded", play)  # noqa: B010 - what mypy knows is private
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        setattr(supervisor_process, "_guarded", kept)  # noqa: B010
        structlog.configure(**configured)
        logging.disable(disabled)


def live(seed: int, size: Size | None = None, *, told: bool = False) -> Life[Outcome]:
    """One life. Raises ``Broken`` when a promise is broken, and what a program raises."""
    with _scripted():
        return run(partial(_live, size=size or Size()), seed=seed, told=told)
