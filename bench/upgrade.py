"""Brings a database of the first schema, full of events, to this release's, while clients read and write it.

The load is what an old server would do with the columns that it knows: clients append an event and read one,
each in a transaction of its own, one after the other. It reports how long each step took, how often a client
was refused, by SQLSTATE, and the longest time in which no client was served. Steps 0001 to 0056 were not made
for that: what a client of the first schema is refused after one of them is counted, and fails no run.
"""

import asyncio
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

import asyncpg
import trio

sys.path.insert(0, str(Path(__file__).parents[1]))  # so that the file also runs by itself

from bench.database import open_database
from bench.harness import Figure, line, once, report, size, tell
from sexton_storage.postgres.connections.bounds import MIGRATION_SESSION
from sexton_storage.postgres.connections.dial import connect
from sexton_storage.postgres.migrate import migrate
from sexton_storage.postgres.schema.steps import shipped_migrations

EVENTS = size("UPGRADE_EVENTS", 1_000_000)
CLIENTS = size("UPGRADE_CLIENTS", 4)
_FILL = """
INSERT INTO events (id, zombie_id, workspace_id, tenant_id, actor, event_type, status, request_json,
                    created_at, updated_at)
SELECT gen_random_uuid(), md5('a' || n % 1000)::uuid, md5('w' || n % 10)::uuid, md5('t' || n % 3)::uuid,
       'steer:user', 'message', CASE WHEN n % 1000 = 0 THEN 'received' ELSE 'processed' END,
       '{"message": "hello"}', n, n
  FROM generate_series(1, $1::bigint) n
"""
_APPEND = """
INSERT INTO events (id, zombie_id, workspace_id, tenant_id, actor, event_type, status, request_json,
                    created_at, updated_at)
VALUES (gen_random_uuid(), md5('a1')::uuid, md5('w1')::uuid, md5('t1')::uuid, 'steer:user', 'message',
        'received', '{}', 1, 1)
"""
_READ = "SELECT status FROM events WHERE zombie_id = md5('a7')::uuid LIMIT 1"
_COUNT = "SELECT count(*) FROM events"


@dataclass(slots=True)
class Load:
    """What the clients met."""

    served: int = 0
    appended: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    longest_gap_s: float = 0.0
    slowest_s: float = 0.0
    _last: float = field(default_factory=perf_counter)

    def tell(self, took_s: float) -> None:
        now = perf_counter()
        self.longest_gap_s = max(self.longest_gap_s, now - self._last)
        self.slowest_s = max(self.slowest_s, took_s)
        self._last = now
        self.served += 1


async def _client(dsn: str, load: Load) -> None:
    connection: Any = await asyncpg.connect(dsn, statement_cache_size=0)
    try:
        while True:
            for statement in (_APPEND, _READ):
                began = perf_counter()
                try:
                    await connection.execute(statement)
                except asyncpg.PostgresError as error:
                    load.refused[str(error.sqlstate)] += 1
                    await asyncio.sleep(0.01)
                else:
                    load.appended += statement is _APPEND
                    load.tell(perf_counter() - began)
    finally:
        connection.terminate()


async def _upgrade(dsn: str) -> tuple[Load, dict[str, float]]:
    steps = shipped_migrations()
    connection = await connect(dsn, MIGRATION_SESSION)
    took: dict[str, float] = {}
    await migrate(connection, steps[:1])
    tell(f"filling {EVENTS:,} events")
    await connection.execute("SET synchronous_commit = off")
    await connection.fetchval(_FILL, EVENTS)
    await connection.execute("RESET synchronous_commit; ANALYZE")
    load = Load()
    clients = [asyncio.create_task(_client(dsn, load)) for _ in range(CLIENTS)]
    for known in range(2, len(steps) + 1):
        began = perf_counter()
        await migrate(connection, steps[:known])
        took[steps[known - 1].name] = perf_counter() - began
        broken = [client for client in clients if client.done()]
        assert not broken, f"a client ended: {broken}"
    for client in clients:
        client.cancel()
    await asyncio.gather(*clients, return_exceptions=True)
    kept = await connection.fetchval(_COUNT)
    # A client that was cut off may have committed without hearing of it.
    assert 0 <= kept - EVENTS - load.appended <= CLIENTS, f"{kept} events, {load.appended} were appended"
    await connection.close()
    return load, took


async def main() -> None:
    async with open_database() as database:
        load, took = await trio.to_thread.run_sync(lambda: asyncio.run(_upgrade(database.dsn)))
    for name, seconds in sorted(took.items(), key=lambda one: -one[1])[:8]:
        tell(f"{seconds:8.2f} s  {name}")
    tell(f"refused, by SQLSTATE: {dict(load.refused)}")
    figures = [
        Figure(f"all steps, with {EVENTS:,} events of the first schema", once(sum(took.values())), "s"),
        Figure("longest step", once(max(took.values())), "s"),
        Figure("longest time in which no client was served", once(load.longest_gap_s), "s"),
        Figure("slowest statement of a client", once(load.slowest_s), "s"),
        Figure("statements served meanwhile", once(load.served), ""),
        Figure("statements refused meanwhile", once(load.refused.total()), ""),
    ]
    print(line(report("upgrade", database.about, figures)))


if __name__ == "__main__":
    trio.run(main)
