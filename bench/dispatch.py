"""What it costs to give an event to a runner, with 10, 1,000 and 100,000 agents beside it.

Twice: with agents that are installed and asleep, where a runner waits and an event comes; and with agents
that all have work, where a runner comes. Neither should be felt: the ratio of the most to the fewest is to be
about 1. The actors of one node over PostgreSQL, in this process; the agents are put in by SQL.
"""

import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any
from uuid import UUID

import trio

sys.path.insert(0, str(Path(__file__).parents[1]))  # so that the file also runs by itself

import trio.lowlevel

from bench import harness, machine
from bench.agents_by_hand import AGENT, Agents
from bench.database import open_database
from bench.house import House, open_house
from bench.leases_by_hand import tidy
from sexton_actors.protocol.dispatcher import ViewQueue
from sexton_actors.protocol.queue import Grant
from sexton_storage.records.workspaces import Workspace

MOST = harness.size("AGENTS", 100_000)
COUNTS = (10, 1_000, MOST) if MOST > 1_000 else (10, MOST)
"""Agents beside the one that is given out."""
CLAIMS = 200
"""The claims of one round, one after the other; the round's figure is their median."""
WARM = 20
ROUNDS = 3
AWAKE = 8
"""Agents, of those that sleep, whose events come."""
FILL_S = 60.0
LOOK_S = 0.05
_READY = "SELECT count(*) FROM (SELECT DISTINCT zombie_id FROM waiting_events)"
MISSING = 0.01
"""Of agents that were ready at first, those that may have run out of events. After a stall of the machine the
dispatcher may give an agent's second event out before others' first."""
FAMILY = "a"


