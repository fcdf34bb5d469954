"""Starts the server, starts it again when it dies under us, and stops it."""

import hashlib
import logging
import os
import signal
import stat
import subprocess
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import trio

from sexton_storage.background import in_background
from sexton_storage.embedded.accounts import give_all, may_mount
from sexton_storage.embedded.cluster import make_cluster, take_over
from sexton_storage.embedded.ownership import owned
from sexton_storage.embedded.processes import wait_process
from sexton_storage.embedded.programs import Programs, find_programs
from sexton_storage.embedded.remains import clear_remains
from sexton_storage.embedded.roles import DATABASE, ROLE, as_superuser
from sexton_storage.embedded.wal_archive import archive_settings, prepare_archive
from sexton_storage.startup import ConnectFailed

SOCKET_FOLDER_LIMIT = 90
"""Bytes: the path of a Unix socket has 107, and PostgreSQL adds its own name."""
READY_POLL_S = 0.005
SLOW_START_S = 2.0
"""A start that takes longer is most likely recovering, which may take minutes; the user is told."""
RESTART_FIRST_S, RESTART_MAX_S = 0.1, 5.0
RESTORING = "restoring"
"""The folder of a restore that has not ended, in the data directory that it is for."""
START_ATTEMPTS = 3
"""Starts that may fail in a row; what is wrong for good is then said, not tried for long."""
STOP_S, QUIT_S = 30.0, 5.0
log = logging.getLogger("sexton.storage")
_SETTINGS = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "max_connections": "60",
    "shared_buffers": "128MB",
    # What was answered was kept. Only data that is thrown away, as a test's, may live without these three.
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
    "max_wal_size": "2GB",
    "checkpoint_timeout": "15min",
    "max_parallel_workers_per_gather": "0",
    "logging_collector": "on",
    "log_filename": "postgres-%a.log",
    "log_truncate_on_rotation": "on",
    "log_rotation_age": "1d",
    "log_rotation_size": "0",
}
_SINCE = ((18, "io_method", "sync"),)


def newer_settings(major: str) -> dict[str, str]:
    """Give the settings that an older release does not know, and would not start with.

    >>> newer_settings("17"), newer_settings("18")
    ({}, {'io_method': 'sync'})
    """
    return {name: value for since, name, value in _SINCE if int(major) >= since}


@dataclass(frozen=True, slots=True)
class EmbeddedSettings:
    """Where the database lives and how its server is run."""

    base: Path
    """The data directory of this installation; the cluster lies in ``base/postgres``."""
    server: Mapping[str, str] = field(default_factory=dict)
    """PostgreSQL's own settings, over ours."""
    start_s: float = 900.0
    """How long a start may take; recovery after a crash is part of it."""
    start_attempts: int = START_ATTEMPTS
    wal_archive: Path | None = None
    """A folder that gets the write-ahead log; None: it is not kept."""
    reads: tuple[Path, ...] = ()
    """Folders beside its own that the server has to see."""


