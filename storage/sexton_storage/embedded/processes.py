"""Waits for processes without a thread, and looks at processes that are not ours."""

import os
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import trio


async def wait_process(process: "subprocess.Popen[bytes]") -> int:
    """Wait until a child has ended and give its exit status; a cancelled wait leaves it running."""
    if process.poll() is None:
        descriptor = os.pidfd_open(process.pid)
        try:
            await trio.lowlevel.wait_readable(descriptor)
        finally:
            os.close(descriptor)
    return process.wait()


@dataclass(frozen=True, slots=True)
class Seen:
    """A process as ``/proc`` shows it."""

    pid: int
    is_zombie: bool
    command: Sequence[str]

    def is_postgres_of(self, data: Path) -> bool:
        """Whether it serves this very data directory, and is not one that was given its number later."""
        if self.is_zombie or not self.command:
            return False
        return os.path.basename(self.command[0]) == "postgres" and str(data) in self.command  # noqa: PTH119 - text


def look_at(pid: int) -> Seen | None:
    """Look at a process; None when there is none of that number."""
    try:
        state = (
            Path(f"/proc/{pid}/stat")
            .read_text(encoding="utf-8", errors="replace")
            .rsplit(")", 1)[1]
            .split()[0]
        )
        command = Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0").split(b"\0")
    except (OSError, IndexError):
        return None
    return Seen(pid, state in {"Z", "X"}, [os.fsdecode(word) for word in command])


def processes_in(folder: Path) -> list[int]:
    """List PostgreSQL's processes that work in this folder, as far as they are ours to see.

    Every one of them does; and so may somebody's shell, which is nobody's business.
    """
    found = []
    for entry in os.listdir("/proc"):  # noqa: PTH208 - names are wanted, a thousand of them
        if not entry.isdigit():
            continue
        try:
            works_in = os.readlink(f"/proc/{entry}/cwd")  # noqa: PTH115 - as above
            name = Path(f"/proc/{entry}/comm").read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        if works_in == str(folder) and name.strip() == "postgres":
            found.append(int(entry))
    return found


class Other:
    """A running process that is not our child, held so that its number cannot come to mean another."""

    def __init__(self, pid: int) -> None:
        self._descriptor = os.pidfd_open(pid)

    def close(self) -> None:
        os.close(self._descriptor)

    def send(self, number: signal.Signals) -> None:
        """Send a signal, unless it has ended."""
        try:
            signal.pidfd_send_signal(self._descriptor, number)
        except ProcessLookupError:
            return

    async def wait(self, seconds: float) -> bool:
        """Whether it has ended within the time. One that nobody has reaped yet has ended too."""
        with trio.move_on_after(seconds) as scope:
            await trio.lowlevel.wait_readable(self._descriptor)
        return not scope.cancelled_caught
