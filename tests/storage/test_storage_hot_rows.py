"""A claim, a renewal and a report change their wide rows in place: no index of events or leases hears of it.

PostgreSQL does so (heap-only tuples) where no index holds a column that changes and the page has room. Each
index that did would cost a write of its own for every change, and its bytes in the WAL.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import asyncpg
import trio

from sexton_storage.postgres import PostgresStorage, open_postgres_storage
from sexton_storage.records.events import EventStatus
from sexton_storage.records.leases import Lease
from sexton_storage.records.zombies import Zombie
from sexton_storage.writes import Claimed, Ended, EventEnd, Renewed, Write
from tests.worlds.storage import StorageWorld

AGENTS = 200
IN_PLACE_OF_ENDS = 0.8
"""Of the rows that reports change. The rest found no room on their page: what a run leaves is longer."""
_OTHERS = """
SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
"""
_CHANGED = """
SELECT relname::text, n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relname IN ('events', 'leases')
"""
_WAL = "SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn"
Counts = dict[str, tuple[int, int]]
"""Of each table: rows changed, and of these in place."""


def counted(dsn: str) -> tuple[Counts, int]:
    """What was changed so far, and bytes of WAL; what a connection has done is counted when it has ended."""

    async def look() -> tuple[Counts, int]:
        connection = await asyncpg.connect(dsn)
        try:
            while await connection.fetchval(_OTHERS):
                await asyncio.sleep(0.01)
            rows = await connection.fetch(_CHANGED)
            return {row[0]: (row[1], row[2]) for row in rows}, int(await connection.fetchval(_WAL))
        finally:
            await connection.close()

    return asyncio.run(look())


async def written(storage: PostgresStorage, writes: Sequence[Write[Any]], kind: type) -> list[Any]:
    """Answers in the order of the writes, which go in few batches."""
    answers: list[Any] = [None] * len(writes)

    async def one(index: int) -> None:
        answers[index] = await storage.journal.write(writes[index])

    async with trio.open_nursery() as nursery:
        for index in range(len(writes)):
            nursery.start_soon(one, index)
    assert {type(answer) for answer in answers} == {kind}
    return answers


async def test_claims_renewals_and_reports_change_rows_that_no_index_hears_of(postgres_dsn: str) -> None:
    agents: list[Zombie] = []
    leases: list[Lease] = []

    async def found(storage: PostgresStorage) -> None:
        world = await StorageWorld(storage).found()
        agents.extend([await world.agent() for _ in range(AGENTS)])
        for agent in agents:
            await world.append(agent)

    async def claim(storage: PostgresStorage) -> None:
        world = StorageWorld(storage)
        answers = await written(storage, [world.claim_of(agent) for agent in agents], Claimed)
        leases.extend(answer.lease for answer in answers)

    async def renew(storage: PostgresStorage) -> None:
        world = StorageWorld(storage)
        writes = [world.renewal(lease) for lease in leases]
        await written(storage, writes, Renewed)
        leases[:] = [write.lease for write in writes]

    async def end(storage: PostgresStorage) -> None:
        world = StorageWorld(storage)
        event = EventEnd(EventStatus.PROCESSED, response_text="Done.", evidence={"checked": 1})
        await written(storage, [world.end_of(lease, event, nanos=5) for lease in leases], Ended)

    async def changed(work: Callable[[PostgresStorage], Awaitable[None]]) -> dict[str, float]:
        """Share of the rows that were changed in place, by table."""
        before, wal = await trio.to_thread.run_sync(counted, postgres_dsn)
        async with open_postgres_storage(postgres_dsn) as storage:
            await work(storage)
        after, wal_now = await trio.to_thread.run_sync(counted, postgres_dsn)
        moved = {name: (after[name][0] - before[name][0], after[name][1] - before[name][1]) for name in after}
        sys.stdout.write(f"{work.__name__}: {moved}, {(wal_now - wal) / AGENTS:.0f} bytes of WAL each\n")
        return {name: hot / rows for name, (rows, hot) in moved.items() if rows}

    await changed(found)

    assert await changed(claim) == {"events": 1.0}
    assert await changed(renew) == {"leases": 1.0}

    ended = await changed(end)

    assert ended.keys() == {"events", "leases"}
    assert min(ended.values()) >= IN_PLACE_OF_ENDS
