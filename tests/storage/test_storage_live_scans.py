"""The looks that each node takes twice a second read what is due or ready, however many leases are live."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import orjson
import pytest
import trio

from sexton_storage.embedded.roles import as_superuser
from sexton_storage.postgres import open_postgres_storage
from sexton_storage.postgres.stores import events as event_reads, leases as lease_reads
from sexton_storage.writes import Renewed
from tests.worlds.storage import StorageWorld

FEW, MANY = 100, 20_000
PAGES_MORE = 6
"""That a look may read among many: an index that is one level deeper, and a page or two beside each level."""
_LIVE = """
INSERT INTO leases (id, event_id, zombie_id, workspace_id, tenant_id, runner_id, fencing_token, attempt,
                    status, version, granted_at, expires_at, ceiling_at, metered_at, run_nanos_per_sec,
                    input_nanos_per_mtok, cached_input_nanos_per_mtok, output_nanos_per_mtok)
SELECT gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), $2, $2, gen_random_uuid(), 1, 1, 'active', 1,
       sexton_now_ms(), sexton_now_ms() + 3600000, sexton_now_ms() + 3600000, sexton_now_ms(), 1, 0, 0, 0
  FROM generate_series(1, $1::int) n
"""
_LOOKS = {
    "leases that are over": (lease_reads.LOOK, (5_000,)),
    "agents that are ready": (event_reads.READY_PAGE, ("00000000-0000-0000-0000-000000000000", 1_000)),
}


def nodes(plan: dict[str, Any]) -> list[dict[str, Any]]:
    return [plan, *(node for below in plan.get("Plans", ()) for node in nodes(below))]


@asynccontextmanager
async def connected(dsn: str) -> AsyncIterator[Any]:
    connection = await asyncpg.connect(dsn)
    try:
        yield connection
    finally:
        await connection.close()


async def pages_read(connection: Any, look: str) -> int:
    query, args = _LOOKS[look]
    explained = await connection.fetchval(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT json) {query}", *args)
    [found] = orjson.loads(explained)
    assert [node for node in nodes(found["Plan"]) if node["Node Type"] == "Seq Scan"] == []
    return int(found["Plan"]["Shared Hit Blocks"] + found["Plan"]["Shared Read Blocks"])


@pytest.mark.parametrize("look", _LOOKS)
def test_a_look_reads_as_many_pages_among_many_live_leases_as_among_few(postgres_dsn: str, look: str) -> None:
    async def measure() -> tuple[int, int]:
        async with connected(as_superuser(postgres_dsn)) as connection:
            await connection.execute("SET enable_seqscan = off")  # As the pool's sessions have it.
            workspace = await connection.fetchval("SELECT gen_random_uuid()")
            read = []
            for count in (FEW, MANY - FEW):
                await connection.execute(_LIVE, count, workspace)
                await connection.execute("VACUUM ANALYZE")
                read.append(await pages_read(connection, look))
            return read[0], read[1]

    few, many = asyncio.run(measure())

    assert many <= few + PAGES_MORE


async def test_a_lease_that_was_renewed_is_looked_at_once_a_term_and_found_when_it_is_over(
    postgres_dsn: str,
) -> None:
    async def tell(sql: str) -> Any:
        async def work() -> Any:
            async with connected(postgres_dsn) as connection:
                return await connection.fetchval(sql)

        return await trio.to_thread.run_sync(lambda: asyncio.run(work()))

    due = "SELECT count(*) FROM live_leases WHERE look_at <= sexton_now_ms()"
    async with open_postgres_storage(postgres_dsn) as storage:
        world = await StorageWorld(storage).found()
        lease = await world.lease(term_ms=1)
        short = await world.lease(term_ms=1)
        await tell("SELECT pg_sleep(0.01)")
        # As a renewal in the last moment would have left it.
        await tell(
            f"UPDATE leases SET expires_at = sexton_now_ms() + 60000 WHERE id = '{lease.id}' RETURNING 1"
        )
        assert await tell(due) == 2
        assert await storage.leases.expired(limit=10) == [short.id]
        assert await tell(due) == 1, "the renewed one is put off, the other one stays due"
        assert await storage.leases.expired(limit=1) == [short.id]

        kept = await storage.leases.load(lease.id)
        assert kept is not None
        assert isinstance(await storage.journal.write(world.renewal(kept)), Renewed)

        await tell(f"UPDATE live_leases SET look_at = 0 WHERE lease_id = '{lease.id}' RETURNING 1")

        assert await storage.leases.expired(limit=1) == [short.id], (
            "a page that is full hides nobody for long"
        )
        assert await tell(due) == 1
