"""The server's role owns its database and reaches nothing else, also in a folder of an earlier release."""

import os
import re
import subprocess
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import asyncpg
import pytest
import trio
from structlog.testing import capture_logs

from sexton_cli.node_storage import open_storage
from sexton_cli.settings import NodeSettings
from sexton_storage.embedded import EmbeddedServer, EmbeddedSettings, open_embedded_server
from sexton_storage.embedded.accounts import give
from sexton_storage.embedded.processes import wait_process
from sexton_storage.embedded.programs import Programs, find_programs
from sexton_storage.embedded.roles import SUPERUSER, as_superuser
from sexton_storage.portal import Portal, open_portal
from sexton_storage.postgres import excess_rights, open_postgres_storage
from tests.worlds.storage import StorageWorld

FAST = {"fsync": "off", "full_page_writes": "off", "shared_buffers": "16MB"}
RIGHTS = """
SELECT 'superuser', rolsuper::text FROM pg_roles WHERE rolname = current_user
UNION ALL SELECT 'creates databases', rolcreatedb::text FROM pg_roles WHERE rolname = current_user
UNION ALL SELECT 'creates roles', rolcreaterole::text FROM pg_roles WHERE rolname = current_user
UNION ALL SELECT 'replicates', rolreplication::text FROM pg_roles WHERE rolname = current_user
UNION ALL SELECT 'passes row security', rolbypassrls::text FROM pg_roles WHERE rolname = current_user
UNION ALL SELECT 'member of', coalesce(string_agg(rolname, ', '), 'none') FROM pg_roles
           WHERE rolname <> current_user AND pg_has_role(current_user, oid, 'MEMBER')
             AND rolname <> 'pg_database_owner'
UNION ALL SELECT 'owns databases', coalesce(string_agg(datname, ', '), 'none') FROM pg_database
           WHERE pg_get_userbyid(datdba) = current_user AND datname = current_database()
UNION ALL SELECT 'may connect to', string_agg(datname, ', ' ORDER BY datname) FROM pg_database
           WHERE has_database_privilege(oid, 'CONNECT') AND datallowconn AND datname !~ '^test_'
UNION ALL SELECT 'may create in schemas', string_agg(nspname, ', ') FROM pg_namespace
           WHERE has_schema_privilege(oid, 'CREATE')
UNION ALL SELECT 'others may use its schema', has_schema_privilege('sexton_stranger', 'public', 'USAGE')::text
UNION ALL SELECT 'others may connect', has_database_privilege('sexton_stranger', 'sexton', 'CONNECT')::text
"""
FEW = {
    "superuser": "false",
    "creates databases": "false",
    "creates roles": "false",
    "replicates": "false",
    "passes row security": "false",
    "member of": "none",
    "owns databases": "sexton",
    "may connect to": "sexton",
    "may create in schemas": "public",
    "others may use its schema": "false",
    "others may connect": "false",
}
REFUSED = (
    "COPY settings TO PROGRAM 'true'",
    "COPY settings FROM PROGRAM 'true'",
    "COPY settings TO '/tmp/sexton-role'",
    "COPY settings FROM '/etc/passwd'",
    "SELECT pg_read_file('/etc/passwd')",
    "SELECT pg_ls_dir('/')",
    "SELECT lo_import('/etc/passwd')",
    "SELECT lo_export(lo_from_bytea(0, 'x'), '/tmp/sexton-role')",
    "CREATE ROLE another",
    "CREATE DATABASE another",
    "CREATE SCHEMA another AUTHORIZATION sexton_superuser",
    "CREATE FUNCTION f() RETURNS int LANGUAGE c AS 'libc', 'system'",
    "CREATE EXTENSION file_fdw",
    "ALTER ROLE sexton SUPERUSER",
    "ALTER SYSTEM SET archive_command = 'true'",
    "GRANT pg_execute_server_program TO sexton",
    "SET ROLE sexton_superuser",
    "SET session_replication_role = replica",
    "SELECT rolpassword FROM pg_authid",
)
NOT_OURS = """
SELECT name FROM (SELECT relname::text, relnamespace, relowner FROM pg_class
                   UNION ALL SELECT proname::text, pronamespace, proowner FROM pg_proc
                   UNION ALL SELECT typname::text, typnamespace, typowner FROM pg_type)
       AS o(name, place, owner)
 WHERE place = 'public'::regnamespace AND owner <> 'sexton'::regrole
"""
MORE = """
CREATE TYPE mood AS ENUM ('well'); CREATE DOMAIN small AS int; CREATE TYPE pair AS (a int, b int);
CREATE SEQUENCE numbers; CREATE TABLE counted (id serial, other int GENERATED ALWAYS AS IDENTITY);
CREATE VIEW seen AS SELECT id FROM counted; CREATE MATERIALIZED VIEW kept AS SELECT id FROM counted;
CREATE FUNCTION twice(n int) RETURNS int LANGUAGE sql RETURN 2 * n
"""


