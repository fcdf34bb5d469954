"""Has each world decided by the rules in ``decisions`` and by PostgreSQL's statements, and compares."""

import asyncio
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import count
from typing import Any, Final
from unittest import mock
from uuid import UUID

import asyncpg
import trio
from msgspec.structs import replace

from sexton_storage.memory.agents import MemoryZombies
from sexton_storage.memory.faults import Faults
from sexton_storage.memory.journal import MemoryJournal, apply
from sexton_storage.memory.retention import MemoryRetention
from sexton_storage.postgres.journal.appends import APPEND_FUNCTION
from sexton_storage.postgres.journal.batch import PREPARE, Batch, BatchMark
from sexton_storage.postgres.stores.retention import PostgresRetention
from sexton_storage.postgres.stores.zombies import PostgresZombies
from sexton_storage.records.frames import NewFrame
from sexton_storage.records.retention import KeptClass
from sexton_storage.records.tenants import PlanTier
from sexton_storage.refusals import Lost
from sexton_storage.writes import NothingToClaim, OverBudget
from tests.storage.row_bulk import KINDS as BULK_KINDS, Bulk
from tests.storage.row_requests import batch_of
from tests.storage.row_tables import (
    Columns,
    differences,
    load,
    owners_of,
    rows_in_memory,
    rows_in_postgres,
    sweep,
)
from tests.storage.row_worlds import Dice, World

NO_BOUNDS: Final[Mapping[str, int]] = {}
KEPT_MS: Final = (2_000, 8_000, 60_000, 86_400_000)
"""How long events are kept that have ended; those of a new world are some seconds old."""
DROPPED_MAX: Final = 10_000
"""More than a world has: which of them go first is the subject of other tests."""
AT_ONCE = {"append alone"}
"""Kinds whose batches are one message."""
LANE: Final = UUID(int=1)
SWEPT_EVERY: Final = 20
"""Worlds after which dead rows are removed: the tests' database does not do it by itself."""
OF_LEASES = {"end", "open gate", "park", "renew"}
MOVED_CLOCK = (
    "CREATE OR REPLACE FUNCTION sexton_now_ms() RETURNS bigint LANGUAGE sql STABLE"
    " RETURN current_setting('tests.now_ms')::bigint"
)


class Deviation(Exception):
    """A rule and a statement do not agree."""


class OtherWords:
    """A connection that puts other words into the statements that it is given."""

    def __init__(self, connection: asyncpg.Connection, old: str, new: str) -> None:
        self._connection = connection
        self._old, self._new = old, new
        self.put = 0

    def _worded(self, query: str) -> str:
        self.put += self._old in query
        return query.replace(self._old, self._new)

    async def fetch(self, query: str, *args: Any) -> Any:
        return await self._connection.fetch(self._worded(query), *args)

    async def fetchrow(self, query: str, *args: Any) -> Any:
        return await self._connection.fetchrow(self._worded(query), *args)

    async def fetchval(self, query: str, *args: Any) -> Any:
        return await self._connection.fetchval(self._worded(query), *args)

    async def execute(self, query: str, *args: Any) -> Any:
        return await self._connection.execute(self._worded(query), *args)

    async def executemany(self, query: str, args: Any) -> Any:
        return await self._connection.executemany(self._worded(query), args)


