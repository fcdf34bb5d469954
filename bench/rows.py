"""What a write of the journal costs the database: processor time, bytes of WAL, and rows changed in place.

Each of many agents gets an event, which is claimed, renewed a few times and reported, kind by kind and in
batches, by the journal alone. Then live leases are added by SQL, and the looks that each node takes twice a
second, for leases that are over and for agents that are ready, are timed among few of them and among many.
"""

import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any
from uuid import UUID

import msgspec
import trio
import uuid_utils.compat

sys.path.insert(0, str(Path(__file__).parents[1]))  # so that the file also runs by itself

from bench import harness, machine
from bench.agents_by_hand import AGENT, Agents
from bench.database import open_database
from bench.house import open_house
from bench.leases_by_hand import RUN_NANOS_PER_SEC, Leases, next_renewal, tidy
from sexton_storage.postgres import PostgresStorage, open_postgres_storage
from sexton_storage.records.events import Event, EventStatus
from sexton_storage.records.leases import Lease, LeaseStatus, Rates
from sexton_storage.records.workspaces import Workspace
from sexton_storage.writes import (
    AppendEvent,
    Claimed,
    ClaimEvent,
    EndLease,
    EventEnd,
    Write,
)

AGENTS = harness.size("ROWS_AGENTS", 4_000)
RENEWALS = 3
"""How often each lease is renewed."""
AT_ONCE = 256
"""Writes under way."""
FEW, MANY = 100, harness.size("ROWS_LEASES", 100_000)
"""Live leases beside what is looked for."""
LOOKS = 40
DAY_MS = 86_400_000
FAMILY = "c"
_MOVED = """
SELECT pg_current_wal_lsn() - '0/0'::pg_lsn,
       coalesce(sum(n_tup_upd), 0), coalesce(sum(n_tup_hot_upd), 0)
  FROM pg_stat_user_tables WHERE relname IN ('events', 'leases')
"""
_BACKENDS = """
SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
"""


class Cost(msgspec.Struct, frozen=True):
    """What one write of a kind costs."""

    database_us: float
    process_us: float
    """This process: its client's part is small."""
    wal_bytes: float
    in_place: float
    """Share of the changed rows of events and leases of which no index heard; NaN where none was changed."""


class Room:
    """The journal over one database, opened again for each kind of write, so that the counts are complete."""

    def __init__(
        self,
        dsn: str,
        workspace: Workspace,
        agents: Sequence[UUID],
        runner_id: UUID,
        *,
        at_once: int = AT_ONCE,
    ) -> None:
        self._dsn = dsn
        self.at_once = at_once
        self._workspace = workspace
        self._agents = agents
        self._runner_id = runner_id
        self.leases: list[Lease] = []
        self.costs: dict[str, Cost] = {}

    @asynccontextmanager
    async def _counted(self, kind: str, writes: int) -> AsyncIterator[PostgresStorage]:
        await trio.to_thread.run_sync(_flushed, self._dsn)
        before = await trio.to_thread.run_sync(self._moved)
        async with open_postgres_storage(self._dsn, new_id=uuid_utils.compat.uuid7) as storage:
            began, busy = process_time(), await trio.to_thread.run_sync(self._busy_us)
            yield storage
            used = process_time() - began
            database = await trio.to_thread.run_sync(self._busy_us) - busy
        await trio.to_thread.run_sync(_flushed, self._dsn)
        after = await trio.to_thread.run_sync(self._moved)
        wal, updated, hot = (now - then for then, now in zip(before, after, strict=True))
        share = hot / updated if updated else float("nan")
        self.costs[kind] = Cost(database / writes, 1e6 * used / writes, wal / writes, share)

    def _moved(self) -> list[int]:
        return [int(part) for part in machine.query(self._dsn, _MOVED).strip().split("|")]

    def _busy_us(self) -> float:
        pids = machine.query(machine.superuser(self._dsn), _BACKENDS).split()
        return sum(float(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) for pid in pids) / 1000

    async def _write(self, storage: PostgresStorage, writes: Sequence[Write[Any]]) -> list[Any]:
        answers: list[Any] = [None] * len(writes)
        room = trio.CapacityLimiter(self.at_once)

        async def one(index: int) -> None:
            async with room:
                answers[index] = await storage.journal.write(writes[index])

        async with trio.open_nursery() as nursery:
            for index in range(len(writes)):
                nursery.start_soon(one, index)
        return answers

    async def append(self) -> None:
        async with self._counted("append", len(self._agents)) as storage:
            now = storage.clock.now_ms()
            where = self._workspace
            events = [
                Event(
                    uuid_utils.compat.uuid7(),
                    agent,
                    where.id,
                    where.tenant_id,
                    "steer:bench",
                    "message",
                    EventStatus.RECEIVED,
                    "{}",
                    now,
                    now,
                )
                for agent in self._agents
            ]
            await self._write(storage, [AppendEvent(event, None, None, None, ()) for event in events])

    async def claim(self) -> None:
        async with self._counted("claim", len(self._agents)) as storage:
            now = storage.clock.now_ms()
            writes = [
                ClaimEvent(
                    agent,
                    uuid_utils.compat.uuid7(),
                    self._runner_id,
                    now,
                    DAY_MS,
                    DAY_MS,
                    Rates(RUN_NANOS_PER_SEC),
                    None,
                    None,
                )
                for agent in self._agents
            ]
            answers = await self._write(storage, writes)
            assert all(isinstance(answer, Claimed) for answer in answers), answers[:3]
            self.leases = [answer.lease for answer in answers]

    async def renew(self) -> None:
        async with self._counted("renewal", RENEWALS * len(self.leases)) as storage:
            for _ in range(RENEWALS):
                writes = [next_renewal(lease, storage.clock.now_ms()) for lease in self.leases]
                await self._write(storage, writes)
                self.leases = [write.lease for write in writes]

    async def end(self) -> None:
        async with self._counted("report", len(self.leases)) as storage:
            now = storage.clock.now_ms()
            event = EventEnd(EventStatus.PROCESSED, response_text="Done.", evidence={"checked": 1}, wall_ms=1)
            ends = [
                EndLease(
                    lease.id,
                    lease.version,
                    LeaseStatus.REPORTED,
                    now,
                    next_renewal(lease, now).slice,
                    event,
                    (),
                    require_unexpired=True,
                    report_digest=lease.id.bytes * 2,
                )
                for lease in self.leases
            ]
            await self._write(storage, ends)

    async def looks(self, beside: int) -> dict[str, float]:
        """Time of each look among that many live leases, in ms."""
        async with open_postgres_storage(self._dsn, new_id=uuid_utils.compat.uuid7) as storage:
            return {
                f"leases that are over, {beside:,} live": await _timed(
                    lambda: storage.leases.expired(limit=5000)
                ),
                f"agents that are ready, {beside:,} live": await _timed(
                    lambda: storage.events.ready(after=None, limit=1000)
                ),
            }


