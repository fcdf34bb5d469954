"""A flood that wakes a quiet server is worked off row by row: nobody reads a whole queue to find one agent.

A database takes its statistics when it has the time. On a quiet server nothing waits then and nothing runs,
so an index of what waits, or of what runs, looks empty: to read all of it seems as cheap as to look one agent
up, and still seems so when ten thousand events have come.
"""

import asyncio
from collections.abc import Awaitable, Callable
from uuid import UUID

import asyncpg
import pytest
import trio

from sexton_storage.embedded.roles import as_superuser
from sexton_storage.postgres import PostgresStorage, open_postgres_storage
from sexton_storage.records.events import EventStatus
from sexton_storage.records.frames import NewFrame
from sexton_storage.records.gates import Gate, GateStatus
from sexton_storage.records.leases import LeaseStatus, Rates
from sexton_storage.writes import (
    AppendFrames,
    Claimed,
    ClaimEvent,
    Ended,
    EndLease,
    EventEnd,
    FramesAppended,
    GateOpened,
    OpenGate,
    Write,
)

AGENTS = 64
"""That have something to do."""
EACH = 100
"""Events of each that wait."""
RUNS = 6_400
"""Of other agents, under way."""
RUNNERS = 64
DONE = 20_000
"""Events and leases that are over: all there was when the statistics were taken."""
TENANT = UUID(int=7)
IN_VAIN = 150
"""Rows and index entries that each piece of work may read, of all tables together. A queue has thousands."""

_TENANT = """
INSERT INTO tenants (id, name, plan_tier, balance_nanos, created_at, updated_at)
VALUES ($1, 't', 'enterprise', 1000000000000, 1, 1)
"""
_WORKSPACE = "INSERT INTO workspaces (id, tenant_id, name, paused, created_at) VALUES ($1, $1, 'w', false, 1)"
_AGENTS = """
INSERT INTO zombies (id, workspace_id, tenant_id, name, status, version, config_version_id, config_revision,
                     required_tags, approval_token_hash, url_secret_hashes, created_at, updated_at,
                     allows_unsandboxed)
SELECT sexton_test_id('a', n), $2, $2, 'agent ' || n, 'active', 1, $2, 1, '{}', '', '{}', 1, 1, false
  FROM generate_series(1, $1::int) n
"""
_HEADS = """
INSERT INTO agent_heads (zombie_id, workspace_id, tenant_id, status, fence, live_lease_id)
SELECT sexton_test_id('a', n), $3, $3, 'active', 1, CASE WHEN n > $2 THEN sexton_test_id('c', n) END
  FROM generate_series(1, $1::int) n
"""
_EVENTS = """
INSERT INTO events (id, zombie_id, workspace_id, tenant_id, actor, event_type, status, request_json,
                    created_at, updated_at)
SELECT sexton_test_id('e', n), sexton_test_id('a', 1 + n % $4::int), $2, $2, 'steer:t', 'message', $3, '{}',
       n, n
  FROM generate_series($5::int, $5::int + $1::int - 1) n
"""
_LEASES = """
INSERT INTO leases (id, event_id, zombie_id, workspace_id, tenant_id, runner_id, fencing_token, attempt,
                    status, version, granted_at, expires_at, ceiling_at, metered_at, run_nanos_per_sec,
                    input_nanos_per_mtok, cached_input_nanos_per_mtok, output_nanos_per_mtok)
SELECT sexton_test_id('c', n), sexton_test_id('e', n), sexton_test_id('a', n), $2, $2,
       sexton_test_id('b', n % $4::int), 1, 1, $3, 1, 1, sexton_now_ms() + 3600000, sexton_now_ms() + 3600000,
       sexton_now_ms(), 1, 0, 0, 0
  FROM generate_series($5::int, $5::int + $1::int - 1) n
"""
_ID = """
CREATE FUNCTION sexton_test_id(kind text, n bigint) RETURNS uuid LANGUAGE sql IMMUTABLE
RETURN (kind || '0000000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid
"""
_OTHERS = """
SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
"""
_READ = """
SELECT relname || '.' || indexrelname, idx_tup_read FROM pg_stat_user_indexes
UNION ALL SELECT relname, seq_tup_read FROM pg_stat_user_tables
"""


def identity(kind: str, number: int) -> UUID:
    return UUID(f"{kind}0000000-0000-7000-8000-{number:012x}")


@pytest.fixture(scope="module")
def flooded(module_dsn: str) -> str:
    """The address of a database in a flood, of which each piece of work finds its own part untouched."""
    asyncio.run(flood(module_dsn))
    return module_dsn


