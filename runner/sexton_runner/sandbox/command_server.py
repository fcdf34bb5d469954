"""Runs one command after another inside a sandbox, on orders from the runner outside.

This file is copied into the sandbox and run there by itself: it uses the standard library only. Orders come
as lines of JSON on standard input: ``{"argv", "env", "cwd", "stdin"}`` begins a command (``stdin`` as base64)
and ``{"kill": true}`` ends it. What happens goes back on standard output as frames: a letter, the length in
four bytes, the content. ``r`` ready, ``o`` and ``e`` output and errors, ``x`` the exit status, ``f`` a
command that could not be started.
"""

import base64
import contextlib
import ctypes
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

READ_BYTES = 32768
PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_CHILD_SUBREAPER = 36
LOWEST_PIDS = 20


class Orders:
    """The lines on standard input; None when the runner has gone."""

    def __init__(self) -> None:
        self._held = b""

    def wait(self) -> dict[str, Any] | None:
        """Give the next order."""
        while b"\n" not in self._held:
            piece = os.read(0, READ_BYTES)
            if not piece:
                return None
            self._held += piece
        line, _, self._held = self._held.partition(b"\n")
        order: dict[str, Any] = json.loads(line)
        return order


def send(kind: bytes, content: bytes = b"") -> None:
    """Write one frame, all of it."""
    frame = kind + len(content).to_bytes(4, "big") + content
    while frame:
        frame = frame[os.write(1, frame) :]


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


def die_with_parent() -> None:
    """Ask the kernel to kill this process when its parent ends."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def open_scratch() -> int:
    """Open a file without a name; where the memory of a sandbox is watched there is no memfd."""
    try:
        return os.memfd_create("stdin")
    except OSError:
        with tempfile.TemporaryFile() as file:
            return os.dup(file.fileno())


def perform(order: dict[str, Any], orders: Orders, *, alone: bool) -> bool:
    """Carry out one command; give False when the runner has gone meanwhile."""
    given = open_scratch()
    try:
        with open(given, "wb", closefd=False) as file:
            file.write(base64.b64decode(order["stdin"]))
        os.lseek(given, 0, os.SEEK_SET)
        child = subprocess.Popen(
            order["argv"],
            stdin=given,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=order["cwd"],
            env=order["env"],
            # Outside a namespace of its own the runner ends the whole process group, so nothing may leave it.
            start_new_session=alone,
            # There too a command must not outlive this process, which does not outlive the runner.
            preexec_fn=None if alone else die_with_parent,  # noqa: PLW1509 - this process has one thread
        )
    except (OSError, ValueError) as fault:
        send(b"f", str(fault).encode("utf-8", "replace")[:READ_BYTES])
        return True
    finally:
        os.close(given)
    return attend(child, orders, alone=alone)


def attend(child: "subprocess.Popen[bytes]", orders: Orders, *, alone: bool) -> bool:
    """Pass on what a command writes until it has ended and its streams are empty."""
    assert child.stdout is not None  # noqa: S101 - a started child has both pipes
    assert child.stderr is not None  # noqa: S101
    streams = {child.stdout.fileno(): (b"o", child.stdout), child.stderr.fileno(): (b"e", child.stderr)}
    pidfd = os.pidfd_open(child.pid)
    poller = select.poll()
    for descriptor in (*streams, pidfd, 0):
        poller.register(descriptor, select.POLLIN | select.POLLHUP)
    running = True
    while running or streams:
        for descriptor, _ in poller.poll():
            if descriptor in streams:
                kind, stream = streams[descriptor]
                if piece := os.read(descriptor, READ_BYTES):
                    send(kind, piece)
                else:
                    poller.unregister(descriptor)
                    stream.close()
                    del streams[descriptor]
            elif descriptor == pidfd:
                poller.unregister(pidfd)
                child.wait()
                clear_away(alone=alone)
                running = False
            elif orders.wait() is None:
                return False
            else:
                child.kill()
    os.close(pidfd)
    send(b"x", str(child.returncode).encode())
    return True


def is_confined() -> bool:
    """Tell whether the kernel keeps our signals from who started us."""
    try:
        os.kill(os.getppid(), 0)
    except PermissionError:
        return True
    return False


def main(words: list[str]) -> int:
    """Serve until standard input ends."""
    # ``kill(-1)`` is for a namespace or a Landlock domain of our own only; outside it would end all that the
    # user runs.
    alone = words == ["--alone"] and (os.getpid() < LOWEST_PIDS or is_confined())
    libc = ctypes.CDLL(None, use_errno=True)
    # No command may look into this process, or trace it: both have the same user.
    libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    orders = Orders()
    send(b"r")
    while (order := orders.wait()) is not None:
        # An order to end a command that has ended by itself comes too late, and means nothing.
        if "argv" in order and not perform(order, orders, alone=alone):
            break
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
