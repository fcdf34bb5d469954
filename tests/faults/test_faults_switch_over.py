"""A primary is demoted and stays up: the server leaves it for the new one, with 503 until there is one."""

import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

from tests.patience import PATIENCE_S
from tests.worlds.database_pair import open_pair
from tests.worlds.nodes import Node, open_nodes

OK, ACCEPTED, AWAY = 200, 202, 503
PARTS = 3
"""Of a node that have connections of their own: the pool, the lanes, the signals."""
BEFORE, AFTER = 5, 20


@pytest.fixture
def folder() -> Iterator[Path]:
    """Short enough for a socket's path."""
    with tempfile.TemporaryDirectory(prefix="sx") as folder:
        yield Path(folder)


AWAY_CODES = ("UZ-INTERNAL-001", "UZ-ENTL-001")
"""The database is away, as it is told where the event or where the tenant's plan could not be read."""


class Caller:
    """Sends one message after the other, and looks whether the server is ready, until it is told to stop."""

    def __init__(self, node: Node, agent: str) -> None:
        self._node = node
        self._path = f"{node.workspace}/zombies/{agent}/messages"
        self.accepted: list[str] = []
        self.statuses: Counter[int] = Counter()
        self.readiness: Counter[int] = Counter()
        self.longest_s = 0.0
        self.stop = False

    async def send(self) -> None:
        last = time.monotonic()
        while not self.stop:
            answer = await self._node.post(self._path, {"message": "go on"}, "api_key")
            self.statuses[answer.status_code] += 1
            if answer.status_code == ACCEPTED:
                self.accepted.append(answer.json()["event_id"])
                self.longest_s = max(self.longest_s, time.monotonic() - last)
                last = time.monotonic()
            else:
                assert (answer.status_code, answer.json()["error_code"] in AWAY_CODES) == (AWAY, True)
                assert int(answer.headers["retry-after"]) > 0

    async def probe(self) -> None:
        while not self.stop:
            self.readiness[(await self._node.get("/readyz")).status_code] += 1

    async def until_accepted(self, count: int) -> None:
        goal = len(self.accepted) + count
        while len(self.accepted) < goal:
            await trio.sleep(0.01)


async def test_a_demoted_primary_that_stays_up_is_left_for_the_new_one(tmp_path: Path, folder: Path) -> None:
    async with open_pair(folder) as pair, open_nodes(tmp_path, pair.dsn, environments=({},)) as [node]:
        caller = Caller(node, await node.install("watcher"))
        with trio.fail_after(PATIENCE_S):
            async with trio.open_nursery() as nursery:
                for call in (caller.send, caller.send, *[caller.probe] * 8):
                    nursery.start_soon(call)
                await caller.until_accepted(BEFORE)
                await pair.demote()
                # No database takes writes now.
                while not (caller.statuses[AWAY] and caller.readiness[AWAY]):
                    await trio.sleep(0.01)
                await pair.promote()
                promoted = time.monotonic()
                await caller.until_accepted(AFTER)
                back_s = time.monotonic() - promoted
                caller.stop = True

        kept = {event["event_id"] for event in await node.history()}
        assert set(caller.accepted) <= kept
        assert set(caller.statuses) == {ACCEPTED, AWAY}
        assert set(caller.readiness) == {OK, AWAY}

        log = (node.server.folder / "server.log").read_text()
        gone, back = log.count("the database went away"), log.count("the database is back")
        # Whoever had nothing to ask of the old server notices later, and says so once: never a line a try.
        assert 1 <= gone <= PARTS
        assert back == gone
        assert "Traceback" not in log

        sys.stdout.write(
            f"messages {dict(caller.statuses)}, longest gap {caller.longest_s:.1f} s, of these {AFTER} more"
            f" within {back_s:.1f} s of the promotion; /readyz {dict(caller.readiness)}\n"
        )
