"""Starts a child from the main thread and waits for it by its pidfd."""

import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

import trio

from sexton_runner.errors import SandboxUnavailable

REAP_PATIENCE_S = 5.0


class Child:
    """A running child process with its three streams. Whoever starts it must ``finish`` it."""

    def __init__(self, popen: "subprocess.Popen[bytes]") -> None:
        self._popen = popen
        self._pidfd = os.pidfd_open(popen.pid)
        self.stdin, self.stdout, self.stderr = (
            _stream(file) for file in (popen.stdin, popen.stdout, popen.stderr)
        )

    def __repr__(self) -> str:
        return f"<Child {self._popen.pid}>"

    @property
    def pid(self) -> int:
        """Give the process id; stays ours until ``finish`` has reaped it."""
        return self._popen.pid

    def first_inside(self) -> int:
        """Give the first process of the sandbox's namespace; raises ``OSError`` or ``IndexError`` without."""
        return only_child(self.pid)

    async def ended(self) -> None:
        """Wait for the end; its number stays ours until it is reaped."""
        if self._popen.returncode is None:
            await trio.lowlevel.wait_readable(self._pidfd)

    async def wait(self) -> int:
        """Wait for the end and give the exit status, negative for a signal."""
        if self._popen.returncode is None:
            await self.ended()
            # Not reaped yet, so the group's number is still ours: what was left running goes with its leader.
            self.kill()
        return self._popen.wait()  # The pidfd is readable: this does not block.

    def kill(self) -> None:
        """Kill the child and its session's group; harmless when it has ended."""
        if self._popen.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._popen.pid, signal.SIGKILL)
            self._popen.kill()

    async def finish(self) -> None:
        """Kill, reap and close; not cancellable, bounded by ``REAP_PATIENCE_S``."""
        self.kill()
        with trio.CancelScope(shield=True), trio.move_on_after(REAP_PATIENCE_S):
            await self.wait()
        for stream in (self.stdin, self.stdout, self.stderr):
            with trio.CancelScope(shield=True):
                await stream.aclose()
        os.close(self._pidfd)


def start(argv: Sequence[str], env: Mapping[str, str], pass_fds: Sequence[int] = ()) -> Child:
    """Start ``argv`` in a session of its own; raises ``SandboxUnavailable``."""
    return Child(popen(argv, env, pass_fds))


def popen(
    argv: Sequence[str], env: Mapping[str, str], pass_fds: Sequence[int] = ()
) -> "subprocess.Popen[bytes]":
    """Start ``argv`` in a session of its own, for whoever makes a child of it.

    A parent-death signal follows the thread that forked, and a worker thread of trio's ends when it has
    been idle for
    ten seconds: only the main thread lives as long as the process.
    """
    if threading.current_thread() is not threading.main_thread():
        raise SandboxUnavailable("commands can only be started from the main thread")
    try:
        return subprocess.Popen(
            list(argv),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(env),
            start_new_session=True,
            pass_fds=pass_fds,
        )
    except OSError as fault:
        raise SandboxUnavailable(f"{argv[0]} cannot be started: {fault}") from fault


def only_child(pid: int) -> int:
    """Give the first child of a process; raises ``OSError`` or ``IndexError`` where it has none."""
    return int(Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()[0])


def _stream(file: IO[bytes] | None) -> trio.lowlevel.FdStream:
    if file is None:
        raise TypeError("a child is started with three pipes")
    copy = os.dup(file.fileno())
    file.close()
    return trio.lowlevel.FdStream(copy)