async def flood(dsn: str) -> None:
    """A server that had nothing to do when it was analysed, and has now."""
    connection = await asyncpg.connect(as_superuser(dsn))
    everybody = AGENTS + RUNS
    try:
        await connection.execute("SET session_replication_role = replica")  # No parents are asked for.
        await connection.execute(_ID)
        await connection.execute(_TENANT, TENANT)
        await connection.execute(_WORKSPACE, TENANT)
        await connection.execute(_AGENTS, everybody, TENANT)
        await connection.execute(_HEADS, everybody, AGENTS, TENANT)
        await connection.execute(_EVENTS, DONE, TENANT, "processed", AGENTS, 1_000_000)
        await connection.execute(_LEASES, DONE, TENANT, "reported", RUNNERS, 1_000_000)
        await connection.execute("VACUUM ANALYZE")
        await connection.execute(_EVENTS, RUNS, TENANT, "running", everybody, AGENTS + 1)
        await connection.execute(_LEASES, RUNS, TENANT, "active", RUNNERS, AGENTS + 1)
        await connection.execute(_EVENTS, AGENTS * EACH, TENANT, "received", AGENTS, 2_000_000)
    finally:
        await connection.close()


async def read_so_far(dsn: str) -> dict[str, int]:
    """Rows and index entries that were read; what a connection has read is known when it has ended."""
    connection = await asyncpg.connect(dsn)
    try:
        while await connection.fetchval(_OTHERS):
            await asyncio.sleep(0.01)
        return {name: read or 0 for name, read in await connection.fetch(_READ)}
    finally:
        await connection.close()


# --- pieces of work -----------------------------------------------------------------------------------------

Work = Callable[[PostgresStorage], Awaitable[int]]
"""Does some work; answers how many pieces."""


async def write_all(storage: PostgresStorage, writes: list[Write[object]], kind: type) -> int:
    """In few batches, as a crowd does."""
    answers: list[object] = []

    async def write(one: Write[object]) -> None:
        answers.append(await storage.journal.write(one))

    async with trio.open_nursery() as nursery:
        for one in writes:
            nursery.start_soon(write, one)
    assert {type(answer) for answer in answers} == {kind}
    return len(answers)


async def claims(storage: PostgresStorage) -> int:
    writes = [
        ClaimEvent(
            identity("a", n), identity("d", n), identity("b", n), 10, 30_000, 3_600_000, Rates(1), None, None
        )
        for n in range(1, AGENTS + 1)
    ]
    return await write_all(storage, [*writes], Claimed)


async def frames(storage: PostgresStorage) -> int:
    writes = [
        AppendFrames(identity("a", n), (NewFrame(identity("a", n), None, "log", 1, {}),), identity("c", n), 1)
        for n in range(AGENTS + 1, 2 * AGENTS + 1)
    ]
    return await write_all(storage, [*writes], FramesAppended)


async def gates(storage: PostgresStorage) -> int:
    writes = [
        OpenGate(
            Gate(
                identity("f", n),
                identity("a", n),
                TENANT,
                TENANT,
                identity("e", n),
                identity("c", n),
                "act",
                GateStatus.PENDING,
                1,
                2,
            ),
            1,
            (),
        )
        for n in range(AGENTS + 1, 2 * AGENTS + 1)
    ]
    return await write_all(storage, [*writes], GateOpened)


async def ends(storage: PostgresStorage) -> int:
    end = EventEnd(EventStatus.PROCESSED)
    writes = [
        EndLease(identity("c", n), 1, LeaseStatus.REPORTED, 10, None, end, ())
        for n in range(AGENTS + 1, 2 * AGENTS + 1)
    ]
    return await write_all(storage, [*writes], Ended)


async def agents_that_are_ready(storage: PostgresStorage) -> int:
    return len(await storage.events.ready(after=None, limit=1000))


async def one_agent_that_is_ready(storage: PostgresStorage) -> int:
    for n in range(1, AGENTS + 1):
        assert await storage.events.ready_agent(identity("a", n)) is not None
    return AGENTS


async def what_runners_hold(storage: PostgresStorage) -> int:
    found = [await storage.leases.live_of_runner(identity("b", n)) for n in range(RUNNERS)]
    return sum(map(len, found))


async def how_much_runners_hold(storage: PostgresStorage) -> int:
    runners = [identity("b", n) for n in range(RUNNERS)]
    return sum((await storage.leases.count_live_by_runner(runners)).values())


async def what_agents_hold(storage: PostgresStorage) -> int:
    for n in range(AGENTS + 1, 2 * AGENTS + 1):
        assert await storage.leases.live_of_zombie(identity("a", n)) is not None
    return AGENTS


@pytest.mark.parametrize(
    "work",
    [
        # In this order, for all share the flood: first those that change nothing.
        agents_that_are_ready,
        one_agent_that_is_ready,
        what_runners_hold,
        how_much_runners_hold,
        what_agents_hold,
        frames,
        gates,
        ends,
        claims,
    ],
)
async def test_in_a_flood_each_piece_of_work_reads_its_own_rows(flooded: str, work: Work) -> None:
    before = await trio.to_thread.run_sync(lambda: asyncio.run(read_so_far(flooded)))
    async with open_postgres_storage(flooded) as storage:
        pieces = await work(storage)
    after = await trio.to_thread.run_sync(lambda: asyncio.run(read_so_far(flooded)))
    read = {name: count - before.get(name, 0) for name, count in after.items()}
    worst = sorted(read.items(), key=lambda item: -item[1])[:3]

    assert pieces >= AGENTS
    assert sum(read.values()) // pieces <= IN_VAIN, worst