class EmbeddedServer:
    """The server of one data directory; made by ``open_embedded_server``."""

    def __init__(
        self, programs: Programs, settings: EmbeddedSettings, progress: Callable[[str], None]
    ) -> None:
        self._programs = programs
        self._settings = settings
        self._progress = progress
        self.base = settings.base.resolve()
        self.data = self.base / "postgres"
        self.sockets = _socket_folder(self.base)
        self._archive = None if settings.wal_archive is None else settings.wal_archive.resolve()
        self.restarts = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._stopping = False

    @property
    def dsn(self) -> str:
        """Where the server's own role finds its database."""
        return _dsn(self.sockets)

    @property
    def superuser_dsn(self) -> str:
        """Where an administrator of the cluster gets in; the product never does."""
        return as_superuser(self.dsn).replace(f"@/{DATABASE}?", "@/postgres?")

    @property
    def pid(self) -> int | None:
        """The server's process, while there is one."""
        return None if self._process is None else self._process.pid

    @property
    def bindir(self) -> Path:
        return self._programs.bindir

    async def start(self) -> None:
        """Bring the server up over whatever the last one left. Raises ConnectFailed."""
        self._prepare_folders()
        await make_cluster(self._programs, self.data, self._progress)
        if self._archive is not None:
            prepare_archive(self._archive, self.data, self._programs.account)
        for attempt in range(self._settings.start_attempts):
            await clear_remains(self.data, self.sockets, self._progress)
            await take_over(self._programs, self.data, self._progress)
            if await self._start_once():
                return
            await trio.sleep(RESTART_FIRST_S * (attempt + 1))
        raise ConnectFailed(f"the database server in {self.data} does not start: {self._last_words()}")

    def _prepare_folders(self) -> None:
        account = self._programs.account
        for folder in (self.sockets, self.base / "log"):
            folder.mkdir(mode=0o700, exist_ok=True)
            found = folder.lstat()
            # Under a temporary directory somebody else could have made it first.
            ours = {os.geteuid()} if account is None else {os.geteuid(), account.uid}
            is_open = folder == self.sockets and found.st_mode & 0o077
            if not stat.S_ISDIR(found.st_mode) or found.st_uid not in ours or is_open:
                raise ConnectFailed(f"{folder} is not a private folder of ours: remove it")
            give_all(folder, account)
        if account is not None and not account.may_enter(self.base) and not may_mount():
            # The account's group may pass through; what else lies here is its owner's alone.
            os.chown(self.base, -1, account.gid)
            self.base.chmod(stat.S_IMODE(self.base.stat().st_mode) | stat.S_IXGRP)

    async def _start_once(self) -> bool:
        options = {
            **_SETTINGS,
            **newer_settings((self.data / "PG_VERSION").read_text(encoding="ascii")),
            "unix_socket_directories": str(self.sockets),
            "log_directory": str(self.base / "log"),
            **({} if self._archive is None else archive_settings(self._archive)),
            **self._settings.server,
        }
        args = [word for name, value in options.items() for word in ("-c", f"{name}={value}")]
        with (self.base / "start.log").open("wb") as output:
            self._process = self._programs.start(
                "postgres",
                "-D",
                str(self.data),
                *args,
                within=(self.data, self.sockets, self.base / "log", *self._folders_beside()),
                stdin=subprocess.DEVNULL,
                output=output,
            )
        return await self._wait_ready(self._process)

    def _folders_beside(self) -> tuple[Path, ...]:
        return (*self._settings.reads, *(() if self._archive is None else (self._archive,)))

    async def _wait_ready(self, process: "subprocess.Popen[bytes]") -> bool:
        told = False
        started = trio.current_time()
        while process.poll() is None:
            if self._says_ready(process.pid):
                return True
            waited = trio.current_time() - started
            if waited > SLOW_START_S and not told:
                told = True
                self._progress("waiting for the database to recover; after a crash this can take minutes")
            if waited > self._settings.start_s:
                raise ConnectFailed(f"the database server was not ready after {self._settings.start_s:.0f} s")
            await trio.sleep(READY_POLL_S)
        return False

    def _says_ready(self, pid: int) -> bool:
        try:
            lines = (self.data / "postmaster.pid").read_text(encoding="utf-8").split("\n")
            return int(lines[0]) == pid and lines[7].strip() == "ready"
        except (OSError, ValueError, IndexError):
            return False

    def _last_words(self) -> str:
        try:
            said = (self.base / "start.log").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return "it said nothing"
        return said.strip()[-1000:] or f"see the files in {self.base / 'log'}"

    async def watch(self) -> None:
        """Start the server again whenever it ends without being asked; runs until cancelled."""
        pause = RESTART_FIRST_S
        while self._process is not None:
            status = await wait_process(self._process)
            log.error("the database server ended with status %d; starting it again", status)
            self.restarts += 1
            try:
                await self.start()
                pause = RESTART_FIRST_S
                log.warning("the database server is back")
            except (ConnectFailed, OSError):
                log.exception("the database server does not come back; trying on")
                await trio.sleep(pause)
                pause = min(2 * pause, RESTART_MAX_S)

    async def stop(self) -> None:
        """Shut down with a checkpoint; harder when that takes too long."""
        process = self._process
        if process is None:
            return
        with trio.CancelScope(shield=True):
            for number, seconds in (
                (signal.SIGINT, STOP_S),
                (signal.SIGQUIT, QUIT_S),
                (signal.SIGKILL, QUIT_S),
            ):
                if process.poll() is None:
                    process.send_signal(number)
                with trio.move_on_after(seconds):
                    await wait_process(process)
                    break
        self._process = None


def embedded_dsn(base: Path) -> str:
    """Where the server of a data directory answers while somebody runs it; for its owner alone."""
    return _dsn(_socket_folder(base.resolve()))


def _dsn(sockets: Path) -> str:
    return f"postgresql://{ROLE}@/{DATABASE}?host={sockets}"


def _socket_folder(base: Path) -> Path:
    folder = base / "run"
    if len(os.fsencode(folder)) <= SOCKET_FOLDER_LIMIT:
        return folder
    digest = hashlib.sha256(os.fsencode(base)).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"sexton-{os.geteuid()}-{digest}"


def _silent(_: str) -> None:
    pass


@asynccontextmanager
async def open_embedded_server(
    settings: EmbeddedSettings, *, progress: Callable[[str], None] = _silent
) -> AsyncIterator[EmbeddedServer]:
    """Own the data directory and run its server until the block ends.

    ``progress`` is told, in a few words, what takes long. Raises AlreadyOwned and ConnectFailed.
    """
    with owned(settings.base):
        if (settings.base / RESTORING).exists():
            raise ConnectFailed(
                f"a restore into {settings.base} has not ended: "
                "run 'sexton backup restore' again, or remove it"
            )
        data = settings.base.resolve() / "postgres"
        programs = find_programs(os.environ, euid=os.geteuid(), data=data)
        server = EmbeddedServer(programs, settings, progress)
        try:
            await server.start()
            async with in_background(server.watch):
                yield server
        finally:
            await server.stop()
