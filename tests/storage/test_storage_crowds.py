"""How the journal shares a crowd's writes among its batches."""

import pytest
import trio

from sexton_storage.postgres import PostgresStorage, open_postgres_storage
from sexton_storage.postgres.journal import selection
from sexton_storage.records.zombies import Zombie
from tests.worlds.storage import StorageWorld

CROWD = 64
ROUNDS = 12
HANGS_S = 60


@pytest.mark.parametrize(("work_s", "least", "most"), [(1.0, 20, 44), (0.0, 45, CROWD)])
async def test_a_crowd_commits_in_two_halves_where_its_work_takes_longer_than_a_commit(
    postgres_dsn: str, monkeypatch: pytest.MonkeyPatch, work_s: float, least: int, most: int
) -> None:
    async with open_postgres_storage(postgres_dsn) as storage:
        world = await StorageWorld(storage).found()
        agents = [await world.agent() for _ in range(CROWD)]
        monkeypatch.setattr(selection, "WORK_S", work_s)
        await _write_at_once(storage, world, agents)

        size = await _write_at_once(storage, world, agents)

    assert least <= size <= most


async def _write_at_once(storage: PostgresStorage, world: StorageWorld, agents: list[Zombie]) -> float:
    """How large batches were in which all agents got an event at once, again and again."""

    async def write(agent: Zombie) -> None:
        for _ in range(ROUNDS):
            await world.append(agent)

    before = storage.journal.statistics().hot
    with trio.fail_after(HANGS_S):
        async with trio.open_nursery() as nursery:
            for agent in agents:
                nursery.start_soon(write, agent)
    after = storage.journal.statistics().hot
    return (after.writes - before.writes) / (after.batches - before.batches)
