"""Helpers that run a whole runner, in this process or in its own."""

from __future__ import annotations

import atexit
import os
import random
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import trio

from sexton_runner.main import run_runner
from sexton_runner.runner import Runner
from sexton_runner.sandbox.cgroup import find_layout
from sexton_runner.sandbox.limits import Limits
from sexton_runner.sandbox.probe import group_name, make_sandbox
from sexton_runner.settings import RunnerSettings, SandboxTier
from sexton_runner.supervisors.launcher import Launcher
from sexton_runner.timing import Timing
from tests.fakes.control_plane import TOKEN, Plane
from tests.patience import PATIENCE_S

PACE = Timing(
    poll_wait_s=5.0,
    heartbeat_s=0.05,
    flush_s=0.01,
    backoff_first_s=0.01,
    backoff_max_s=0.05,
    renew_retry_s=0.02,
    flush_patience_s=2.0,
    let_go_s=2.0,
)
# One for all the runners of this process, as a runner has one for all its runs: it takes a while to start.
LAUNCHER = Launcher()
atexit.register(LAUNCHER.close)
LIMITS = Limits(wall_s=1, memory_bytes=1 << 26, pids=8)
SOURCE = Path(__file__).resolve().parents[2] / "runner"

# A command that goes on until the test resolves its gate, and uses no time while it waits.
WAITING = "Wait.\n```sh\nsexton-step step waiting\nsexton-step approve --action wait\n```\n"


def settings_for(plane: Plane, folder: Path, **changes: Any) -> RunnerSettings:
    """Give settings that are good for ``plane``."""
    given: dict[str, Any] = {"base_url": plane.base_url, "state_dir": folder / "state", "slots": 2}
    return RunnerSettings(**given | {"runner_token": TOKEN} | changes)


@asynccontextmanager
async def running(settings: RunnerSettings, timing: Timing = PACE) -> AsyncIterator[Runner]:
    """Run a runner in this process; on the way out it is stopped, and must end."""
    runners: list[Runner] = []
    up = trio.Event()

    def announce(runner: Runner) -> None:
        runners.append(runner)
        up.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(
            partial(
                run_runner,
                settings,
                timing=timing,
                rng=random.Random(1),
                announce=announce,
                launcher=LAUNCHER,
            )
        )
        await up.wait()
        with trio.fail_after(PATIENCE_S):
            yield runners[0]
            runners[0].stop("the test is over")


class Process:
    """A runner in a process of its own."""

    def __init__(self, popen: subprocess.Popen[bytes], log: Path) -> None:
        self._popen, self._log = popen, log

    @property
    def log(self) -> str:
        """What it has written to stderr."""
        return self._log.read_text()

    @property
    def pid(self) -> int:
        return self._popen.pid

    def send(self, number: signal.Signals) -> None:
        """Send a signal."""
        self._popen.send_signal(number)

    async def ended(self) -> int:
        """Wait for its end and give the exit status."""
        pidfd = os.pidfd_open(self._popen.pid)
        try:
            with trio.fail_after(PATIENCE_S):
                await trio.lowlevel.wait_readable(pidfd)
        finally:
            os.close(pidfd)
        return self._popen.wait()


ALERT = """
import sys
from sexton_runner.__main__ import read_arguments
from sexton_runner.main import main
from sexton_runner.timing import Timing
sys.exit(main(read_arguments(sys.argv[1:]), timing=Timing(heartbeat_s=0.1)))
"""


PATIENT = """
import sys
from sexton_runner.__main__ import read_arguments
from sexton_runner.main import main
from sexton_runner.timing import Timing
sys.exit(main(read_arguments(sys.argv[1:]), timing=Timing(call_timeout_s=600.0, transcript_s=0.1)))
"""
"""A runner that waits for the answer to a call for as long as a test keeps it back."""


def command_line(settings: Mapping[str, Any], *, alert: bool = False) -> list[str]:
    """Spell a runner's command line; an ``alert`` one sends many heartbeats."""
    words = [f"--{name.replace('_', '-')}={value}" for name, value in settings.items()]
    return [sys.executable, *(["-c", ALERT] if alert else ["-m", "sexton_runner"]), *words]


@asynccontextmanager
async def process(
    folder: Path, argv: list[str], env: Mapping[str, str] | None = None, *, clear: bool = True
) -> AsyncIterator[Process]:
    """Start a runner process; on the way out it is killed if it still lives."""
    log = folder / "runner.log"
    given = {"PATH": os.environ["PATH"], "PYTHONPATH": str(SOURCE), "SEXTON_RUNNER_TOKEN": TOKEN} | dict(
        env or {}
    )
    with log.open("wb") as stderr:
        child = subprocess.Popen(argv, stderr=stderr, stdout=subprocess.DEVNULL, env=given)
    try:
        yield Process(child, log)
    finally:
        if child.poll() is None:
            child.kill()
        child.wait()
        with trio.CancelScope(shield=True):
            await eventually(lambda: not clear or cleared(folder / "state"))


def groups_left(state_dir: Path) -> list[Path]:
    """Give the control groups of the runner with this state folder."""
    layout = find_layout(f"test-{os.getpid()}", LIMITS)
    parents = () if layout is None else layout.parents
    return [folder for parent in parents for folder in parent.glob(f"sexton-{group_name(state_dir)}-*")]


def cleared(state_dir: Path) -> bool:
    """Clear away what a killed runner left, as its successor would, and tell whether all of it is gone."""
    make_sandbox(SandboxTier.NONE, LIMITS, state_dir)
    return groups_left(state_dir) == []


def processes_with(marker: str) -> list[int]:
    """Give the host's processes whose command line holds ``marker``."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                words = (folder / "cmdline").read_bytes()
                state = re.search(r"^State:\s+(\S)", (folder / "status").read_text(), re.MULTILINE)
            except OSError:
                continue
            if marker.encode() in words and state is not None and state[1] != "Z":
                found.append(int(folder.name))
    return found


async def eventually(ready: Callable[[], object]) -> None:
    """Wait for something outside this process, which cannot tell us; gives up loudly."""
    with trio.fail_after(PATIENCE_S):
        while not ready():
            await trio.sleep(0.005)


async def gone(marker: str) -> None:
    """Wait until no process of the host bears ``marker``."""
    await eventually(lambda: not processes_with(marker))
