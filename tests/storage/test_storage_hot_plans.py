"""What the journal runs for every batch costs a batch's worth, whatever the planner believes of the tables.

A statement that compares each write with each live lease is as quick as any other in a test of three leases,
and takes a tenth of a second for five hundred.
"""

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any
from uuid import UUID

import msgspec
import orjson
import pytest

from sexton_storage.postgres.connections.dial import connect_lane
from sexton_storage.postgres.journal import claims, leases as lease_writes
from sexton_storage.postgres.sql.schema import LEASES
from sexton_storage.records.events import EventStatus
from sexton_storage.records.leases import Lease, LeaseStatus, Rates
from sexton_storage.records.metering import Slice
from sexton_storage.rules import BALANCE_EXHAUSTED, BALANCE_EXHAUSTED_CODE
from sexton_storage.writes import ClaimEvent, EndLease, EventEnd, RenewLease

WRITES = 256
ENDED = 20_000
TENANT = UUID(int=7)
_TENANT = """
INSERT INTO tenants (id, name, plan_tier, balance_nanos, created_at, updated_at)
VALUES ($1, 'hot', 'enterprise', 1000000000000, 0, 0)
"""
_LEASES = """
INSERT INTO leases (id, event_id, zombie_id, workspace_id, tenant_id, runner_id, fencing_token, attempt,
                    status, version, granted_at, expires_at, ceiling_at, metered_at, run_nanos_per_sec,
                    input_nanos_per_mtok, cached_input_nanos_per_mtok, output_nanos_per_mtok)
SELECT gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), $2, $2, $2, 1, 1, $3, 1, 1,
       sexton_now_ms() + 3600000, sexton_now_ms() + 3600000, sexton_now_ms(), 1, 0, 0, 0
  FROM generate_series(1, $1::int) n
"""

_WAITING = """
INSERT INTO workspaces (id, tenant_id, name, paused, created_at) VALUES ($2, $2, 'w', false, 1);
INSERT INTO agent_heads (zombie_id, workspace_id, tenant_id, status)
SELECT gen_random_uuid(), $2, $2, 'active' FROM generate_series(1, $1::int) n;
INSERT INTO events (id, zombie_id, workspace_id, tenant_id, actor, event_type, status, request_json,
                    created_at, updated_at)
SELECT gen_random_uuid(), zombie_id, $2, $2, 'steer:t', 'message', 'received', '{}', 1, 1 FROM agent_heads
"""


def renewal(lease: Lease) -> RenewLease:
    now = lease.metered_at + 1000
    renewed = msgspec.structs.replace(lease, version=lease.version + 1, metered_at=now, slice_seq=1)
    return RenewLease(renewed, Slice(1, 0, 0, 0, 1000, 1, 0), now)


def end(lease: Lease) -> EndLease:
    event = EventEnd(EventStatus.PROCESSED)
    return EndLease(lease.id, lease.version, LeaseStatus.REPORTED, lease.metered_at, None, event, ())


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for below in plan.get("Plans", ()):
        yield from nodes(below)


def compared_in_vain(plan: dict[str, Any]) -> int:
    """Pairs of rows that a join looked at and dropped."""
    return sum(
        int(node.get("Rows Removed by Join Filter", 0) * node.get("Actual Loops", 1)) for node in nodes(plan)
    )


async def leased(connection: Any, tables: str) -> list[Lease]:
    """Live leases in tables of that age."""
    await connection.execute(_TENANT, TENANT)
    if tables.startswith("old"):
        await connection.execute(_LEASES, ENDED, TENANT, "reported")
        await connection.execute("ANALYZE")
    await connection.execute(_LEASES, WRITES, TENANT, "active")
    if tables == "young and analysed":
        await connection.execute("ANALYZE")
    rows = await connection.fetch(f"SELECT {LEASES.columns()} FROM leases WHERE status = 'active'")
    return [LEASES.record(row) for row in rows]


async def explained(connection: Any, query: str, args: Sequence[Any]) -> dict[str, Any]:
    """The plan as it was carried out, of a statement that was prepared once.

    An EXPLAIN with parameters would know their values.
    """
    await connection.execute(f"PREPARE hot AS {query}")
    given = ", ".join(map(spelled, args))
    found = await connection.fetchval(f"EXPLAIN (ANALYZE, FORMAT json) EXECUTE hot ({given})")
    plan: dict[str, Any] = orjson.loads(found)[0]["Plan"]
    return plan


def spelled(argument: Any) -> str:
    """An argument as SQL has it."""
    match argument:
        case list():
            return f"'{{{','.join('NULL' if value is None else str(value) for value in argument)}}}'"
        case str():
            return f"'{argument}'"
        case _:
            return str(argument)


@pytest.mark.parametrize("tables", ["young", "young and analysed", "old and not analysed since"])
@pytest.mark.parametrize("batch", ["renewals", "renewals and ends"])
def test_no_write_of_a_batch_is_compared_with_every_live_lease(
    postgres_dsn: str, tables: str, batch: str
) -> None:
    async def look() -> dict[str, Any]:
        connection = await connect_lane(postgres_dsn)
        try:
            leases = await leased(connection, tables)
            writes: list[RenewLease | EndLease] = [renewal(lease) for lease in leases]
            if batch == "renewals and ends":
                writes[::2] = [end(lease) for lease in leases[::2]]
            query, *args = lease_writes._statement(list(enumerate(writes)))
            return await explained(connection, query, args)
        finally:
            await connection.close()

    plan = asyncio.run(look())

    assert plan["Actual Rows"] == WRITES
    assert compared_in_vain(plan) < WRITES


def test_no_claim_of_a_batch_is_compared_with_all_others(postgres_dsn: str) -> None:
    async def look() -> dict[str, Any]:
        connection = await connect_lane(postgres_dsn)
        try:
            await connection.execute(_TENANT, TENANT)
            for statement in _WAITING.split(";\n"):
                args = [value for mark, value in (("$1", WRITES), ("$2", TENANT)) if mark in statement]
                await connection.execute(statement.replace("$2", f"${len(args)}"), *args)
            agents = [row[0] for row in await connection.fetch("SELECT zombie_id FROM agent_heads")]
            writes = [
                ClaimEvent(agent, UUID(int=number), TENANT, 10, 30_000, 3_600_000, Rates(1), None, None)
                for number, agent in enumerate(agents)
            ]
            columns = claims._COLUMNS.arrays(writes)
            return await explained(
                connection, claims._CLAIM, (BALANCE_EXHAUSTED, BALANCE_EXHAUSTED_CODE, *columns)
            )
        finally:
            await connection.close()

    plan = asyncio.run(look())

    assert plan["Actual Rows"] == WRITES
    assert compared_in_vain(plan) < 2 * WRITES