async def _timed(look: Callable[[], Awaitable[Any]]) -> float:
    took = []
    for _ in range(LOOKS):
        began = perf_counter()
        assert not await look()
        took.append(perf_counter() - began)
    return 1000 * median(took)


def _flushed(dsn: str) -> None:
    """Wait until all who wrote have gone: then what they counted is counted."""
    while machine.query(dsn, _BACKENDS).split():
        pass


async def measure() -> dict[str, Any]:
    async with open_database() as database:
        room = await furnished(database.dsn, AGENTS)
        harness.tell(f"{AGENTS:,} events")
        for step in (room.append, room.claim, room.renew, room.end):
            await step()
        looks: dict[str, float] = {}
        leases = Leases(database.dsn, "d", count=MANY, tenants=100)
        for first, last in ((1, FEW), (FEW + 1, MANY)):
            harness.tell(f"{last:,} live leases")
            fill = partial(leases.fill, term_ms=DAY_MS, first=first, last=last)
            await trio.to_thread.run_sync(fill)
            await trio.to_thread.run_sync(tidy, database.dsn)
            looks |= await room.looks(last)
    return harness.report("rows", database.about, _figures(room.costs, looks))


async def furnished(dsn: str, count: int) -> Room:
    """A room with as many agents that have nothing to do."""
    async with open_house(dsn) as house:
        workspace = await house.tenant("bench")
        first = await house.install(workspace, "first")
    agents = Agents(dsn, FAMILY, first=str(first))
    await trio.to_thread.run_sync(agents.install, count)
    await trio.to_thread.run_sync(tidy, dsn)
    ids = [UUID(text) for text in agents.ids(AGENT, count)]
    return Room(dsn, workspace, ids, uuid_utils.compat.uuid7())


def _figures(costs: dict[str, Cost], looks: dict[str, float]) -> list[harness.Figure]:
    made = []
    for kind, cost in costs.items():
        made += [
            harness.Figure(f"{kind}: the database's processor time", harness.once(cost.database_us), "µs"),
            harness.Figure(f"{kind}: this process's", harness.once(cost.process_us), "µs"),
            harness.Figure(f"{kind}: WAL", harness.once(cost.wal_bytes), "bytes"),
            harness.Figure(f"{kind}: rows changed in place", harness.once(100 * cost.in_place), "%"),
        ]
    made += [harness.Figure(name, harness.once(took), "ms") for name, took in looks.items()]
    return made


def run() -> dict[str, Any]:
    return trio.run(measure)


if __name__ == "__main__":
    print(harness.line(run()))
