"""Deals with what an earlier server left in the data directory, whatever state it left it in."""

import logging
import os
import signal
from collections.abc import Callable
from pathlib import Path

from sexton_storage.embedded.processes import Other, look_at
from sexton_storage.startup import ConnectFailed

ORPHAN_STOP_S = 120.0
"""How long an orphan may take to shut down; it writes a checkpoint first."""
ORPHAN_QUIT_S = 20.0
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


def _disarm(data: Path) -> None:
    """Keep PostgreSQL from taking a zombie, or a stranger with the old number, for the server that wrote the file.

    The file itself stays: it also names the shared memory, by which PostgreSQL sees whether backends of a dead server
    still live. Only the number is replaced, by one that cannot be.
    """
    pid = recorded_pid(data)
    if pid is None or pid == IMPOSSIBLE_PID:
        _drop_if_empty(data / "postmaster.pid")
        return
    path = data / "postmaster.pid"
    _, _, rest = path.read_text(encoding="utf-8").partition("\n")
    owner, substitute = path.stat(), data / "postmaster.pid.new"
    substitute.write_text(f"{IMPOSSIBLE_PID}\n{rest}", encoding="utf-8")
    substitute.chmod(0o600)
    os.chown(substitute, owner.st_uid, owner.st_gid)
    substitute.replace(path)


def _drop_if_empty(path: Path) -> None:
    # A crash in the moment of writing leaves an empty file, which PostgreSQL refuses to start over.
    if path.exists() and not path.read_bytes().strip():
        path.unlink()
