"""Nothing of a deleted agent is left behind, in whichever table it may be."""

from dataclasses import fields
from uuid import UUID

import asyncpg
import pytest
import trio

from sexton_storage.memory import MemoryStorage
from sexton_storage.memory.tables import Tables
from sexton_storage.portal import open_portal
from sexton_storage.postgres import PostgresStorage
from sexton_storage.postgres.stores.purge import FOLLOWING, HISTORY, KEPT, RECORD
from sexton_storage.records.events import EventStatus
from sexton_storage.records.improvement import ProposalStatus
from sexton_storage.writes import EventEnd, OpenGate
from tests.conformance.test_conformance_improvement import proposal_of, version_of
from tests.patience import PATIENCE_S
from tests.worlds.storage import StorageWorld, new_id

WITH_ZOMBIE = """
SELECT c.relname::text FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
 WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
   AND a.attname = 'zombie_id' ORDER BY 1
"""


async def fetch(dsn: str, query: str, *args: object) -> list[asyncpg.Record]:
    async def work() -> list[asyncpg.Record]:
        connection = await asyncpg.connect(dsn)
        try:
            rows: list[asyncpg.Record] = await connection.fetch(query, *args)
        finally:
            await connection.close()
        return rows

    async with open_portal() as portal:
        return await portal.run(work)


async def lived(world: StorageWorld) -> UUID:
    """An agent with a row wherever the suite can make one."""
    agent = await world.agent()
    event = await world.append(agent)
    lease = (await world.claim(agent)).lease
    await world.storage.journal.write(OpenGate(world.gate_of(event, lease), lease.fencing_token, ()))
    made = proposal_of(world, agent)
    assert made.status is ProposalStatus.PENDING
    await world.end(
        lease,
        EventEnd(EventStatus.PROCESSED),
        nanos=5,
        frames=(world.frame(agent),),
        proposals=(made,),
    )
    await world.storage.zombies.keep_config(version_of(world, agent, 2), None)
    for _ in range(2):
        await world.append(agent)
    await world.claim(agent)
    return agent.id


async def test_every_table_with_an_agents_id_is_purged_or_kept_by_decision(
    postgres_storage: PostgresStorage, postgres_dsn: str
) -> None:
    found = {row[0] for row in await fetch(postgres_dsn, WITH_ZOMBIE)}

    places = (HISTORY, RECORD, FOLLOWING, KEPT)

    assert found == {*HISTORY, *RECORD, *FOLLOWING, *KEPT}
    assert sum(map(len, places)) == len(found), "no table stands in two places"


async def test_a_purge_leaves_nothing_but_the_accounts(
    postgres_storage: PostgresStorage, postgres_dsn: str
) -> None:
    world = await StorageWorld(postgres_storage).found()
    other = await lived(world)
    zombie_id = await lived(world)
    before = await left(postgres_dsn, zombie_id)
    history = {"events", "leases", "gates", "frames", "proposals", "scores", "spend"}

    assert {*history, *FOLLOWING} <= before
    assert await postgres_storage.zombies.delete(zombie_id)
    assert await left(postgres_dsn, zombie_id) <= set(KEPT)
    assert await left(postgres_dsn, other) == before, "its neighbour keeps everything"


async def test_a_large_history_goes_in_portions_and_the_record_last(
    postgres_storage: PostgresStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sexton_storage.postgres.stores.purge.PORTION", 3)
    world = await StorageWorld(postgres_storage).found()
    agent = await world.agent()
    for _ in range(8):
        await world.append(agent)
    with trio.fail_after(PATIENCE_S):
        assert await postgres_storage.zombies.delete(agent.id)

    assert await postgres_storage.zombies.load(agent.id) is None
    assert list(await postgres_storage.events.list(world.workspace_id, limit=9)) == []
    assert not await postgres_storage.zombies.delete(new_id())


async def test_a_purge_in_memory_leaves_nothing_but_the_accounts(memory_storage: MemoryStorage) -> None:
    world = await StorageWorld(memory_storage).found()
    zombie_id = await lived(world)

    assert "events" in held(memory_storage.tables, zombie_id)
    assert await memory_storage.zombies.delete(zombie_id)
    assert held(memory_storage.tables, zombie_id) <= {"charges", "metering", "new_heads"}


def held(tables: Tables, zombie_id: UUID) -> set[str]:
    """The tables that name it anywhere."""
    every = {field.name: repr(getattr(tables, field.name)) for field in fields(tables)}
    return {name for name, rows in every.items() if repr(zombie_id) in rows}


async def left(dsn: str, zombie_id: UUID) -> set[str]:
    """The tables that have a row of it."""
    tables = [row[0] for row in await fetch(dsn, WITH_ZOMBIE)]
    found = set()
    for table in tables:
        if await fetch(dsn, f"SELECT 1 FROM {table} WHERE zombie_id = $1 LIMIT 1", zombie_id):
            found.add(table)
    return found
