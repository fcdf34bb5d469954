"""Nodes that are killed while they take a candidate back and tell of it: it is done once, and told once."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import asyncpg
import httpx2
import pytest
import trio

from tests.fakes.chat_platform import SlackServer, open_slack_server
from tests.faults.test_faults_chat_killed import configure
from tests.patience import PATIENCE_S
from tests.thorough import THOROUGH
from tests.worlds.nodes import Node, open_nodes
from tests.worlds.samples import YEARLY, skill_md, trigger_md
from tests.worlds.trust import TRUST

RUNS = 3
GOOD = "```sh\ncat >/dev/null\necho '{\"good\": true}'\n```\n"
BAD = "```sh\ncat >/dev/null\nexit 9\n```\n"
WAITING = """
SELECT count(*) FROM pg_stat_activity
 WHERE datname = current_database() AND wait_event_type = 'Lock' AND cardinality(pg_blocking_pids(pid)) > 0
"""


class Database:
    """One connection beside those of the nodes, in a thread with an event loop of its own."""

    def __init__(self, dsn: str) -> None:
        self._runner = asyncio.Runner()
        self._dsn = dsn
        self._connection: Any = None

    async def do(self, verb: str, query: str, *values: Any) -> Any:
        """Call one of asyncpg's methods."""

        async def work() -> Any:
            if self._connection is None:
                self._connection = await asyncpg.connect(self._dsn)
            return await getattr(self._connection, verb)(query, *values)

        return await trio.to_thread.run_sync(lambda: self._runner.run(work()))

    async def close(self) -> None:
        """Let go of what is locked, too."""

        def work() -> None:
            if self._connection is not None:
                self._runner.run(self._connection.close())
            self._runner.close()

        await trio.to_thread.run_sync(work)


@asynccontextmanager
async def beside(dsn: str) -> AsyncIterator[Database]:
    database = Database(dsn)
    try:
        yield database
    finally:
        with trio.CancelScope(shield=True):
            await database.close()


@asynccontextmanager
async def real_runner(node: Node, folder: Path) -> AsyncIterator[None]:
    """A runner of that node, as a process of its own, with a sandbox."""
    token = await node.enrol("hand")
    words = ["--base-url", node.server.ready["base_url"], "--state-dir", str(folder / "runner")]
    with (folder / "runner.log").open("wb") as log:
        process = await trio.lowlevel.open_process(
            [sys.executable, "-m", "sexton_runner", *words, "--slots", "2"],
            env=os.environ | {"SEXTON_RUNNER_TOKEN": token},
            stdout=log,
            stderr=log,
        )
        try:
            yield
        finally:
            with trio.CancelScope(shield=True):
                process.terminate()
                await process.wait()


@asynccontextmanager
async def configured_nodes(folder: Path, dsn: str, slack: SlackServer) -> AsyncIterator[Sequence[Node]]:
    """Two nodes that know the same Slack app."""
    configure(folder, slack.url)
    async with open_nodes(folder, dsn) as nodes:
        yield nodes


async def connect(node: Node) -> None:
    """Connect the workspace with a channel, as an operator in a browser."""
    left = await node.get(f"{node.workspace}/chat/slack/install", "api_key")
    async with httpx2.AsyncClient(verify=TRUST) as away:
        back = (await away.get(left.headers["location"])).headers["location"]
        answer = await away.get(back)
        assert answer.status_code == 200, answer.text


async def install(node: Node) -> str:
    """An agent whose second version fails, on trial for nearly all of its events."""
    files = {
        "source_markdown": skill_md("sorter", body=GOOD),
        "trigger_markdown": trigger_md("sorter", "runtime: command", trigger=YEARLY),
    }
    zombie_id = str((await node.call("POST", f"{node.workspace}/zombies", files))["zombie_id"])
    worse = {**files, "agent_id": zombie_id, "source_markdown": skill_md("sorter", body=BAD)}
    drafted = await node.call("PUT", f"{node.workspace}/harness/source", worse)
    version = {"config_version_id": drafted["config_version_id"]}
    await node.call("POST", f"{node.workspace}/harness/compile", version)
    guard = {"min_runs": RUNS, "max_failure_percent": 20}
    wish = {"agent_version": 2, "share": 99, "guard": guard}
    await node.call("POST", f"{node.workspace}/zombies/{zombie_id}/canary", wish)
    return zombie_id


async def end_of(node: Node, event_id: str) -> dict[str, Any]:
    """The event, once it has ended."""
    while True:
        event: dict[str, Any] = await node.call("GET", f"{node.workspace}/events/{event_id}?wait_ms=20000")
        if event["status"] not in {"received", "running"}:
            return event


@pytest.mark.skipif(not THOROUGH, reason="in make test-thorough: two servers and a runner")
async def test_a_candidate_that_fails_is_taken_back_once_though_the_node_that_does_it_is_killed(
    tmp_path: Path, postgres_dsn: str
) -> None:
    async with (
        open_slack_server() as slack,
        configured_nodes(tmp_path, postgres_dsn, slack) as (first, second),
        real_runner(second, tmp_path),
        beside(postgres_dsn) as database,
    ):
        await connect(first)
        zombie_id = await install(first)
        agent = f"{first.workspace}/zombies/{zombie_id}"
        # Whatever only names the agent's row goes on; what changes it waits.
        await database.do("execute", "BEGIN")
        await database.do("execute", "SELECT FROM zombies WHERE id = $1 FOR NO KEY UPDATE", zombie_id)
        failed = 0
        with trio.fail_after(PATIENCE_S):
            while failed < RUNS:
                ended = await end_of(first, await first.say(zombie_id))
                failed += ended["canary_side"] == "candidate"
            while await database.do("fetchval", WAITING) < 2:
                await trio.sleep(0.1)
        trial = (await second.call("GET", f"{agent}/canary"))["canary"]
        first.server.kill()
        slack.hold = trio.Event()
        await database.do("execute", "ROLLBACK")

        with trio.fail_after(PATIENCE_S):
            while (over := (await second.call("GET", f"{agent}/canary"))["canary"])["status"] == "on_trial":
                await trio.sleep(0.1)
        after = await end_of(second, await second.say(zombie_id))
        told = await database.do(
            "fetchval",
            "SELECT count(*) FROM frames WHERE zombie_id = $1 AND kind = 'canary_changed'"
            " AND data->>'status' = 'withdrawn'",
            zombie_id,
        )
        lines = await second.call("GET", "/v1/audit?action=canary.withdraw", None, "admin_token")
        await slack.until(lambda: len(slack.messages) == 1)
        second.server.kill()
        posts = slack.calls.count("chat.postMessage")
        slack.hold.set()
        slack.hold = None
        # The minute passes for which a dead node's claim is respected.
        due = await database.do("fetchval", "UPDATE chat_notices SET due_at = 0 RETURNING true")
        await first.server.start()
        await slack.until(lambda: slack.calls.count("chat.postMessage") > posts)
        with trio.fail_after(PATIENCE_S):
            while await database.do("fetchval", "SELECT count(*) FROM chat_notices"):
                await trio.sleep(0.1)
        [message] = slack.messages.values()

        assert trial["status"] == "on_trial", "both nodes were about to end it, and neither had"
        assert (over["status"], over["ended_by"], over["why"]) == ("withdrawn", "system:guard", "failures")
        assert over["candidate"]["failed"] == RUNS
        assert (after["status"], after["agent_version"]) == ("processed", 1)
        assert told == 1
        assert len(lines["items"]) == 1
        assert due, "no node had heard that Slack has it"
        assert "version 2 was on trial, and its guard has taken it back" in message.text
