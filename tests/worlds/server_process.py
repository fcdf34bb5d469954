"""A whole server as a process of its own, started as its user starts it, to be killed and started again."""

import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
import trio

from tests.patience import PATIENCE_S
from tests.worlds.cluster_template import put_cluster
from tests.worlds.warm_start import WarmProcess, can_be_warm

READY_S = 120.0
UNHURRIED = {"SEXTON_BUSY_AT": "0"}
"""The tests keep the machine busy, and that is not what most of them are about."""


class ServerProcess:
    """``sexton up`` on one data folder, over as many lives as a test needs."""

    def __init__(
        self,
        folder: Path,
        *options: str,
        data: Path | None = None,
        environment: Mapping[str, str] | None = None,
        open_files: tuple[int, int] | None = None,
        from_nothing: bool = False,
    ) -> None:
        """``open_files``: the soft and the hard limit that it starts under.

        ``from_nothing``: whether its first start makes the database, which otherwise is there and empty.
        """
        self.folder = folder
        self._from_nothing = from_nothing
        self._open_files = open_files
        self._data = data or folder / "data"
        self._options = options
        self._environment = dict(environment or {})
        self._process: subprocess.Popen[bytes] | WarmProcess | None = None
        self.ready: dict[str, Any] = {}

    async def start(self, *changes: str) -> None:
        """Start, and wait until it says that it is ready; the last word about an option counts."""
        ready_file = self.folder / "ready.json"
        ready_file.unlink(missing_ok=True)
        if not self._from_nothing and "--database-url" not in (*self._options, *changes):
            await put_cluster(self._data)
        words = ["up", "--data", str(self._data), "--ready-file", str(ready_file), *self._options, *changes]
        self._process = self._spawn(words)
        with trio.fail_after(READY_S):
            while not ready_file.exists():
                status = self._process.poll()
                assert status is None, f"server ended with {status}: {self.log()}"
                await trio.sleep(0.05)
        self.ready = orjson.loads(ready_file.read_bytes())

    def _spawn(self, words: Sequence[str]) -> "subprocess.Popen[bytes] | WarmProcess":
        inherited = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
        environment = inherited | UNHURRIED | self._environment
        with (self.folder / "server.log").open("ab") as log, Path(os.devnull).open("rb") as nothing:
            if can_be_warm(self._environment) and not (self._from_nothing or self._open_files):
                return WarmProcess(
                    words, stdin=nothing, stdout=log, stderr=log, start_new_session=True, env=environment
                )
            return subprocess.Popen(
                [*_under(self._open_files), sys.executable, "-m", "sexton_cli.main", *words],
                stdin=nothing,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env=environment,
            )

    def kill(self) -> None:
        """No handler runs, nothing is flushed, nobody is told."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the server's own process."""
        assert self._process is not None
        self._process.send_signal(number)

    async def stop(self) -> int:
        """The gentle way; its exit status."""
        process = self._process
        assert process is not None
        process.send_signal(signal.SIGTERM)
        with trio.fail_after(PATIENCE_S):
            while (status := process.poll()) is None:
                await trio.sleep(0.05)
        return status

    def log(self) -> str:
        return (self.folder / "server.log").read_text(errors="replace")[-4000:]

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None


def _under(open_files: tuple[int, int] | None) -> list[str]:
    """Words before a command that lower its limits on open files; the process stays the same."""
    if open_files is None:
        return []
    soft, hard = open_files
    return ["sh", "-c", f'ulimit -S -n {soft}; ulimit -H -n {hard}; exec "$@"', "sh"]


@asynccontextmanager
async def open_server(
    folder: Path,
    *options: str,
    data: Path | None = None,
    environment: Mapping[str, str] | None = None,
    open_files: tuple[int, int] | None = None,
    from_nothing: bool = False,
) -> AsyncIterator[ServerProcess]:
    """A started server; whatever the test did to it, nothing of it is left at the end.

    ``data``: the folder of another whose keys it shares. ``environment``: beside that of the test.
    """
    server = ServerProcess(
        folder,
        *options,
        data=data,
        environment=environment,
        open_files=open_files,
        from_nothing=from_nothing,
    )
    await server.start()
    try:
        yield server
    finally:
        with trio.CancelScope(shield=True):
            if not server.running:
                # Killed: the database it left is stopped by the next life, which needs nobody to help it.
                await server.start("--runners", "0", "--workers", "1")
            await server.stop()
