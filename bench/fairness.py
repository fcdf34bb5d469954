"""How long a quiet workspace's events wait while another workspace floods the same runners, and without it.

The flood is 10,000 events of 100 agents that were there before; the quiet workspace gets one event at fixed
times, whatever became of those before, and its wait counts from when the event was due. First in, first out,
a quiet event would wait for the whole flood. The actors of one node over PostgreSQL, in this process.

Runs that all take as long fall into step: they are given out by one commit and end together, so slots fall
free in waves, and who comes after a wave waits for the next, however fair the line is. A second flood has
runs that vary, as those of real agents do.
"""

import sys
from pathlib import Path
from random import Random
from time import perf_counter_ns
from typing import Any
from uuid import UUID

import trio

sys.path.insert(0, str(Path(__file__).parents[1]))  # so that the file also runs by itself

from bench import harness
from bench.agents_by_hand import Agents
from bench.database import open_database
from bench.house import House, open_house
from bench.leases_by_hand import tidy
from bench.load import percentile

FLOOD = harness.size("FLOOD", 10_000)
FLOODERS = 100
"""Agents of the workspace that floods."""
QUIET_AGENTS = 20
"""More than run at once, so that none of its events waits for its own agent."""
EVERY_S = 0.05
RUN_S = 6.0
ROUNDS = 3
RUNNERS = 8
SLOTS = 4
"""The slots of each runner; each polls for one event, runs it, and polls again."""
WORK_S = 0.05
"""What a run takes, so that the flood outlasts the round and slots are what is scarce."""
VARIED_S = (0.025, 0.075)
"""What runs that vary take, the shortest and the longest."""
WAIT_MS = 500
PATIENCE_S = 30.0
"""For the last quiet events of a round."""
FAMILY = "b"
HALF = 0.5


class Town:
    """A workspace that floods, a quiet one, and the runners that serve both."""

    def __init__(self, house: House, dsn: str) -> None:
        self._house = house
        self._dsn = dsn
        self._queued = 0
        self._given: set[UUID] = set()
        self._random = Random(7)
        self.waits_ns: dict[str, list[list[int]]] = {"alone": [], "flooded": [], "varied": []}
        """How long the quiet events waited, by round."""

    async def settle(self) -> None:
        """Found it: tenants, agents, runners."""
        house = self._house
        loud, self._quiet = await house.tenant("loud"), await house.tenant("quiet")
        first = await house.install(loud, "first")
        self._agents = Agents(self._dsn, FAMILY, first=str(first))
        await trio.to_thread.run_sync(self._agents.install, FLOODERS)
        self._quiet_agents = [await house.install(self._quiet, f"quiet-{n}") for n in range(QUIET_AGENTS)]
        self._runners = [await house.enrol(f"runner-{n}") for n in range(RUNNERS)]
        await trio.to_thread.run_sync(tidy, self._dsn)

    async def alone(self) -> float:
        """A round without the flood; the p99 of the waits, in ms."""
        return await self._round("alone")

    async def flooded(self) -> float:
        """A round with it, which is not over when the round ends."""
        return await self._beside_the_flood("flooded")

    async def varied(self) -> float:
        """The same with runs that vary."""
        return await self._beside_the_flood("varied")

    async def _beside_the_flood(self, kind: str) -> float:
        each = FLOOD // FLOODERS
        await trio.to_thread.run_sync(lambda: self._agents.queue(FLOODERS, each=each, offset=self._queued))
        self._queued += each * FLOODERS
        p99 = await self._round(kind)
        assert self._agents.waiting() > 0, "the flood was over before the round was"
        await trio.to_thread.run_sync(self._agents.forget_waiting)
        return p99

    async def _round(self, kind: str) -> float:
        due: dict[UUID, int] = {}
        leased: dict[UUID, int] = {}
        over = trio.Event()
        async with trio.open_nursery() as nursery:
            for slot in range(RUNNERS * SLOTS):
                nursery.start_soon(self._serve, self._runners[slot % RUNNERS], leased, over, kind)
            await self._send(due)
            with trio.fail_after(PATIENCE_S):
                while not due.keys() <= leased.keys():  # noqa: ASYNC110 - the slots fill it
                    await trio.sleep(EVERY_S)
            over.set()
        waits = sorted(leased[event_id] - at for event_id, at in due.items())
        self.waits_ns[kind].append(waits)
        return percentile(waits, 0.99) / 1e6

    async def _send(self, due: dict[UUID, int]) -> None:
        began = perf_counter_ns()
        for turn in range(int(harness.lasting(RUN_S) / EVERY_S)):
            at = began + int(turn * EVERY_S * 1e9)
            await trio.sleep(max(0.0, (at - perf_counter_ns()) / 1e9))
            event = await self._house.keep(self._quiet, self._quiet_agents[turn % QUIET_AGENTS])
            due[event.id] = at
            self._house.tell(event)

    async def _serve(self, runner_id: UUID, leased: dict[UUID, int], over: trio.Event, kind: str) -> None:
        while not over.is_set():
            for grant in await self._house.poll(runner_id, wait_ms=WAIT_MS):
                event_id = grant.event.id
                assert event_id not in self._given, "one event was leased twice"
                self._given.add(event_id)
                leased[event_id] = perf_counter_ns()
                await trio.sleep(self._random.uniform(*VARIED_S) if kind == "varied" else WORK_S)
                await self._house.report(runner_id, grant)


async def measure() -> dict[str, Any]:
    async with open_database() as database, open_house(database.dsn) as house:
        town = Town(house, database.dsn)
        await town.settle()
        contenders = {"alone": town.alone, "flooded": town.flooded, "varied": town.varied}
        await harness.alternate(contenders, rounds=ROUNDS)
    return harness.report("fairness", database.about, figures(town.waits_ns, ROUNDS))


def figures(waits_ns: dict[str, list[list[int]]], rounds: int) -> list[harness.Figure]:
    """The figures of the last rounds of each; those before were warm-up."""
    made = []
    for label, share in (("p50", HALF), ("p99", 0.99)):
        alone, flooded, varied = (
            [percentile(waits, share) / 1e6 for waits in waits_ns[kind][-rounds:]]
            for kind in ("alone", "flooded", "varied")
        )
        made.append(harness.Figure(f"quiet workspace alone, wait {label}", harness.Spread.of(alone), "ms"))
        budgets = (harness.at_most_times(4),) if share > HALF else ()
        for name, waits in (("beside the flood", flooded), ("beside a flood of runs that vary", varied)):
            ratio, value = harness.ratios(waits, alone), harness.Spread.of(waits)
            made.append(harness.Figure(f"{name}, wait {label}", value, "ms", "alone", ratio, budgets))
    return made


def run() -> dict[str, Any]:
    return trio.run(measure)


if __name__ == "__main__":
    print(harness.line(run()))
