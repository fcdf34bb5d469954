"""A primary and its synchronous standby as machines of their own, which are killed, frozen and promoted."""

import os
import signal
import subprocess
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import asyncpg
import trio

from sexton_storage.embedded.accounts import give
from sexton_storage.embedded.cluster import make_cluster
from sexton_storage.embedded.programs import Programs, find_programs
from sexton_storage.embedded.roles import DATABASE, ROLE, SUPERUSER
from sexton_storage.portal import Portal, open_portal
from tests.conftest import THROW_AWAY
from tests.worlds.cluster_template import put_cluster

ANYBODY = "local all all trust\nlocal replication all trust\n"
START_S = 180
POLL_S = 0.02
SYNCHRONOUS = {"synchronous_standby_names": "*", "synchronous_commit": "on"}
# Of a failed attempt to stream, the standby waits less long until the next.
BRISK = {
    **THROW_AWAY,
    "listen_addresses": "",
    "max_connections": "100",
    "wal_retrieve_retry_interval": "100ms",
}


class Machine:
    """One cluster, and all processes of its server."""

    def __init__(
        self, portal: Portal, programs: Programs, folder: Path, other: Path, settings: Mapping[str, str]
    ) -> None:
        """``settings``: of its server, in each of its lives."""
        self._settings = settings
        self._portal = portal
        self._programs = programs
        self.folder = folder
        self.data = folder / "postgres"
        self._within = (folder, other)
        self._process: subprocess.Popen[bytes] | None = None

    async def start(self, settings: Mapping[str, str]) -> None:
        (self.data / "pg_hba.conf").write_text(ANYBODY)
        options = {"unix_socket_directories": str(self.folder), **BRISK, **self._settings, **settings}
        words = [word for name, value in options.items() for word in ("-c", f"{name}={value}")]
        with (self.folder / "log").open("ab") as log:
            self._process = self._programs.start(
                "postgres",
                "-D",
                str(self.data),
                *words,
                within=self._within,
                stdin=subprocess.DEVNULL,
                output=log,
            )
        with trio.fail_after(START_S):
            while not await self.answers():
                assert self._process.poll() is None, (self.folder / "log").read_text()
                await trio.sleep(POLL_S)

    async def ask(self, query: str, *args: object) -> Any:
        """The first value of a query, as the cluster's superuser."""
        rows = await self.rows(query, *args)
        return rows[0][0] if rows else None

    async def rows(self, query: str, *args: object) -> list[Any]:
        """All rows of a query, as the cluster's superuser."""

        async def ask() -> list[Any]:
            dsn = f"postgresql://{SUPERUSER}@/{DATABASE}?host={self.folder}"
            connection = await asyncpg.connect(dsn, timeout=START_S)
            try:
                rows: list[Any] = await connection.fetch(query, *args)
                return rows
            finally:
                await connection.close()

        return await self._portal.run(ask)

    async def until(self, query: str, *args: object) -> None:
        """Wait until a query gives true."""
        with trio.fail_after(START_S):
            while not await self.ask(query, *args):
                await trio.sleep(POLL_S)

    async def answers(self) -> bool:
        try:
            return bool(await self.ask("SELECT true"))
        except (OSError, asyncpg.PostgresError):
            return False

    async def promote(self) -> None:
        assert await self.ask("SELECT pg_promote()")

    def freeze(self) -> None:
        """All its processes stand still, and nobody is told."""
        self._send(signal.SIGSTOP)

    def thaw(self) -> None:
        self._send(signal.SIGCONT)

    def kill(self) -> None:
        """What a loss of power does to the processes: all of them end at once."""
        if self._process is None:
            return
        self._send(signal.SIGSTOP)
        self._send(signal.SIGKILL)
        self._process.wait()
        self._process = None
        (self.data / "postmaster.pid").unlink(missing_ok=True)

    async def follow(self, primary: "Machine") -> None:
        """Copy a primary that runs, and follow it from then on."""
        give(self.folder, self._programs.account)
        copy = (
            "-D",
            str(self.data),
            "-h",
            str(primary.folder),
            "-U",
            SUPERUSER,
            "-R",
            "-c",
            "fast",
            "-X",
            "stream",
        )
        with (self.folder / "log").open("wb") as log:
            copying = self._programs.start(
                "pg_basebackup",
                *copy,
                within=self._within,
                stdin=subprocess.DEVNULL,
                output=log,
            )
        with trio.fail_after(START_S):
            while copying.poll() is None:
                await trio.sleep(POLL_S)
        assert copying.returncode == 0, (self.folder / "log").read_text()
        await self.start({})

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def _send(self, number: signal.Signals) -> None:
        # The postmaster first: then it starts no more.
        assert self._process is not None
        for pid in (self._process.pid, *_children(self._process.pid)):
            with suppress(ProcessLookupError):
                os.kill(pid, number)


class SynchronousPair:
    """What is acknowledged is on both; ``dsn`` names both."""

    def __init__(self, primary: Machine, standby: Machine) -> None:
        self.primary = primary
        self.standby = standby
        hosts = f"{primary.folder},{standby.folder}"
        self.dsn = f"postgresql://{ROLE}@/{DATABASE}?host={hosts}&target_session_attrs=read-write"

    async def until_level(self) -> None:
        """Wait until commits wait for the standby, and it has all that there is."""
        await self.primary.until("SELECT count(*) = 1 FROM pg_stat_replication WHERE sync_state = 'sync'")


def _children(pid: int) -> list[int]:
    with suppress(OSError):
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


@asynccontextmanager
async def open_synchronous_pair(
    folder: Path, settings: Mapping[str, str] | None = None
) -> AsyncIterator[SynchronousPair]:
    """Both run when this is entered, and are killed at the end. ``folder`` has a short path.

    ``settings``: what is other than with throw-away databases.
    """
    programs = find_programs(os.environ, euid=os.geteuid())
    async with open_portal() as portal:
        folders = (folder / "a", folder / "b")
        for own in folders:
            own.mkdir(mode=0o700, exist_ok=True)  # There is one where a disk of its own is mounted.
        first, second = folders
        primary = Machine(portal, programs, first, second, settings or {})
        standby = Machine(portal, programs, second, first, settings or {})
        await put_cluster(primary.folder)
        await make_cluster(programs, primary.data, lambda _: None)
        give(primary.folder, programs.account)
        try:
            await primary.start(SYNCHRONOUS)
            await standby.follow(primary)
            pair = SynchronousPair(primary, standby)
            await pair.until_level()
            yield pair
        finally:
            primary.kill()
            standby.kill()
