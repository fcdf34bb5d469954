"""What operators ask about comes off an index, however long the queue and the history are."""

import asyncio
import os
from typing import Any
from uuid import UUID

import asyncpg
import orjson

from sexton_storage.postgres.stores import fleet as overview
from sexton_storage.postgres.stores.events import BACKLOG
from sexton_storage.records.fleet import LOOKED_AT

ROWS = int(os.environ.get("SEXTON_PLAN_ROWS", "30000"))
"""Events and leases, each; a million takes a minute or more."""
RUNNER = UUID(int=7)
_EVENTS = """
INSERT INTO events (id, zombie_id, workspace_id, tenant_id, actor, event_type, status, request_json,
                    created_at, updated_at)
SELECT gen_random_uuid(), gen_random_uuid(), $2, $2, 'webhook:x', 'push',
       CASE WHEN n % 10 = 0 THEN 'received' ELSE 'processed' END, '{}', n, n
  FROM generate_series(1, $1) n
"""
_LEASES = """
INSERT INTO leases (id, event_id, zombie_id, workspace_id, tenant_id, runner_id, fencing_token, attempt,
                    status, version, granted_at, expires_at, ceiling_at, metered_at, run_nanos_per_sec,
                    input_nanos_per_mtok, cached_input_nanos_per_mtok, output_nanos_per_mtok)
SELECT gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), $2, $2,
       CASE WHEN n % 1000 = 0 THEN $2 ELSE gen_random_uuid() END, 1, 1,
       CASE WHEN n % 100 = 0 THEN 'active' ELSE 'reported' END, 1, n, n, n, n, 1, 0, 0, 0
  FROM generate_series(1, $1) n
"""


async def nodes_of(connection: Any, query: str, *args: Any) -> list[dict[str, Any]]:
    """Every node of the plan."""
    explained = await connection.fetchval(f"EXPLAIN (FORMAT json) {query}", *args)
    todo, found = [orjson.loads(explained)[0]["Plan"]], []
    while todo:
        node = todo.pop()
        found.append(node)
        todo += node.get("Plans", ())
    return found


def indexes(nodes: list[dict[str, Any]]) -> set[str]:
    return {node["Index Name"] for node in nodes if "Index Name" in node}


def scanned(nodes: list[dict[str, Any]]) -> set[str]:
    """Tables that are read from one end to the other."""
    return {node["Relation Name"] for node in nodes if node["Node Type"] == "Seq Scan"}


def test_neither_census_nor_history_reads_a_whole_table(postgres_dsn: str) -> None:
    async def look() -> None:
        connection = await asyncpg.connect(postgres_dsn)
        try:
            await connection.execute(_EVENTS, ROWS, RUNNER)
            await connection.execute(_LEASES, ROWS, RUNNER)
            await connection.execute("VACUUM ANALYZE events, leases, waiting_events, live_leases")
            census = await nodes_of(connection, overview.COUNTS, 100_000, LOOKED_AT)
            assert "waiting_events_oldest" in indexes(census)
            assert scanned(census) & {"events", "leases", "gates"} == set()
            waiting = await nodes_of(connection, overview.WAITING, 100)
            assert "waiting_events_oldest" in indexes(waiting)
            assert scanned(waiting) & {"events", "waiting_events"} == set()
            newest = (overview.NEWEST.created_at, overview.NEWEST.id)
            history = await nodes_of(connection, overview.HISTORY, RUNNER, *newest, 50)
            assert {"leases_of_runner", "runner_changes_newest"} <= indexes(history)
            assert scanned(history) & {"leases", "runner_changes"} == set()
            assert "events" not in scanned(await nodes_of(connection, BACKLOG))
            live = await nodes_of(connection, overview.LIVE_LEASES, 50)
            assert scanned(live) <= {"live_leases"}, "which holds nothing else"
        finally:
            await connection.close()

    asyncio.run(look())
