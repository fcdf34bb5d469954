"""The schema is brought up to date apart from the server, whose role may create nothing."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import pytest

from sexton_cli.exits import CONFIG, OK, UNAVAILABLE
from sexton_storage.embedded.roles import as_superuser
from sexton_storage.postgres.schema.steps import shipped_migrations
from tests.worlds.nodes import open_nodes
from tests.worlds.shell import run_command

ROLE = "sexton_guest"
EMPTY = "DROP SCHEMA public CASCADE; CREATE SCHEMA public; GRANT USAGE ON SCHEMA public TO public"
GRANTS = f"""
GRANT USAGE ON SCHEMA public TO {ROLE};
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {ROLE};
GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO {ROLE}
"""


def _execute(dsn: str, command: str) -> None:
    async def execute() -> None:
        connection = await asyncpg.connect(dsn)
        try:
            await connection.execute(command)
        finally:
            await connection.close()

    asyncio.run(execute())


@pytest.fixture
def guest_dsn(postgres_dsn: str) -> Iterator[str]:
    """The database as a role sees it that may create nothing in it, and owns nothing."""
    _execute(as_superuser(postgres_dsn), f"CREATE ROLE {ROLE} LOGIN")
    yield postgres_dsn.replace("//sexton@", f"//{ROLE}@")
    _execute(as_superuser(postgres_dsn), f"DROP OWNED BY {ROLE}; DROP ROLE {ROLE}")


def _sexton(tmp_path: Path, command: str, dsn: str, *options: str) -> tuple[int, str, list[str]]:
    words = [command, "--data", str(tmp_path / "data"), "--database-url", dsn, *options]
    ended = run_command(words, {"PATH": "/usr/bin:/bin"})
    faults = [line for line in ended.stderr.splitlines() if line.startswith("sexton: ")]
    assert "Traceback" not in ended.stderr
    return ended.returncode, ended.stdout, faults


def test_a_role_that_may_not_make_the_schema_is_told_what_to_do(
    tmp_path: Path, postgres_dsn: str, guest_dsn: str
) -> None:
    _execute(postgres_dsn, EMPTY)

    status, _, [line] = _sexton(tmp_path, "serve", guest_dsn, "--port", "0")

    assert status == CONFIG
    assert line.startswith("sexton: UZ-STARTUP-005: the role may not make tables: permission denied")
    assert "Run 'sexton migrate' as a role that owns the schema" in line


def test_a_server_that_is_not_to_migrate_does_not_start_on_another_schema(
    tmp_path: Path, postgres_dsn: str
) -> None:
    _execute(postgres_dsn, EMPTY)

    status, _, [line] = _sexton(tmp_path, "serve", postgres_dsn, "--port", "0", "--no-migrate")

    assert status == CONFIG
    assert line.startswith(
        "sexton: UZ-STARTUP-005: no server has made this database yet. Run 'sexton migrate'"
    )


async def test_a_role_that_may_create_nothing_serves_what_another_has_migrated(
    tmp_path: Path, postgres_dsn: str, guest_dsn: str
) -> None:
    _execute(postgres_dsn, EMPTY)
    names = [m.name for m in shipped_migrations()]
    assert _sexton(tmp_path, "migrate", postgres_dsn) == (OK, "\n".join(names) + "\n", [])
    assert _sexton(tmp_path, "migrate", postgres_dsn)[:2] == (OK, "")

    status, _, [line] = _sexton(tmp_path, "serve", guest_dsn, "--port", "0")
    assert (status, line.partition(":")[0]) == (CONFIG, "sexton")
    assert "the role may not read which migrations ran: permission denied" in line

    _execute(postgres_dsn, GRANTS)
    _execute(guest_dsn, "SELECT sexton_slices_ahead(6), sexton_compact_slices(-86400000, 10)")

    async with open_nodes(tmp_path, (guest_dsn, guest_dsn), "--database-wait", "5") as nodes:
        agent = await nodes[0].install("watcher")
        event_id = await nodes[1].say(agent)

        assert [event["event_id"] for event in await nodes[0].history()] == [event_id]


def test_a_database_that_is_not_there_is_told_in_one_line(tmp_path: Path) -> None:
    dsn = f"postgresql://sexton@/sexton?host={tmp_path}"

    status, _, [line] = _sexton(tmp_path, "migrate", dsn, "--database-wait", "0")

    assert status == UNAVAILABLE
    assert line.startswith("sexton: UZ-STARTUP-003: the database cannot be reached")
    assert "Check DATABASE_URL" in line


def test_a_dry_run_shows_what_would_run_and_what_it_locks_and_changes_nothing(
    tmp_path: Path, postgres_dsn: str
) -> None:
    _execute(postgres_dsn, "DELETE FROM schema_migrations WHERE version > 54")

    status, shown, _ = _sexton(tmp_path, "migrate", postgres_dsn, "--dry-run")
    _, document, _ = _sexton(tmp_path, "migrate", postgres_dsn, "--dry-run", "--json")

    assert status == OK
    assert (
        "0056_shadow_runs.sql\n    bulk_jobs: ACCESS EXCLUSIVE, keeps others from reading and writing"
        in shown
    )
    assert "    leases: ACCESS EXCLUSIVE, keeps others from reading and writing, for a moment\n" in shown
    assert json.loads(document)["at"] == "0054_pins.sql"
    assert [step["name"] for step in json.loads(document)["steps"]][:2] == [
        "0055_metering_slices.sql",
        "0056_shadow_runs.sql",
    ]
