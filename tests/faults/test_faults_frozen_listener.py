"""The connections by which two servers tell one another of their work stand still: their looks are left."""

import os
from collections.abc import Sequence
from pathlib import Path
from signal import SIGCONT, SIGSTOP

import asyncpg
import pytest
import trio

from tests.storage.test_storage_retention import by_hand
from tests.thorough import THOROUGH
from tests.worlds.nodes import Node, open_nodes

WITHIN_S = 120
LISTENERS = (
    "SELECT pid FROM pg_stat_activity"
    " WHERE datname = current_database() AND application_name = 'sexton signals'"
)
LOST = "sexton_node_signal_connections_lost_total"


@pytest.mark.skipif(not THOROUGH, reason="in make test-thorough: two servers, and what they take to notice")
async def test_while_no_server_hears_the_others_work_is_found_by_looks_until_they_hear_again(
    tmp_path: Path, postgres_dsn: str
) -> None:
    async with open_nodes(tmp_path, postgres_dsn) as nodes:
        first, second = nodes
        zombie_id, runner = await first.install("watcher"), await first.enrol("runner")
        await until_heard(nodes)
        pids = await trio.to_thread.run_sync(lambda: by_hand(postgres_dsn, processes))
        for pid in pids:
            os.kill(pid, SIGSTOP)
        try:
            event_id = await first.say(zombie_id)
            lease = None
            with trio.fail_after(WITHIN_S):
                while lease is None:
                    lease = await second.lease(runner)
            with trio.fail_after(WITHIN_S):
                while 0 in [await node.metric(LOST) for node in nodes]:
                    await trio.sleep(0.1)
            await until_heard(nodes)
        finally:
            for pid in pids:
                os.kill(pid, SIGCONT)
        ready = [(await node.get("/readyz")).status_code for node in nodes]

    assert len(pids) == len(nodes)
    assert lease["event"]["event_id"] == event_id
    assert ready == [200, 200]


async def processes(connection: asyncpg.Connection) -> list[int]:
    return [row["pid"] for row in await connection.fetch(LISTENERS)]


async def until_heard(nodes: Sequence[Node]) -> None:
    with trio.fail_after(WITHIN_S):
        while [await node.metric("sexton_nodes_heard") for node in nodes] != [1.0, 1.0]:
            await trio.sleep(0.1)
