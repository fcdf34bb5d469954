"""Deals with what an earlier server left in the data directory, whatever state it left it in."""

import logging
import signal
from collections.abc import Callable
from pathlib import Path

import trio

from sexton_storage.embedded.accounts import Account, write_file
from sexton_storage.embedded.processes import Other, look_at, processes_in
from sexton_storage.startup import ConnectFailed

ORPHAN_STOP_S = 120.0
"""How long an orphan may take to shut down; it writes a checkpoint first."""
ORPHAN_QUIT_S = 20.0
BACKENDS_END_S = 60.0
IMPOSSIBLE_PID = 2**22 + 1
"""Above Linux's highest process number: nobody has it, ever."""
log = logging.getLogger("sexton.storage")


def recorded_pid(data: Path) -> int | None:
    """Read who served last from ``postmaster.pid``; None when it is missing or says nothing."""
    try:
        return int((data / "postmaster.pid").read_text(encoding="utf-8").split("\n", 1)[0])
    except (OSError, ValueError):
        return None


async def clear_remains(data: Path, sockets: Path, progress: Callable[[str], None]) -> None:
    """Make the way free for a new server: stop a live orphan, disarm what a dead one left.

    Must be called by the owner of the data directory only (its lock is held).
    """
    pid = recorded_pid(data)
    seen = None if pid is None else look_at(pid)
    if seen is not None and seen.is_postgres_of(data):
        progress("stopping the database server that an earlier process left behind")
        await _stop(seen.pid, data)
    await _until_nobody_works_in(data)
    _disarm(data)
    # The socket's own lock file guards nothing that postmaster.pid does not, and has the same fault.
    for name in (".s.PGSQL.5432.lock", ".s.PGSQL.5432"):
        (sockets / name).unlink(missing_ok=True)


async def _stop(pid: int, data: Path) -> None:
    try:
        orphan = Other(pid)
    except ProcessLookupError:
        return
    try:
        seen = look_at(pid)
        if seen is None or not seen.is_postgres_of(data):
            return
        log.warning("stopping process %d, a database server that an earlier process left behind", pid)
        steps = (
            (signal.SIGINT, ORPHAN_STOP_S),
            (signal.SIGQUIT, ORPHAN_QUIT_S),
            (signal.SIGKILL, ORPHAN_QUIT_S),
        )
        for number, seconds in steps:
            orphan.send(number)
            if await orphan.wait(seconds):
                return
        raise ConnectFailed(f"process {pid}, which serves {data}, cannot be stopped")
    finally:
        orphan.close()


async def _until_nobody_works_in(data: Path) -> None:
    """Wait for the backends of a killed server: each ends when it sees that its postmaster is gone."""
    at_work = processes_in(data)
    with trio.move_on_after(BACKENDS_END_S) as scope:
        while at_work := processes_in(data):  # noqa: ASYNC110 - nobody tells when a stranger's child ends
            await trio.sleep(0.02)
    if scope.cancelled_caught:
        raise ConnectFailed(f"processes {at_work} of an earlier database server still work in {data}")


def _disarm(data: Path) -> None:
    """Keep PostgreSQL from taking a zombie, or a stranger with the old number, for the server of before.

    The file itself stays: it also names the shared memory, by which PostgreSQL sees for itself whether
    backends of a dead server still live. Only the number is replaced, by one that cannot be. A file without
    a number (a crash while it was written) says nothing, and PostgreSQL refuses to start over it.
    """
    path = data / "postmaster.pid"
    pid = recorded_pid(data)
    if pid is None:
        path.unlink(missing_ok=True)
        return
    _, _, rest = path.read_text(encoding="utf-8").partition("\n")
    owner = path.lstat()
    write_file(path, f"{IMPOSSIBLE_PID}\n{rest}", Account(owner.st_uid, owner.st_gid))
