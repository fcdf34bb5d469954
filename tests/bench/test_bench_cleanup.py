"""leasebench as a process that is ended from outside: nothing of it may stay."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import trio

ROOT = Path(__file__).parents[2]
SERVED = str(Path(__file__).with_name("lease_table_with_service.py"))
WITHIN_S = 180
LOOK_AGAIN_S = 0.3
"""To look at all processes is work."""
AT_WORK = (b'"role": "rates"', b"sleep(3600)", b"bin/postgres")
MEASURE = [sys.executable, "-m", "bench.leasebench", SERVED, "--no-failures", "--seconds", "600", "--out"]
IN_A_SHELL = ["sh", "-c", '"$@" & wait', "sh"]


class Running:
    """One leasebench in the middle of a loop, and all processes that it consists of."""

    def __init__(self, words: Sequence[str], folder: Path) -> None:
        self.folder = folder
        with (folder / "log").open("wb") as log:
            self.process = subprocess.Popen(
                [*words, *MEASURE, str(folder / "out")],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=ROOT,
                env={**os.environ, "TMPDIR": str(folder)},
                start_new_session=True,
            )

    async def until_at_work(self) -> None:
        """Until PostgreSQL, the service and the process that holds leases run beside each other."""
        with trio.fail_after(WITHIN_S):
            while not all(any(word in command for _, command in self._processes()) for word in AT_WORK):
                assert self.process.poll() is None, (self.folder / "log").read_text()
                await trio.sleep(LOOK_AGAIN_S)

    async def until_nothing_is_left(self) -> None:
        with trio.fail_after(WITHIN_S):
            while self._processes() or self.process.poll() is None:
                await trio.sleep(LOOK_AGAIN_S)

    def measuring(self) -> int:
        """The process that measures: the child of the one that waits for it."""
        return [pid for pid, command in self._processes() if b"bench.leasebench" in command][1]

    def _processes(self) -> list[tuple[int, bytes]]:
        """The processes of this run with their commands, oldest first; zombies have no command."""
        found: list[tuple[int, int, bytes]] = []
        for folder in Path("/proc").iterdir():
            if not folder.name.isdigit():
                continue
            try:
                ours = f"TMPDIR={self.folder}".encode() in (folder / "environ").read_bytes()
                command = (folder / "cmdline").read_bytes()
                # Numbers begin again at their end, so the lower one may be the younger.
                started = int((folder / "stat").read_text().rpartition(")")[2].split()[19])
            except OSError:
                continue
            if ours and command:
                found.append((started, int(folder.name), command))
        return [(pid, command) for _, pid, command in sorted(found)]

    def kill_all(self) -> None:
        for pid, _ in self._processes():
            os.kill(pid, signal.SIGKILL)
        self.process.wait()


@asynccontextmanager
async def open_running(**commands: Sequence[str]) -> AsyncIterator[dict[str, Running]]:
    """Several at once: they wait more than they work."""
    running: dict[str, Running] = {}
    # A socket's path is short, which a test's own folder is not.
    folder = Path(tempfile.mkdtemp(prefix="sx-"))
    try:
        for name, words in commands.items():
            (folder / name).mkdir()
            running[name] = Running(words, folder / name)
        for one in running.values():
            await one.until_at_work()
        yield running
    finally:
        for one in running.values():
            one.kill_all()
        shutil.rmtree(folder)


async def test_nothing_stays_behind_however_leasebench_is_ended() -> None:
    endings: dict[str, Callable[[Running], None]] = {
        "killed": lambda one: os.kill(one.measuring(), signal.SIGKILL),
        "orphaned": lambda one: one.process.kill(),
    }
    # Whoever is told to end ends as an orphan does: its parent's death is told by SIGTERM.
    async with open_running(killed=[], orphaned=IN_A_SHELL) as running:
        for name, end in endings.items():
            end(running[name])

        for one in running.values():
            await one.until_nothing_is_left()

        left = {path.name for one in running.values() for path in one.folder.iterdir()}

        assert [one.process.returncode for one in running.values()] == [128 + 9, -9]
        # A run that is ended as one of its processes fails may have written its page, which is for the user.
        assert left - {"out"} == {"log"}
