"""A backup of a serving system, and its log, bring any moment back; nothing of what ran then may write."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import asyncpg
import pytest
import trio

from sexton_storage.backups.after_restore import TOKENS_SKIPPED
from sexton_storage.backups.copies import Source, make_backup
from sexton_storage.backups.faults import BackupFault
from sexton_storage.backups.manifest import Kind
from sexton_storage.backups.repository import Repository
from sexton_storage.backups.restores import Wanted, check_empty, check_wanted, restore_cluster
from sexton_storage.embedded import EmbeddedSettings, embedded_dsn, open_embedded_server
from sexton_storage.embedded.roles import as_superuser
from sexton_storage.embedded.server import RESTORING
from sexton_storage.postgres import open_postgres_storage
from sexton_storage.schema_number import schema_number
from sexton_storage.startup import ConnectFailed
from tests.conftest import THROW_AWAY
from tests.thorough import THOROUGH
from tests.worlds.cluster_template import put_cluster
from tests.worlds.nodes import Node, visit_nodes
from tests.worlds.server_process import open_server
from tests.worlds.shell import Ended, Shell, said, wait_until

OPTIONS = ("--port", "0", "--runners", "0")
TABLES = """
SELECT string_agg(format('SELECT %L, count(*) FROM %I', relname, relname), ' UNION ALL ') FROM pg_class
 WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition
   AND relname NOT IN ('settings', 'journal_lanes', 'commit_marks', 'nodes')