async def ask(portal: Portal, dsn: str, query: str) -> list[tuple[str, ...]]:
    async def work() -> list[tuple[str, ...]]:
        connection = await asyncpg.connect(dsn)
        try:
            if ";" in query:
                await connection.execute(query)
                return []
            return [tuple(row) for row in await connection.fetch(query)]
        finally:
            await connection.close()

    return await portal.run(work)


@pytest.fixture
async def portal() -> AsyncIterator[Portal]:
    async with open_portal() as opened:
        yield opened


def settings(base: Path) -> EmbeddedSettings:
    return EmbeddedSettings(base, server=FAST)


# --- what it may do -----------------------------------------------------------------------------------------


async def test_the_servers_role_owns_its_database_and_nothing_else(
    portal: Portal, embedded_server: EmbeddedServer
) -> None:
    admin = as_superuser(embedded_server.dsn)
    await ask(portal, admin, "DROP ROLE IF EXISTS sexton_stranger; CREATE ROLE sexton_stranger")
    rights = {row[0]: row[1] for row in await ask(portal, embedded_server.dsn, RIGHTS)}
    await ask(portal, admin, "DROP ROLE sexton_stranger;")
    for name, value in rights.items():
        print(f"{name:<28}{value}")  # noqa: T201 - for who looks with -s

    assert rights == FEW
    assert await ask(portal, embedded_server.dsn, NOT_OURS) == []


async def test_nothing_beyond_the_database_is_reached(portal: Portal, postgres_dsn: str) -> None:
    came_through = []
    for statement in REFUSED:
        try:
            await ask(portal, postgres_dsn, statement)
        except (asyncpg.InsufficientPrivilegeError, asyncpg.FeatureNotSupportedError):
            continue
        came_through.append(statement)
    for database in ("postgres", "template1"):
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await ask(portal, re.sub(r"@/\w+", f"@/{database}", postgres_dsn), "SELECT 1")

    assert came_through == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root starts a server that is another user")
async def test_whoever_may_reach_the_socket_and_is_not_the_folders_owner_is_not_let_in(
    embedded_server: EmbeddedServer, tmp_path: Path
) -> None:
    programs = find_programs(os.environ, euid=0, data=embedded_server.data)

    for role in ("sexton", SUPERUSER):
        with (tmp_path / "said").open("wb") as output:
            process = programs.start(
                "psql",
                *("-h", str(embedded_server.sockets), "-U", role, "-d", "sexton", "-c", "SELECT 1"),
                within=(embedded_server.sockets,),
                stdin=subprocess.DEVNULL,
                output=output,
            )
            status = await wait_process(process)

        assert status == 2
        assert f'Peer authentication failed for user "{role}"' in (tmp_path / "said").read_text()


# --- a folder of an earlier release -------------------------------------------------------------------------


async def _run(programs: Programs, data: Path, program: str, *args: str, text: str = "") -> None:
    reading, writing = os.pipe()
    os.write(writing, text.encode())
    os.close(writing)
    with (data.parent / "old.log").open("wb") as output:
        process = programs.start(program, *args, within=(data,), stdin=reading, output=output)
    os.close(reading)
    assert await wait_process(process) == 0, (data.parent / "old.log").read_text()


