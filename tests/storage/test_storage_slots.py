"""Nodes that claim for one runner at the same moment do not give it more leases than it has slots."""

import trio

from sexton_storage.postgres import open_postgres_storage
from sexton_storage.refusals import NO_SLOT
from sexton_storage.writes import Claimed, NothingToClaim
from tests.worlds.storage import StorageWorld

SLOTS = 3
AGENTS = 24


async def test_three_nodes_together_fill_a_runner_and_no_more(postgres_dsn: str) -> None:
    async with (
        open_postgres_storage(postgres_dsn) as first,
        open_postgres_storage(postgres_dsn) as second,
        open_postgres_storage(postgres_dsn) as third,
    ):
        nodes = (first, second, third)
        world = await StorageWorld(first).found()
        runner = world.runner_record(slots=SLOTS)
        assert await first.runners.enrol(runner, enrolment_hash=None)

        agents = [await world.agent() for _ in range(AGENTS)]
        for agent in agents:
            await world.append(agent)
        answers: list[object] = []

        async def claim(number: int) -> None:
            write = world.claim_of(agents[number], runner_id=runner.id)
            answers.append(await nodes[number % len(nodes)].journal.write(write))

        async with trio.open_nursery() as nursery:
            for number in range(AGENTS):
                nursery.start_soon(claim, number)
        granted = [answer for answer in answers if isinstance(answer, Claimed)]
        refused = [answer for answer in answers if isinstance(answer, NothingToClaim)]
        assert 1 <= len(granted) <= SLOTS
        assert len(granted) + len(refused) == AGENTS
        assert {answer.reason for answer in refused} <= NO_SLOT
        assert await first.leases.count_live_by_runner([runner.id]) == {runner.id: len(granted)}
