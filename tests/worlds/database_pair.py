"""A primary and its standby, of which the standby can be made the primary while the old one stays up."""

import os
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import asyncpg
import trio

from sexton_storage.embedded import EmbeddedSettings, open_embedded_server
from sexton_storage.embedded.accounts import give
from sexton_storage.embedded.programs import Programs, find_programs
from sexton_storage.embedded.roles import SUPERUSER, as_superuser
from sexton_storage.portal import Portal, open_portal
from tests.conftest import THROW_AWAY
from tests.worlds.cluster_template import put_cluster

DATABASE = "sexton"
ANYBODY = "local all all trust\nlocal replication all trust\n"
"""The standby follows as the user that PostgreSQL runs as, whom a cluster of ours lets in as nobody."""
START_S = 60
STOP_S = 20


class Pair:
    """Two clusters; ``dsn`` names both."""

    def __init__(self, portal: Portal, primary: str, standby: str) -> None:
        self._portal = portal
        self._primary = _dsn(primary)
        self._standby = _dsn(standby)
        self.dsn = _dsn(f"{primary},{standby}") + "&target_session_attrs=read-write"

    async def demote(self) -> None:
        """The primary takes no writes any more, and hangs up nobody."""
        primary = as_superuser(self._primary)
        await self._ask(primary, "ALTER SYSTEM SET default_transaction_read_only = on")
        await self._ask(primary, "SELECT pg_reload_conf()")

    async def promote(self) -> None:
        """Make the standby the primary, when it has all that the other kept."""
        with trio.fail_after(START_S):
            while not await self._is_level():
                await trio.sleep(0.01)
        assert await self._ask(as_superuser(self._standby), "SELECT pg_promote()")

    async def _is_level(self) -> bool:
        before = await self._ask(self._primary, "SELECT pg_current_wal_lsn()")
        replayed = await self._ask(self._standby, "SELECT pg_last_wal_replay_lsn()")
        primary = as_superuser(self._primary)
        writers = "SELECT count(*) FROM pg_stat_activity WHERE state <> 'idle' AND pid <> pg_backend_pid()"
        busy = await self._ask(primary, writers + " AND datname = current_database()")
        return bool(before == replayed and not busy)

    async def answers(self) -> bool:
        """Whether the standby does."""
        try:
            return bool(await self._ask(self._standby, "SELECT pg_is_in_recovery()"))
        except (OSError, asyncpg.PostgresError):
            return False

    async def _ask(self, dsn: str, query: str) -> Any:
        async def ask() -> Any:
            connection = await asyncpg.connect(dsn)
            try:
                return await connection.fetchval(query)
            finally:
                await connection.close()

        return await self._portal.run(ask)


@asynccontextmanager
async def open_pair(folder: Path) -> AsyncIterator[Pair]:
    """Both run when this is entered; the standby follows the primary. ``folder`` has a short path."""
    admitted = folder / "a" / "run" / "admitted"
    settings = EmbeddedSettings(folder / "a", server={**THROW_AWAY, "hba_file": str(admitted)})
    settings.base.mkdir()
    admitted.parent.mkdir(mode=0o700)
    admitted.write_text(ANYBODY)
    await put_cluster(settings.base)
    programs = find_programs(os.environ, euid=os.geteuid())
    async with open_embedded_server(settings) as primary, open_portal() as portal:
        standby = folder / "b"
        standby.mkdir(mode=0o700)
        give(standby, programs.account)
        pair = Pair(portal, str(primary.sockets), str(standby))
        copy = ("-D", str(standby / "data"), "-h", str(primary.sockets), "-U", SUPERUSER, "-R", "-c", "fast")
        with (standby / "log").open("wb") as log:
            within = (standby, primary.sockets)
            copied = programs.start(
                "pg_basebackup", *copy, within=within, stdin=subprocess.DEVNULL, output=log
            )
            assert await _ended(copied, START_S) == 0, (standby / "log").read_text()
            process = _start(programs, within, log)
        try:
            with trio.fail_after(START_S):
                while not await pair.answers():
                    assert process.poll() is None, (standby / "log").read_text()
                    await trio.sleep(0.02)
            yield pair
        finally:
            with trio.CancelScope(shield=True):
                process.terminate()
                if await _ended(process, STOP_S) is None:
                    process.kill()
                    process.wait()


def _start(programs: Programs, within: tuple[Path, ...], log: Any) -> "subprocess.Popen[bytes]":
    folder = within[0]
    admitted = folder / "data" / "pg_hba.conf"
    admitted.write_text(ANYBODY)
    options = {"unix_socket_directories": str(folder), "listen_addresses": "", **THROW_AWAY}
    words = [word for name, value in options.items() for word in ("-c", f"{name}={value}")]
    return programs.start(
        "postgres",
        "-D",
        str(folder / "data"),
        *words,
        within=within,
        stdin=subprocess.DEVNULL,
        output=log,
    )


async def _ended(process: "subprocess.Popen[bytes]", within_s: float) -> int | None:
    with trio.move_on_after(within_s):
        while process.poll() is None:
            await trio.sleep(0.02)
    return process.poll()


def _dsn(hosts: str) -> str:
    return f"postgresql://{DATABASE}@/{DATABASE}?host={hosts}"
