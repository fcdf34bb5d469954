"""Sets the demo up: a server from an empty folder, and runners as processes that can be killed."""

import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
import trio

from sexton_cli.local_runners import runner_command, spawn, wait

READY_S = 240.0
"""A server that ends is noticed at once; this is for one on a machine that is busy with other things."""
POLL_S = 0.05
STOP_S = 20.0


class NotReady(Exception):
    """The server did not come up. The text says how; its log says why."""


class DemoServer:
    """A running server and the runners beside it."""

    def __init__(self, folder: Path, ready: dict[str, Any]) -> None:
        self.folder = folder
        self.environment: dict[str, str] = {}
        """What is set for each runner beside the environment of the demo."""
        self.ready = ready
        self.runners: dict[str, subprocess.Popen[bytes]] = {}

    @property
    def base_url(self) -> str:
        return str(self.ready["base_url"])

    def start_runner(self, name: str, enrolment_token: str) -> None:
        """A new runner process of this name, with a folder of its own."""
        state = self.folder / f"runner-{name}"
        command = runner_command(self.base_url, state, name, ("--slots", "2"))
        log = self.folder / f"runner-{name}.log"
        self.runners[name] = spawn(
            command, {**self.environment, "SEXTON_ENROLMENT_TOKEN": enrolment_token}, log
        )

    def runner_token(self, name: str) -> str:
        """The token that runner keeps in its folder."""
        kept = orjson.loads((self.folder / f"runner-{name}" / "runner.json").read_bytes())
        return str(kept["runner_token"])

    def kill_runner(self, name: str) -> None:
        """The hard way: no signal handler runs, nothing is told."""
        process = self.runners.pop(name)
        process.kill()
        process.wait()

    async def stop_runners(self) -> None:
        for process in self.runners.values():
            process.send_signal(signal.SIGTERM)
        with trio.move_on_after(STOP_S):
            for process in self.runners.values():
                await wait(process)
        for process in self.runners.values():
            if process.poll() is None:
                process.kill()
                process.wait()


@asynccontextmanager
async def open_demo_server(folder: Path) -> AsyncIterator[DemoServer]:
    """Start ``sexton up`` on any free port, and stop it and the runners at the end."""
    ready_file, log = folder / "ready.json", folder / "server.log"
    words = [
        "up",
        "--data",
        str(folder / "data"),
        "--port",
        "0",
        "--runners",
        "0",
        "--ready-file",
        str(ready_file),
    ]
    server = spawn([sys.executable, "-m", "sexton_cli.main", *words], {}, log)
    try:
        stage = DemoServer(folder, await _until_ready(server, ready_file))
        try:
            yield stage
        finally:
            with trio.CancelScope(shield=True):
                await stage.stop_runners()
    finally:
        with trio.CancelScope(shield=True):
            await _stop(server)


async def _until_ready(server: subprocess.Popen[bytes], ready_file: Path) -> dict[str, Any]:
    with trio.move_on_after(READY_S):
        while server.poll() is None:
            if ready_file.exists():
                ready: dict[str, Any] = orjson.loads(ready_file.read_bytes())
                return ready
            await trio.sleep(POLL_S)
    if server.returncode is None:
        raise NotReady(f"it was not ready within {READY_S:.0f} seconds")
    raise NotReady(f"it ended with status {server.returncode}")


async def _stop(server: subprocess.Popen[bytes]) -> None:
    if server.poll() is None:
        server.send_signal(signal.SIGTERM)
        with trio.move_on_after(STOP_S):
            await wait(server)
    if server.poll() is None:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()
