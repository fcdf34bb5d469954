"""A node that stops in the middle of a transaction, or is cut off there: all others go on."""

import asyncio
import signal
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import asyncpg
import httpx2
import pytest
import trio

from sexton_http.identity.tokens import TokenKind, digest, mint
from sexton_storage.portal import open_portal
from sexton_storage.postgres import PostgresStorage, open_postgres_storage
from sexton_storage.records.api_keys import ApiKey
from sexton_storage.records.users import Role
from tests.fakes.database_proxy import Proxy, open_proxy
from tests.patience import PATIENCE_S
from tests.worlds.nodes import Node, open_nodes
from tests.worlds.storage import StorageWorld, new_id

OTHERS = 4
FROZEN = """
SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state = 'idle in transaction'
   AND query LIKE '%sexton_lock%'
"""
LOOKS = 50
"""How often the database is asked for the session that froze, until the node is thawed and tried again."""
P99_S = 2.0
HELD_S = 1.0
PAUSE_S = 0.1
"""Between two messages of a tenant: their plan has a rate."""


@pytest.fixture
def socket_folder() -> Iterator[Path]:
    """Short enough for a socket's path."""
    with tempfile.TemporaryDirectory(prefix="sx") as folder:
        yield Path(folder)


async def other_tenant(storage: PostgresStorage, node: Node) -> Node:
    """The node as a tenant of its own sees it, whom the frozen node has nothing to do with."""
    world = await StorageWorld(storage).found()
    token = mint(TokenKind.API_KEY, lambda size: new_id().hex[:size].ljust(size, "0"))
    at = world.now
    key = ApiKey(new_id(), world.tenant_id, "test", "", Role.ADMIN, digest(token), at)
    await storage.api_keys.create(key)
    return node.seen_by(f"/v1/workspaces/{world.workspace_id}", token)


class Freezer:
    """Freezes a node when its next batch about an agent is about to take its locks."""

    def __init__(self, proxy: Proxy, node: Node, how: str, agent: str) -> None:
        self._proxy = proxy
        self._node = node
        self._how = how
        self.is_frozen = False
        proxy.batch_of = agent.encode()

    def arm(self) -> None:
        """Let the node go on, until its next batch about the agent."""
        self.thaw()
        self.is_frozen = False
        self._proxy.on_batch = self._freeze

    def thaw(self) -> None:
        self._proxy.on_batch = None
        self._proxy.let_go()
        self._node.server.send(signal.SIGCONT)

    def _freeze(self) -> None:
        self.is_frozen = True
        if self._how == "stopped":
            self._node.server.send(signal.SIGSTOP)
        else:
            self._proxy.hold()


@asynccontextmanager
async def freezing(proxy: Proxy, node: Node, how: str, agent: str) -> AsyncIterator[Freezer]:
    """Freeze the node when its next batch about the agent is about to take its locks."""
    freezer = Freezer(proxy, node, how, agent)
    freezer.arm()
    try:
        yield freezer
    finally:
        freezer.thaw()


async def holds_rows(dsn: str) -> bool:
    """Whether a session idles in a batch's transaction. One that met a lock has failed, and holds nothing."""
    connection = await asyncpg.connect(dsn)
    try:
        for _ in range(LOOKS):
            if await connection.fetchval(FROZEN):
                return True
            await asyncio.sleep(0.01)
        return False
    finally:
        await connection.close()


async def claim_and_tell(freezer: Freezer, node: Node, runner: str, accepted: Sequence[float]) -> None:
    """Let a runner lease its event from the node, and tell of its work. A call may be answered long after."""
    lease: Any = None
    while not accepted:
        with suppress(httpx2.HTTPError):
            if lease is None:
                answer = await node.post("/v1/runners/me/leases", {"wait_ms": 5_000, "max": 1}, runner)
                lease = answer.json()["lease"] if answer.status_code == 200 else None
            elif not freezer.is_frozen:
                frames = [{"kind": "chunk", "text": "at work"}]
                body = {"fencing_token": lease["fencing_token"], "frames": frames}
                await node.post(f"/v1/runners/me/leases/{lease['lease_id']}/activity", body, runner)
        await trio.sleep(PAUSE_S)


@pytest.mark.parametrize("how", ["stopped", "cut off"])
async def test_a_node_that_freezes_in_a_transaction_holds_up_nobody_else(
    tmp_path: Path, socket_folder: Path, postgres_dsn: str, how: str
) -> None:
    async with (
        open_proxy(postgres_dsn, socket_folder) as proxy,
        open_nodes(tmp_path, (proxy.dsn, postgres_dsn)) as (first, second),
        open_postgres_storage(postgres_dsn, migrates=False) as storage,
        open_portal() as portal,
    ):
        others = [await other_tenant(storage, second) for _ in range(OTHERS)]
        agents = [await other.install("watcher") for other in others]
        runner = await second.enrol("of-others")
        for other, agent in zip(others, agents, strict=True):
            await other.say(agent)
        leases = [await second.lease(runner) for _ in others]
        mine = await first.install("mine")
        await first.say(mine)
        took: list[float] = []
        states: set[str] = set()
        accepted: list[float] = []
        began = time.monotonic()

        async def go_on(number: int) -> None:
            while not accepted:
                asked = time.monotonic()
                await others[number].say(agents[number])
                took.append(time.monotonic() - asked)
                asked = time.monotonic()
                lease = leases[number]
                assert lease is not None
                states.add((await second.renew(runner, lease))["state"])
                took.append(time.monotonic() - asked)
                await trio.sleep(PAUSE_S)

        other_runner = await first.enrol("mine")
        with trio.fail_after(PATIENCE_S):
            async with trio.open_nursery() as nursery, freezing(proxy, first, how, mine) as freezer:
                nursery.start_soon(claim_and_tell, freezer, first, other_runner, accepted)
                while not (freezer.is_frozen and await portal.run(lambda: holds_rows(postgres_dsn))):
                    if freezer.is_frozen:
                        freezer.arm()
                    await trio.sleep(0.01)
                began = time.monotonic()
                for number in range(OTHERS):
                    nursery.start_soon(go_on, number)
                # The frozen node's own tenant waits until the database ends its session, and no longer.
                await second.say(mine)
                accepted.append(time.monotonic() - began)

        took.sort()
        p99 = took[len(took) * 99 // 100]
        sys.stdout.write(
            f"{how}: {len(took)} calls of others, p50 {took[len(took) // 2]:.3f} s, p99 {p99:.3f} s,"
            f" longest {took[-1]:.3f} s; its own tenant waited {accepted[0]:.3f} s\n"
        )

        assert p99 < P99_S
        assert states == {"active"}
        # It was blocked: the frozen node held its rows until the database ended that session.
        assert accepted[0] > HELD_S
        assert len(took) > OTHERS
