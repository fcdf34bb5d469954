"""Finds, tells and ends the processes that commands leave running, from inside a sandbox.

It is run there beside the command server, and uses the standard library only.
"""

import contextlib
import ctypes
import os
import signal
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

PR_SET_PDEATHSIG = 1
MAX_TOLD = 16
MAX_COMMAND_CHARS = 200


def clear_away(*, alone: bool) -> None:
    """Kill and reap whatever the last command left running.

    In a process namespace or a Landlock domain of our own that is everything but ourselves. Elsewhere it is
    our descendants, which become our children when their parents end.
    """
    while True:
        if alone:
            with contextlib.suppress(ProcessLookupError):
                os.kill(-1, signal.SIGKILL)
        else:
            for pid in children():
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def children() -> Iterator[int]:
    """Give the processes whose parent is this one."""
    me = str(os.getpid())
    for file in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, IndexError):
            if file.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[1] == me:
                yield int(file.parent.name)


def parents() -> dict[int, int]:
    """Give every living process with its parent."""
    found = {}
    for file in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, IndexError, ValueError):
            state, parent = file.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[:2]
            if state not in "ZX":
                found[int(file.parent.name)] = int(parent)
    return found


def left_by(child: int, before: Iterable[int]) -> list[int]:
    """Give the processes of one command, those whose parents have ended as well.

    ``before`` are our children that earlier commands have left; what those start is theirs.
    """
    tree, me, others = parents(), os.getpid(), {*before}
    found = []
    for pid in tree:
        top = pid
        while tree.get(top, me) not in (me, child) and top != child:
            top = tree[top]
        if pid not in (me, 1) and top in tree and top not in others and pid != child:
            found.append(pid)
    return found


def stop(child: "subprocess.Popen[bytes]", before: Iterable[int]) -> None:
    """Kill one command and what it started, and leave the others' processes alone."""
    child.kill()
    # Twice, as they may fork meanwhile; what gets away even so ends with the sandbox, and counts until then.
    for _ in range(2):
        for pid in left_by(child.pid, before):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)


def bury(child: int | None = None) -> None:
    """Reap the dead whose parents ended before them, but never the command that is waited for."""
    for pid in children():
        if pid != child:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)


def told(pids: Iterable[int]) -> list[dict[str, Any]]:
    """Say which processes go on, by number and words."""
    found = []
    for pid in sorted(pids)[:MAX_TOLD]:
        with contextlib.suppress(OSError):
            words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").strip()
            found.append({"pid": pid, "command": words.decode("utf-8", "replace")[:MAX_COMMAND_CHARS]})
    return found


def die_with_parent() -> None:
    """Ask the kernel to kill this process when its parent ends."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