class Arena:
    """One PostgreSQL, with a database for each number of agents, idle and ready."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self.leased = 0

    async def prepare(self, kind: str, count: int) -> str:
        """Make a database with that many agents; give its address."""
        dsn = await self._database(f"{kind}_{count}")
        async with open_house(dsn) as house:
            workspace = await house.tenant("bench")
            first = await house.install(workspace, "first")
            await house.enrol("runner")
        agents = Agents(dsn, FAMILY, first=str(first))
        await trio.to_thread.run_sync(agents.install, count)
        if kind == "ready":
            # Enough that no agent is without one at the end, though a runner prefers those it ran last.
            each = 2 + 2 * (ROUNDS * (CLAIMS + WARM) // count)
            await trio.to_thread.run_sync(lambda: agents.queue(count, each=each))
        await trio.to_thread.run_sync(tidy, dsn)
        return dsn

    async def _database(self, name: str) -> str:
        maintenance = machine.superuser(self._dsn).replace("/sexton?", "/postgres?")
        await trio.to_thread.run_sync(machine.query, maintenance, f"CREATE DATABASE {name} OWNER sexton")
        return self._dsn.replace("/sexton?", f"/{name}?")

    def idle(self, dsn: str) -> Callable[[], Awaitable[float]]:
        """From the word that an event was kept to the answer of the poll that waits, in ms."""

        async def measured() -> float:
            async with open_house(dsn) as house:
                runner_id, workspace = await _standing(house, dsn)
                agents = [UUID(text) for text in Agents(dsn, FAMILY, first="").ids(AGENT, AWAKE)]
                took = [
                    await _woken(house, workspace, runner_id, agents[turn % AWAKE])
                    for turn in range(WARM + CLAIMS)
                ]
            return self._settle(took)

        return measured

    def ready(self, dsn: str, count: int) -> Callable[[], Awaitable[float]]:
        """From a poll to its answer, in ms."""

        async def measured() -> float:
            async with open_house(dsn) as house:
                runner_id, _ = await _standing(house, dsn)
                waiting = int(await trio.to_thread.run_sync(machine.query, dsn, _READY))
                assert waiting >= (1 - MISSING) * count, f"only {waiting} of {count} agents have events left"
                await _until_known(house, waiting)
                took = [await _taken(house, runner_id) for _ in range(WARM + CLAIMS)]
            return self._settle(took)

        return measured

    def _settle(self, took: list[float]) -> float:
        self.leased += len(took)
        return 1000 * median(took[WARM:])


async def _standing(house: House, dsn: str) -> tuple[UUID, Workspace]:
    runner_id, workspace_id = (
        machine.query(dsn, "SELECT (SELECT id FROM runners), (SELECT id FROM workspaces)").strip().split("|")
    )
    workspace = await house.world.storage.workspaces.load(UUID(workspace_id))
    assert workspace is not None
    return UUID(runner_id), workspace


async def _until_known(house: House, count: int) -> None:
    """The dispatcher finds them in the database, page by page."""
    with trio.fail_after(FILL_S):
        while (await house.system.ask("dispatcher", "", ViewQueue())).ready_agents < count:  # noqa: ASYNC110 - it tells nobody
            await trio.sleep(LOOK_S)


async def _woken(house: House, workspace: Workspace, runner_id: UUID, agent: UUID) -> float:
    answered: list[tuple[float, Grant]] = []

    async def wait() -> None:
        grants = await house.poll(runner_id)
        answered.extend((perf_counter(), grant) for grant in grants)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        while (await house.system.ask("dispatcher", "", ViewQueue())).waiting_offers < 1:
            await trio.lowlevel.checkpoint()
        event = await house.keep(workspace, agent)
        told = perf_counter()
        house.tell(event)
    [(at, grant)] = answered
    assert grant.event.id == event.id
    await house.report(runner_id, grant)
    return at - told


async def _taken(house: House, runner_id: UUID) -> float:
    asked = perf_counter()
    [grant] = await house.poll(runner_id)
    took = perf_counter() - asked
    await house.report(runner_id, grant)
    return took


async def measure() -> dict[str, Any]:
    async with open_database() as database:
        arena = Arena(database.dsn)
        contenders: dict[str, Callable[[], Awaitable[float]]] = {}
        addresses: list[str] = []
        for count in COUNTS:
            harness.tell(f"{count:,} idle agents, and as many ready ones")
            addresses += [await arena.prepare("idle", count), await arena.prepare("ready", count)]
            contenders[f"idle {count}"] = arena.idle(addresses[-2])
            contenders[f"ready {count}"] = arena.ready(addresses[-1], count)
        # Each round warms up by itself: it is a node that has just started.
        samples = await harness.alternate(contenders, rounds=ROUNDS, warm_up=0)
        await trio.to_thread.run_sync(_check, addresses, arena.leased)
    return harness.report("dispatch", database.about, figures(samples))


def _check(addresses: list[str], leased: int) -> None:
    asked = "SELECT count(*) FROM leases WHERE status = 'reported'"
    reported = sum(int(machine.query(dsn, asked)) for dsn in addresses)
    assert reported == leased, f"{leased} leases given, {reported} reported"


def figures(samples: dict[str, list[float]]) -> list[harness.Figure]:
    """Each number of agents beside the smallest, kind by kind."""
    made = []
    for kind, label in (("idle", "idle agents, an event comes"), ("ready", "ready agents, a runner comes")):
        fewest = samples[f"{kind} {COUNTS[0]}"]
        made.append(harness.Figure(f"{COUNTS[0]:,} {label}", harness.Spread.of(fewest), "ms"))
        for count in COUNTS[1:]:
            mine = samples[f"{kind} {count}"]
            budgets = (harness.at_most_times(1.2),) if count == MOST else ()
            made.append(
                harness.Figure(
                    f"{count:,} {label}",
                    harness.Spread.of(mine),
                    "ms",
                    f"{COUNTS[0]:,} agents",
                    harness.ratios(mine, fewest),
                    budgets,
                )
            )
    return made


def run() -> dict[str, Any]:
    return trio.run(measure)


if __name__ == "__main__":
    print(harness.line(run()))
