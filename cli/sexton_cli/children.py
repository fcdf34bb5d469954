"""Starts local runners as processes of their own, and starts them again when they die."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import structlog
import trio

FIRST_WAIT_S = 0.5
MAX_WAIT_S = 10.0
STOP_S = 25.0
"""A runner drains for 20 s at most."""
REFUSES = frozenset({69, 77, 78})
"""Exit statuses of a runner that will not run however often it is started."""

log = structlog.get_logger()


def runner_command(base_url: str, state: Path, host_id: str, options: tuple[str, ...]) -> list[str]:
    """The words that start a runner; it dies with this process, for nobody else would stop it."""
    setpriv = shutil.which("setpriv")
    guard = [setpriv, "--pdeathsig", "KILL", "--"] if setpriv else []
    words = ["--base-url", base_url, "--state-dir", str(state), "--host-id", host_id]
    return [*guard, sys.executable, "-m", "sexton_runner", *words, *options]


def spawn(command: list[str], environment: dict[str, str], log_file: Path) -> subprocess.Popen[bytes]:
    """Start from the main thread: a parent-death signal follows the thread that forks."""
    with log_file.open("ab") as output:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=os.environ | environment,
            start_new_session=True,
        )


async def wait(process: subprocess.Popen[bytes]) -> int:
    """Its exit status, without holding a thread."""
    descriptor = os.pidfd_open(process.pid)
    try:
        await trio.lowlevel.wait_readable(descriptor)
    finally:
        os.close(descriptor)
    return process.wait()


@dataclass(slots=True)
class LocalRunner:
    """One runner that belongs to this server: respawned with back-off until the server stops."""

    number: int
    command: list[str]
    environment: Callable[[], dict[str, str]]
    log_file: Path
    process: subprocess.Popen[bytes] | None = field(default=None, init=False)
    refused: int | None = field(default=None, init=False)

    async def keep(self) -> None:
        """Run it until cancelled; then let it drain. Gives up on a runner that refuses to start."""
        pause = FIRST_WAIT_S
        try:
            while True:
                started = trio.current_time()
                process = self.process = spawn(self.command, self.environment(), self.log_file)
                status = await wait(process)
                if status in REFUSES:
                    self.refused = status
                    return
                pause = (
                    FIRST_WAIT_S if trio.current_time() - started > MAX_WAIT_S else min(2 * pause, MAX_WAIT_S)
                )
                log.warning("runner_ended", runner=self.number, status=status, again_in_s=pause)
                await trio.sleep(pause)
        finally:
            await self._stop()

    async def _stop(self) -> None:
        process = self.process
        if process is None or process.poll() is not None:
            return
        process.send_signal(signal.SIGTERM)
        with trio.CancelScope(shield=True, deadline=trio.current_time() + STOP_S):
            await wait(process)
        if process.poll() is None:
            process.kill()
            process.wait()

    def last_words(self) -> str:
        """The end of its log, for the operator."""
        try:
            lines = self.log_file.read_text(errors="replace").strip().splitlines()
        except OSError:
            return ""
        return lines[-1] if lines else ""