async def _as_earlier_releases_made_it(base: Path) -> None:
    """One role, a superuser, owns all; as root's, the files are root's."""
    data, programs = base / "postgres", find_programs(os.environ, euid=os.geteuid())
    data.mkdir(mode=0o700, parents=True)
    give(data, programs.account)
    words = ("--username=sexton", "--auth-local=trust", "--encoding=UTF8", "--locale=C", "--no-sync")
    await _run(programs, data, "initdb", "-D", str(data), *words)
    create = "CREATE DATABASE sexton\n"
    await _run(programs, data, "postgres", "--single", "-D", str(data), "postgres", text=create)
    if programs.account is not None:
        for folder, _, names in os.walk(data):
            for name in (".", *names):
                os.chown(Path(folder, name), 0, 0)


async def test_a_folder_of_an_earlier_release_is_taken_over_with_all_that_is_in_it(
    portal: Portal, monkeypatch: pytest.MonkeyPatch
) -> None:
    with tempfile.TemporaryDirectory(prefix="sx") as folder:
        base = Path(folder) / "data"
        await _as_earlier_releases_made_it(base)
        with monkeypatch.context() as patched:
            # The earlier release's way: nothing was taken over, and the owner was let in by trust.
            patched.setattr("sexton_storage.embedded.server.take_over", _only_files)
            async with open_embedded_server(settings(base)) as server:
                async with open_postgres_storage(server.dsn) as storage:
                    world = await StorageWorld(storage).found(77)
                await ask(portal, server.dsn, MORE)
                [(was,)] = await ask(portal, server.dsn, "SELECT rolsuper FROM pg_roles WHERE oid = 10")

                assert was

        steps: list[str] = []
        for _ in range(2):
            async with open_embedded_server(settings(base), progress=steps.append) as server:
                async with open_postgres_storage(server.dsn) as storage:
                    tenant = await storage.tenants.load(world.tenant_id)
                    await StorageWorld(storage).found()
                excess = await excess_rights(server.dsn)
                left = await ask(portal, server.dsn, NOT_OURS)
                made = await ask(portal, server.dsn, "SELECT twice(2)::text")
                with pytest.raises(asyncpg.InsufficientPrivilegeError):
                    await ask(portal, server.dsn, "COPY settings TO PROGRAM 'true'")

            assert tenant is not None
            assert tenant.balance_nanos == 77
            assert (excess, left, made) == ((), [], [("4",)])
        assert steps == ["taking the database's rights from the server's role that it does not need"]

        owners = {path.lstat().st_uid for path in (base / "postgres").rglob("*")}
        assert (0 in owners) is False


async def _only_files(programs: Programs, data: Path, progress: object) -> None:
    del progress
    await trio.lowlevel.checkpoint()
    for folder, _, names in os.walk(data):
        for name in (".", *names):
            give(Path(folder, name), programs.account)


# --- a database of the operator's ---------------------------------------------------------------------------


async def test_a_start_warns_of_a_role_that_has_more_than_it_needs(
    portal: Portal, postgres_dsn: str, tmp_path: Path
) -> None:
    assert await excess_rights(postgres_dsn) == ()

    admin = as_superuser(postgres_dsn)
    told = []
    for rights in ("SUPERUSER", "CREATEDB IN ROLE pg_read_all_data"):
        await ask(portal, admin, f"CREATE ROLE sexton_much LOGIN {rights}; GRANT sexton TO sexton_much")
        dsn = postgres_dsn.replace("//sexton@", "//sexton_much@")
        with capture_logs() as lines:
            async with AsyncExitStack() as stack:
                node = NodeSettings(data=tmp_path / "data", database_url=dsn)
                await open_storage(stack, node, lambda _: None)
        await ask(portal, admin, "DROP OWNED BY sexton_much; DROP ROLE sexton_much")
        told += [line for line in lines if line["event"] == "database_role_has_more_than_it_needs"]

    assert [line["rights"] for line in told] == [("SUPERUSER",), ("CREATEDB", "pg_read_all_data")]
    assert {line["log_level"] for line in told} == {"warning"}
