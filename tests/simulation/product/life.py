"""Minutes or weeks of an installation under one seed: nodes, runners, people, misfortunes, and the judges."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from random import Random
from typing import Any, Final

import structlog
import trio

from sexton_actors.plans import STARTER_CREDIT_NANOS
from sexton_http.identity.bootstrap import Installation
from sexton_http.identity.issuers.builtin import TOKEN_S
from sexton_runner.supervisors import process as supervisor_process
from sexton_runner.timing import Timing
from tests.simulation.product import rare_looks
from tests.simulation.product.database import Database
from tests.simulation.product.follow_up_canceller import FollowUpCanceller
from tests.simulation.product.guests import Guests
from tests.simulation.product.job_operator import Operator
from tests.simulation.product.kept_rows import EVENT_DAYS, KeptRows
from tests.simulation.product.looks import Looks
from tests.simulation.product.misfortunes import Misfortunes, Program
from tests.simulation.product.node import NAME, first_start, run_node
from tests.simulation.product.pace import DENSE, PACES, Pace
from tests.simulation.product.people import Caller, Promises
from tests.simulation.product.privacy_officer import PrivacyOfficer
from tests.simulation.product.proposal_reviewer import ProposalReviewer
from tests.simulation.product.record import Record
from tests.simulation.product.runner import Lost, SimulatedRunner, play
from tests.simulation.product.runs import Runs
from tests.simulation.product.strikes import has_strikes
from tests.simulation.product.times import Times
from tests.simulation.product.treasurer import Treasurer, first_credit
from tests.simulation.product.writes import describe
from tests.simulation.world.deviations import Kept
from tests.simulation.world.processes import Machine, Process
from tests.simulation.world.run import Life, World, run
from tests.simulation.world.tale import Tale

DAY_MINUTES: Final = 24 * 60
SLOW_PEACE_S: Final = (900.0, 5_400.0)
"""How much of each day is peace at the slow pace, the least and the most."""


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
    pace: str = DENSE.name
    rounds: int = 1
    """How often trouble and peace come."""
    begins_s: float | None = None
    """What calendars show at the beginning, in seconds since 1970; None: as the pace says."""
    bulk_work: bool = False
    """Whether events are dealt with in bulk, values are erased, runs ask for follow-ups and make proposals,
    deliveries and agents differ, runners are cut off before they hear of a lease, credit is short, and
    servers are hit between a commit and its answer, the last two in some seeds only.

    Lives that were kept before had none of these.
    """


def lasting(
    minutes: float, pace: str = DENSE.name, begins_s: float | None = None, *, bulk_work: bool = True
) -> Size:
    """A life of that many minutes, of which at least one is peace; at a slow pace each day has its peace.

    >>> week = lasting(7 * 24 * 60, "slow")
    >>> week.rounds, week.trouble_s + week.peace_s
    (7, 86400.0)
    """
    if pace == DENSE.name:
        peace_s = max(60.0, minutes * 12)
        trouble_s = minutes * 60 - peace_s
        return Size(trouble_s=trouble_s, peace_s=peace_s, begins_s=begins_s, bulk_work=bulk_work)
    rounds = max(1, round(minutes / DAY_MINUTES))
    least, most = SLOW_PEACE_S
    round_s = minutes * 60 / rounds
    peace_s = min(most, max(least, round_s / 5))
    trouble_s = round_s - peace_s
    return Size(trouble_s=trouble_s, peace_s=peace_s, pace=pace, rounds=rounds, begins_s=begins_s)


def unix_s(said: str) -> float:
    """A moment of UTC as people write it.

    >>> unix_s("2027-10-31 00:30")
    1824942600.0
    """
    return datetime.fromisoformat(said).replace(tzinfo=UTC).timestamp()


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
    database, promises, pace = Database(world), Promises(), PACES[size.pace]
    heard.runs.begin(
        database.now_ms,
        ask_for_more=size.bulk_work and pace.habits.follow_ups is not None,
        propose=size.bulk_work and pace.habits.proposals is not None,
    )
    record = Record(database.tables, promises, systems=database.systems, runs=heard.runs)
    if pace.is_rare:
        record.times = Times(KeptRows(database.tables))
        record.tables, record.late_ms = record.times.kept.tables, round(pace.late_s * 1000)
    heard.record = record
    if heard.told:
        heard.tale = world.tale = Tale(
            lambda: world.now, partial(describe, start_s=world.timeline.start_s), world.timeline.start_s
        )
    machines = [world.machine(f"node-{number + 1}") for number in range(size.nodes)]
    world.network.names[NAME] = machines
    luck = Random(world.rng.getrandbits(64))
    people = world.machine("people")

    def die() -> Random:
        # One for each: what one draws is the same however often the others do.
        return Random(luck.getrandbits(64))

    short = first_credit(world.seed) if size.bulk_work and pace.habits.credit is not None else None
    credit_nanos = STARTER_CREDIT_NANOS if short is None else short
    installation, strange_key = await first_start(database, people, die(), credit_nanos)
    record.first_credit[installation.tenant_id] = credit_nanos
    assert installation.api_key is not None
    nodes = [_node(database, machine, die(), is_rare=pace.is_rare) for machine in machines]

    def person(key: str = installation.api_key) -> Caller:
        return Caller(
            key,
            installation.workspace_id,
            promises,
            die(),
            tale=world.tale,
            pace=pace,
            bulk_work=size.bulk_work,
        )

    admin = installation.admin_token(database.now_ms())
    tokens = await _set_up(people, person(), size, admin, is_rare=pace.is_rare)
    runners = [
        _runner(world, record, f"runner-{number + 1}", token, die(), is_rare=pace.is_rare)
        for number, token in enumerate(tokens)
    ]
    for number in range(size.senders):
        people.start(person().send, f"sender-{number}")
    people.start(person().decide)
    people.start(person().follow)
    people.start(person(strange_key).pry)
    if pace.habits.guests is not None:

        def user_token(now_ms: int) -> tuple[str, int]:
            return installation.admin_token(now_ms), now_ms + TOKEN_S * 1000

        people.start(Guests(person(), database.now_ms, user_token).run)
    if record.times is not None:
        record.times.plan(promises.agents, pace.agents, database.now_ms(), _end_ms(world, size))
    misfortunes = Misfortunes(
        world,
        database,
        nodes,
        runners,
        pace,
        strikes=size.bulk_work and has_strikes(world.seed),
        hang_ups=size.bulk_work,
    )
    world.machine("fate").start(misfortunes.run)
    people.start(person().decide_at_parking, heard.runs.parkings.at_people)
    if size.bulk_work:
        _start_bulk_work(people, person, database, pace, size)
    if short is not None:
        _start_treasurer(people, person(), database, installation)
    try:
        await Looks(world, database, record, misfortunes, programs=(*nodes, *runners), pace=pace).live(size)
    finally:
        heard.ended_s, heard.faults = world.now, misfortunes.planned
        heard.counts = dict(sorted(misfortunes.counts.items()))
    return Outcome(record, heard.counts)


async def _set_up(people: Machine, founder: Caller, size: Size, admin: str, *, is_rare: bool) -> list[str]:
    tokens: list[str] = []

    async def set_up() -> None:
        async with founder.open() as http:
            tokens.extend(await founder.set_up(http, size.agents, size.runners, admin))
            if is_rare:
                await founder.keep_days(http, EVENT_DAYS)

    preparing = people.start(set_up)
    while not preparing.has_ended:
        await trio.sleep(0.1)
    return tokens


def _start_bulk_work(
    people: Machine, person: Callable[[], Caller], database: Database, pace: Pace, size: Size
) -> None:
    if pace.habits.jobs is not None:
        people.start(Operator(person(), database.now_ms, database.is_slow).run)
    if pace.habits.erasures is not None:
        people.start(PrivacyOfficer(person(), database.is_slow, size.trouble_s).run)
    if pace.habits.follow_ups is not None:
        people.start(FollowUpCanceller(person(), database.now_ms).run)
    if pace.habits.proposals is not None:
        people.start(ProposalReviewer(person()).run)


def _start_treasurer(people: Machine, caller: Caller, database: Database, installation: Installation) -> None:
    def admin_token() -> str:
        return installation.admin_token(database.now_ms())

    people.start(Treasurer(caller, installation.tenant_id, admin_token).run)


def _end_ms(world: World, size: Size) -> int:
    return round((world.timeline.start_s + size.rounds * (size.trouble_s + size.peace_s)) * 1000)


def _node(database: Database, machine: Machine, luck: Random, *, is_rare: bool) -> Program:
    def start() -> Process:
        run = partial(run_node, is_rare=is_rare)
        return machine.start(run, database, machine, luck.getrandbits(64))

    def stop() -> None:
        if (told := database.stops.get(program.process)) is not None:
            told.set()

    program = Program(machine, start, stop)
    return program


def _runner(world: World, record: Record, name: str, token: str, luck: Random, *, is_rare: bool) -> Program:
    machine = world.machine(name)
    timing = rare_looks.TIMING if is_rare else Timing()
    runner = SimulatedRunner(world, machine, token, Lost(record.runs, record.tables.now), timing)

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
    heard, size = heard or Heard(), size or Size()
    pace = PACES[size.pace]
    start_s = pace.start_s(seed) if size.begins_s is None else size.begins_s
    with _scripted(seed, heard.runs), rare_looks.rare_looks() if pace.is_rare else nullcontext():
        return run(partial(_live, size=size, heard=heard), seed=seed, told=told, kept=kept, start_s=start_s)
