"""What a pooler between the service and PostgreSQL may do: pgbouncer itself, in both of its modes."""

import asyncio
import os
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import asyncpg
import pytest
import trio
from asyncpg.types import ServerVersion

from sexton_storage.embedded import EmbeddedServer
from sexton_storage.embedded.accounts import choose_account, give_all
from sexton_storage.postgres import PostgresSettings, open_postgres_storage, server_check
from sexton_storage.postgres.connections.connection import Connection
from sexton_storage.postgres.connections.dial import SettingsDropped, put_in_force
from sexton_storage.startup import PooledByTransaction, ServerTooOld
from tests.worlds.storage import StorageWorld, metered

START_S = 30
BRIEF = PostgresSettings(connect_s=5)


@asynccontextmanager
async def pooler(dsn: str, mode: str) -> AsyncIterator[str]:
    """The address of a database behind a pgbouncer that was told nothing but where it is."""
    program = shutil.which("pgbouncer") or shutil.which("/usr/sbin/pgbouncer")
    if program is None:
        pytest.skip("pgbouncer is missing: install the package `pgbouncer`")
    address, _, socket = dsn.partition("?host=")
    with tempfile.TemporaryDirectory(prefix="sx") as name:
        folder = Path(name)
        (folder / "users").write_text('"sexton" ""\n')
        (folder / "pgbouncer.ini").write_text(
            f"[databases]\n* = host={socket}\n[pgbouncer]\nlisten_addr =\nlisten_port = 5432\n"
            f"unix_socket_dir = {folder}\nauth_type = trust\nauth_file = {folder / 'users'}\n"
            f"pool_mode = {mode}\nlogfile = {folder / 'log'}\n"
        )
        words = [program, str(folder / "pgbouncer.ini")]
        account = choose_account(os.geteuid(), Path(socket).parent / "postgres")
        if account is not None:  # It refuses to be root.
            give_all(folder, account)
            words = account.command(words, (folder, Path(socket)))
        process = subprocess.Popen(
            words,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            with trio.fail_after(START_S):
                while not (folder / ".s.PGSQL.5432").exists():
                    assert process.poll() is None, (folder / "log").read_text()
                    await trio.sleep(0.01)
            yield f"{address}?host={folder}"
        finally:
            process.kill()
            process.wait()


@pytest.fixture
def pooled_dsn(embedded_server: EmbeddedServer, postgres_dsn: str) -> Iterator[str]:
    """A database that lets in the user that poolers run as: root's pooler is not root."""
    names, data = embedded_server.data / "pg_ident.conf", embedded_server.data
    before = names.read_text()
    with names.open("a") as file:
        file.write(f'owner  "{data.owner()}"  all\n')
    asyncio.run(_reload(embedded_server.superuser_dsn))
    yield postgres_dsn
    names.write_text(before)
    asyncio.run(_reload(embedded_server.superuser_dsn))


async def _reload(dsn: str) -> None:
    connection = await asyncpg.connect(dsn)
    await connection.execute("SELECT pg_reload_conf()")
    await connection.close()


async def test_behind_a_pooler_of_sessions_all_is_as_it_was(pooled_dsn: str) -> None:
    async with (
        pooler(pooled_dsn, "session") as dsn,
        open_postgres_storage(dsn, settings=BRIEF) as storage,
    ):
        world = await StorageWorld(storage).found()
        lease = await world.lease()
        for _ in range(5):
            lease, _ = await world.renew(lease)

        assert await metered(world, [lease.event_id]) == 500
        assert await storage.healthy()


async def test_a_pooler_of_transactions_is_noticed_before_anything_is_done(pooled_dsn: str) -> None:
    async with pooler(pooled_dsn, "transaction") as dsn:
        with pytest.raises(PooledByTransaction, match="gives each transaction another session") as raised:
            async with open_postgres_storage(dsn, settings=BRIEF):
                raise AssertionError("it opened")
    assert "pool_mode = session" in raised.value.way_out


class TwoSessions:
    """A connection whose statements meet two sessions in turn, as behind a pooler of statements."""

    def __init__(self) -> None:
        self._settings = ({"lock_timeout": "0"}, {"lock_timeout": "0"})
        self._turn = 0

    def get_server_version(self) -> ServerVersion:
        return ServerVersion(major=18, minor=0, micro=0, releaselevel="final", serial=0)

    async def fetch(self, query: str, names: list[str], *values: list[str]) -> list[tuple[str, str]]:
        session = self._settings[self._turn % 2]
        self._turn += 1
        if "set_config" in query:
            session |= dict(zip(names, *values, strict=True))
        return [(name, session[name]) for name in names]


def test_bounds_that_do_not_last_are_noticed() -> None:
    connection = cast("Connection", TwoSessions())

    with pytest.raises(SettingsDropped, match="lock_timeout did not last"):
        asyncio.run(put_in_force(connection, {"lock_timeout": "100ms"}))


async def test_a_server_that_is_too_old_is_named(postgres_dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_check, "OLDEST_MAJOR", 99)
    with pytest.raises(ServerTooOld, match=r"this is PostgreSQL \d+\.\d+, and Sexton needs 99 or later"):
        async with open_postgres_storage(postgres_dsn, settings=BRIEF):
            raise AssertionError("it opened")