class Twins:
    """Has each world decided by both, and compares the answers and all rows; nothing is ever committed."""

    def __init__(self, runner: asyncio.Runner, connection: asyncpg.Connection) -> None:
        self._runner = runner
        self._connection = connection
        self.worded: Any = connection
        """What the statements are run by."""
        self._marks = count(1)
        self.compared: Counter[str] = Counter()
        self.answers: Counter[str] = Counter()
        self._asked: list[Any] = []
        """Writes since the rows were compared last."""
        self._columns = Columns()
        self._worlds = 0
        self.dropped = 0
        """Events that retention has deleted."""

    def reword(self, old: str, new: str) -> OtherWords:
        self.worded = words = OtherWords(self._connection, old, new)
        self._runner.run(words.execute(_replaced(APPEND_FUNCTION)))
        return words

    def compare(self, seed: int, kind: str, agents: int) -> None:
        """Raises Deviation, which says what differs."""
        world = World(Dice(seed), agents, busy_percent=90 if kind in OF_LEASES else 40)
        self.compare_in_turn(world, [kind])

    def compare_in_turn(
        self, world: World, kinds: Iterable[str], most: Mapping[str, int] = NO_BOUNDS, *, every: int = 1
    ) -> None:
        """Have one batch of each kind decided after the other, on the rows that the ones before have left.

        ``most`` bounds the batches of some kinds. Answers are compared after each batch, rows after every
        ``every`` batches and at the end.
        """
        self._runner.run(self._in_transaction(world, kinds, most, every))

    def compare_all(self, kind: str, seeds: Iterable[int]) -> None:
        for seed in seeds:
            self.compare(seed, kind, 5)

    async def _in_transaction(
        self, world: World, kinds: Iterable[str], most: Mapping[str, int], every: int
    ) -> None:
        self._asked.clear()
        self._columns = Columns()
        self._worlds += 1
        if self._worlds % SWEPT_EVERY == 0:
            await sweep(self._connection)
        transaction = self._connection.transaction()
        await transaction.start()
        clock = world.now
        try:
            # Triggers of some rows look at the clock.
            await self._connection.execute(f"SET LOCAL tests.now_ms = {clock}")
            await load(self._connection, rows_in_memory(world.tables), len(world.tables.arrivals) + 1)
            bulk = Bulk(world, self._change)
            for place, kind in enumerate(kinds, 1):
                if world.now != clock:
                    clock = world.now
                    await self._connection.execute(f"SET LOCAL tests.now_ms = {clock}")
                match kind:
                    case "kill":
                        await self._compare_kill(world)
                    case "drop":
                        await self._compare_drop(world)
                    case _ if kind in BULK_KINDS:
                        asked, found, answer = await bulk.compare(kind)
                        await self._judge(world, kind, (asked,), found, [answer])
                    case _:
                        await self._compare_batch(world, kind, most.get(kind))
                if place % every == 0:
                    await self._compare_rows(world)
            await self._compare_rows(world)
        finally:
            await transaction.rollback()

    async def _compare_batch(self, world: World, kind: str, most: int | None) -> None:
        writes = batch_of(world, kind)[:most]
        if not writes:
            return
        batch = Batch(writes)
        if kind in AT_ONCE:
            await batch.commit_at_once(self.worded, BatchMark(LANE, next(self._marks)))
        else:
            await batch.run(self.worded)
            if batch.rest:
                await self.worded.execute(batch.rest)
        rules = [apply(world.tables, write) for write in writes]
        found = [
            f"answer to {write}:\n  rule {rule}\n  statement {statement}"
            for write, rule, statement in zip(writes, rules, batch.answers, strict=True)
            if _comparable(kind, rule) != _comparable(kind, statement)
        ]
        await self._judge(world, kind, writes, found, [_named(kind, rule) for rule in rules])

    async def _compare_kill(self, world: World) -> None:
        agent = world.dice.one(*world.tables.zombies.values())
        killed = replace(agent, version=agent.version + 1, updated_at=world.now + 3)
        frames = (NewFrame(agent.id, None, "killed", world.now, {}),)
        database, journal = mock.Mock(), mock.Mock()
        database.change = self._change
        statement = await PostgresZombies(database, journal).kill(killed, frames, world.now + 3)
        faults = Faults()
        store = MemoryZombies(world.tables, faults, MemoryJournal(world.tables, faults))
        # It answers at once, so nothing of this thread's own loop waits.
        rule = trio.run(store.kill, killed, frames, world.now + 3)
        found = [] if tuple(rule) == tuple(statement) else [f"told: rule {rule}, statement {statement}"]
        await self._judge(world, "kill", (killed,), found, ["killed"])

    async def _compare_drop(self, world: World) -> None:
        """Delete the events that have ended some while ago, as retention does."""
        world.gone |= owners_of(world.tables)
        plans = {PlanTier.FREE: world.dice.one(*KEPT_MS)}
        database = mock.Mock()
        database.change = self._change
        statement = await PostgresRetention(database).drop(KeptClass.EVENTS, plans, limit=DROPPED_MAX)
        faults = Faults()
        drop = MemoryRetention(world.tables, faults, MemoryJournal(world.tables, faults)).drop
        rule = trio.run(partial(drop, KeptClass.EVENTS, plans, limit=DROPPED_MAX))
        found = [] if rule == statement else [f"dropped: rule {rule}, statement {statement}"]
        await self._judge(world, "drop", (plans,), found, ["dropped" if rule else "dropped nothing"])
        self.dropped += rule

    async def _change(self, work: Any, _: Any = None, *, long: bool = False) -> Any:
        return await work(self.worded)

    async def _judge(
        self, world: World, kind: str, writes: Sequence[Any], found: list[str], answers: Sequence[str]
    ) -> None:
        self._asked.extend(writes)
        if found:
            self._raise([*found, *await self._row_differences(world)])
        self.compared[kind] += len(writes)
        self.answers.update(answers)

    async def _compare_rows(self, world: World) -> None:
        if self._asked and (found := await self._row_differences(world)):
            self._raise(found)
        self._asked.clear()

    async def _row_differences(self, world: World) -> list[str]:
        rules = rows_in_memory(world.tables, world.gone, self._columns)
        return differences(rules, await rows_in_postgres(self._connection))

    def _raise(self, found: list[str]) -> None:
        asked = "\n".join(map(str, self._asked))
        raise Deviation("\n".join(found[:20]) + f"\n\nasked:\n{asked}")


def _comparable(kind: str, answer: Any) -> Any:
    """Leave out why a lease is lost: the statement that renews and ends leases does not say it."""
    return Lost() if isinstance(answer, Lost) and kind in {"renew", "end", "park"} else answer


def _named(kind: str, answer: Any) -> str:
    name = type(answer).__name__
    match answer:
        case Lost() if kind in {"renew", "end", "park"}:
            return name
        case Lost(reason=detail) | NothingToClaim(reason=detail) | OverBudget(period=detail):
            return f"{name} {detail}"
        case _ if kind == "cancel":
            return f"{name} {answer.outcome}"
        case _ if kind == "park":
            return f"{name} {answer.event.status}"
        case _:
            return name


def _replaced(function: str) -> str:
    return function.replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION")


@contextmanager
def opened_twins(dsn: str) -> Iterator[Twins]:
    """Twins on a database of their own, whose clock stands at what each world says."""
    with asyncio.Runner() as runner:
        connection = runner.run(asyncpg.connect(dsn))
        runner.run(connection.execute(f"{MOVED_CLOCK};{APPEND_FUNCTION};{PREPARE}"))
        yield Twins(runner, connection)
        runner.run(connection.close())
