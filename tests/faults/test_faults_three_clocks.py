"""Three servers whose clocks differ by minutes: messages are handled in the order in which they were sent."""

from pathlib import Path

import pytest
import trio

from tests.patience import PATIENCE_S
from tests.worlds.nodes import Node, open_nodes
from tests.worlds.wrong_clock import LIBRARY, wrong_by

SKEWS = ("+300s", "-300s", "+2s")
MESSAGES = 8


async def order_of_work(nodes: list[Node], runner: str, count: int) -> list[str]:
    """What the runner is given, one event after the other; each call goes to another node."""
    handled: list[str] = []
    with trio.fail_after(PATIENCE_S):
        while len(handled) < count:
            turn = len(handled)
            lease = await nodes[turn % len(nodes)].lease(runner)
            if lease is not None:
                handled.append(lease["event"]["event_id"])
                await nodes[(turn + 1) % len(nodes)].report(runner, lease)
    return handled


@pytest.mark.skipif(LIBRARY is None, reason="libfaketime is missing: install the package `faketime`")
async def test_messages_sent_in_turn_to_nodes_with_wrong_clocks_come_out_in_order(
    tmp_path: Path, postgres_dsn: str
) -> None:
    environments = [wrong_by(skew) for skew in SKEWS]
    async with open_nodes(tmp_path, postgres_dsn, environments=environments) as started:
        nodes = list(started)
        zombie_id = await nodes[0].install("watcher")
        runner = await nodes[0].enrol("runner")

        said = [await nodes[n % len(nodes)].say(zombie_id) for n in range(MESSAGES)]

        assert await order_of_work(nodes, runner, MESSAGES) == said
        assert [event["event_id"] for event in reversed(await nodes[1].history())] == said
