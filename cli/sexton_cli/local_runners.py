"""Starts local runners as processes of their own, and starts them again when they die."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

import structlog
import trio

FIRST_WAIT_S = 0.5
MAX_WAIT_S = 10.0
LET_GO_S = 5.0
"""What a runner needs to give its leases back, once its time to drain is over."""
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
    """The process's exit status, without holding a thread."""
    if process.poll() is not None:
        # Reaped: its number may be another's by now.
        return process.returncode
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
    has_died: Callable[[], Awaitable[None]]
    """Told of each end, before the next start: what it held is free."""
    drain_s: float
    hastened: trio.Event
    """Set when there is no time left to drain."""
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
                await self.has_died()
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
        with trio.CancelScope(shield=True):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._hasten, process)
                with trio.move_on_after(self.drain_s + LET_GO_S):
                    await wait(process)
                nursery.cancel_scope.cancel()
        if process.poll() is None:
            process.kill()
            process.wait()

    async def _hasten(self, process: subprocess.Popen[bytes]) -> None:
        await self.hastened.wait()
        # A second one has a runner give back what it holds.
        process.send_signal(signal.SIGTERM)
        await trio.sleep(LET_GO_S)
        process.kill()

    def last_words(self) -> str:
        """The end of its log, for the operator."""
        try:
            lines = self.log_file.read_text(errors="replace").strip().splitlines()
        except OSError:
            return ""
        return lines[-1] if lines else ""