"""
"""What a server writes without being asked is left out."""
CENTS = """
SELECT coalesce(sum(charged_nanos), 0)::bigint, (SELECT sum(balance_nanos)::bigint FROM tenants) FROM metering
"""

KEEP = "INSERT INTO settings (name, value) VALUES ('test-{}', '1') RETURNING name"
SCHEMA = schema_number()


async def now() -> int:
    return round(datetime.now(UTC).timestamp() * 1000)


def ask(data: Path, query: str) -> Any:
    async def work() -> Any:
        connection = await asyncpg.connect(as_superuser(embedded_dsn(data)))
        try:
            return [tuple(row) for row in await connection.fetch(query)]
        finally:
            await connection.close()

    return asyncio.run(work())


async def asked(data: Path, query: str) -> Any:
    return await trio.to_thread.run_sync(ask, data, query)


async def counts(data: Path) -> list[tuple[str, int]]:
    [(query,)] = await asked(data, TABLES)
    return sorted(await asked(data, query))


async def test_a_cluster_that_serves_is_copied_and_restored_to_the_moment_asked_for(tmp_path: Path) -> None:
    data, other, backups = tmp_path / "data", tmp_path / "restored", Repository(tmp_path / "backups")
    await put_cluster(data)
    served = EmbeddedSettings(data, THROW_AWAY, wal_archive=backups.wal)
    async with open_embedded_server(served) as server, open_postgres_storage(server.dsn):
        made = await make_backup(backups, Source(server.dsn, Kind.CLUSTER, "0.1.0", SCHEMA, now), None)
        await asked(data, KEEP.format("early"))
        until = datetime.fromisoformat(await moment(data))
        await asked(data, KEEP.format("late"))
        [(segment,)] = await asked(data, "SELECT pg_walfile_name(pg_switch_wal())")
        await trio.to_thread.run_sync(wait_until, (backups.wal / segment).exists)

    wanted = Wanted(made, until=round(until.timestamp() * 1000))
    with pytest.raises(BackupFault, match="before the end of the backup"):
        check_wanted(backups, wanted._replace(until=made.began_at - 1), SCHEMA, "0.1.0")
    check_wanted(backups, wanted, SCHEMA, "0.1.0")
    assert not other.exists()

    await restore_cluster(backups, wanted, other, {"master.keys": b"1:c2VjcmV0\n"}, lambda _: None)

    with pytest.raises(BackupFault, match="is not empty"):
        check_empty(other)
    async with open_embedded_server(EmbeddedSettings(other, THROW_AWAY)):
        assert await asked(other, "SELECT name FROM settings WHERE name LIKE 'test-%'") == [("test-early",)]
    assert (other / "master.keys").read_bytes() == b"1:c2VjcmV0\n"

    (other / RESTORING).mkdir()
    with pytest.raises(ConnectFailed, match="has not ended"):
        async with open_embedded_server(EmbeddedSettings(other, THROW_AWAY)):
            pass


@pytest.mark.skipif(not THOROUGH, reason="in make test-thorough: two servers and eight commands")
async def test_a_moment_between_two_events_is_restored_and_what_ran_then_may_not_write(
    tmp_path: Path,
) -> None:
    shell, data, backups = Shell(tmp_path), tmp_path / "data", tmp_path / "backups"
    other = tmp_path / "restored"
    recipient = shell.json("backup", "keygen", "--to", str(tmp_path / "key"))["recipient"]
    async with open_server(tmp_path, *OPTIONS, "--wal-archive", str(backups / "wal")) as server:
        async with visit_nodes([server]) as [node]:
            runner = await node.enrol("one")
            agent = await node.install("watcher")
            events = [await node.say(agent)]
            first = await leased(node, runner)
            await node.report(runner, first)
            made = await run(shell, "backup", "--data", data, "--to", backups, "--recipient", recipient)
            assert made.returncode == 0, made.stderr

            events += [await node.say(agent)]
            lost = await leased(node, runner)
            rows, cents = await counts(data), await asked(data, CENTS)
            until = await moment(data)
            late = await node.say(agent)
        [(segment,)] = await asked(data, "SELECT pg_walfile_name(pg_switch_wal())")
        await trio.to_thread.run_sync(wait_until, (backups / "wal" / segment).exists)
        server.kill()

    restoring = ("restore", "--from", backups, "--data", other, "--key", tmp_path / "key")
    early = await run(shell, *restoring, "--until", "2001-01-01T00:00:00Z")
    ahead = await run(shell, *restoring, "--until", "2099-01-01T00:00:00Z")
    assert "--until is before the end of the oldest backup" in said(early)
    assert "--until is in the future" in said(ahead)
    assert not other.exists()

    unreached = await run(shell, *restoring, "--until", datetime.now(UTC).isoformat())
    assert "--until is after the last change in the archive" in unreached.stderr
    assert [path.name for path in other.iterdir()] == ["lock"]

    done = await run(shell, *restoring, "--until", until)
    assert done.returncode == 0, done.stderr

    again = await run(shell, *restoring)
    assert f"{other} is not empty" in said(again)

    (tmp_path / "second").mkdir()
    async with (
        open_server(tmp_path / "second", *OPTIONS, data=other, from_nothing=True) as server,
        visit_nodes([server]) as [visited],
    ):
        node = with_key(visited, other)
        assert {event["event_id"] for event in await node.history()} == set(events)
        assert late not in events
        assert without_leases(await counts(other)) == without_leases(rows)
        assert await asked(other, CENTS) == cents

        refused = await node.post(f"/v1/runners/me/leases/{lost['lease_id']}/renew", USAGE, runner)
        assert refused.status_code in {404, 409}, refused.text

        newer = await leased(node, runner)
        assert newer["event"]["event_id"] == events[1]
        assert newer["fencing_token"] == lost["fencing_token"] + TOKENS_SKIPPED + 1
        assert await node.metric("sexton_backup_last_success_timestamp_seconds") > 0


USAGE = {"input_tokens": 0, "cached_input_tokens": 0, "output_tokens": 0}
MOVED = {
    "leases",
    "live_leases",
    "waiting_events",
    "frames",
    "runner_changes",
    "event_words",
    "sign_in_links",
}
"""What a start, and the reclaim of a lease, change."""


def without_leases(rows: list[tuple[str, int]]) -> dict[str, int]:
    """The counts of tables that stay as they are."""
    return {name: count for name, count in rows if name not in MOVED}


def with_key(node: Node, data: Path) -> Node:
    """The node with the first API key, which was restored with the other keys."""
    key = (data / "api-key").read_text().strip()
    return node.seen_by(node.workspace, key)


async def moment(data: Path) -> str:
    """The database's time, with everything before it committed and nothing at it."""
    [(at,)] = await asked(data, "SELECT clock_timestamp()")
    await trio.sleep(0.05)
    return str(at.isoformat())


async def leased(node: Node, runner: str) -> dict[str, Any]:
    while (lease := await node.lease(runner)) is None:
        pass
    return lease


async def run(shell: Shell, *words: str | Path) -> Ended:
    return await trio.to_thread.run_sync(lambda: shell(*map(str, words)))
