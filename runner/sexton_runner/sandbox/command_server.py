"""Runs one command after another inside a sandbox, on orders from the runner outside.

It is put into the sandbox with the modules that it imports (``command_bundle``), and run there by itself:
they use the standard library only. Orders come as lines of JSON on standard input: ``{"argv", "env", "cwd",
"stdin"}`` begins a command (``stdin`` as base64) and ``{"kill": true}`` ends it. What happens goes back on
standard output as frames: a letter, the length in four bytes, the content. ``r`` ready, ``o`` and ``e``
output and errors, ``l`` what it left running, ``x`` the exit status, ``f`` a command that could not be
started.

With ``--lasting`` what a command leaves running goes on until the sandbox ends, and what it still prints is
written to a file. Otherwise it is killed with its command.
"""

import base64
import ctypes
import json
import os
import select
import subprocess
import tempfile
from collections.abc import Iterable
from typing import IO, Any

from sexton_runner.sandbox.command_logs import BURY_MS, READ_BYTES, Logs
from sexton_runner.sandbox.command_processes import (
    bury,
    children,
    clear_away,
    die_with_parent,
    left_by,
    stop,
    told,
)

PR_SET_DUMPABLE = 4
PR_SET_CHILD_SUBREAPER = 36
LOWEST_PIDS = 20
PIPE_BYTES = 65536


class Orders:
    """The lines on standard input; None when the runner has gone."""

    def __init__(self, logs: "Logs") -> None:
        self._held = b""
        self._logs = logs

    def wait(self) -> dict[str, Any] | None:
        """Give the next order; meanwhile what goes on is written down."""
        while b"\n" not in self._held:
            self._logs.write_until_readable(0)
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


def open_scratch() -> int:
    """Open a file without a name; where the memory of a sandbox is watched there is no memfd."""
    try:
        return os.memfd_create("stdin")
    except OSError:
        with tempfile.TemporaryFile() as file:
            return os.dup(file.fileno())


def perform(order: dict[str, Any], orders: Orders, logs: Logs, *, alone: bool, lasting: bool) -> bool:
    """Carry out one command; give False when the runner has gone meanwhile."""
    # What earlier commands left is known before this one can leave anything.
    before = [*children()] if lasting else []
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
    if lasting:
        return attend_lasting(child, orders, logs, folder=order["env"]["TMPDIR"], before=before)
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


def attend_lasting(
    child: "subprocess.Popen[bytes]", orders: Orders, logs: Logs, *, folder: str, before: Iterable[int]
) -> bool:
    """Pass on what a command writes until it has ended; what it left running goes on."""
    assert child.stdout is not None  # noqa: S101 - a started child has both pipes
    assert child.stderr is not None  # noqa: S101
    streams: dict[int, tuple[bytes, IO[bytes]]] = {
        child.stdout.fileno(): (b"o", child.stdout),
        child.stderr.fileno(): (b"e", child.stderr),
    }
    pidfd = os.pidfd_open(child.pid)
    poller = select.poll()
    for descriptor in (*streams, *logs.descriptors(), pidfd, 0):
        poller.register(descriptor, select.POLLIN | select.POLLHUP)
    running = True
    while running:
        ready = poller.poll(BURY_MS)
        if not ready:
            bury(child.pid)
        for descriptor, _ in ready:
            if descriptor in streams:
                if not pass_on(streams, descriptor):
                    poller.unregister(descriptor)
            elif descriptor == pidfd:
                running = False
            elif descriptor != 0:
                if not logs.take(descriptor):
                    poller.unregister(descriptor)
            elif orders.wait() is None:
                return False
            else:
                stop(child, before)
    child.wait()
    os.close(pidfd)
    drain(streams)
    left = told(left_by(child.pid, before))
    if streams:
        path = logs.keep([stream for _, stream in streams.values()], folder)
        left = [{**each, "log": str(path)} for each in left]
    if left:
        send(b"l", json.dumps(left).encode())
    send(b"x", str(child.returncode).encode())
    return True


def pass_on(streams: dict[int, tuple[bytes, IO[bytes]]], descriptor: int) -> bool:
    """Send on what is there to be read; False at its end."""
    kind, stream = streams[descriptor]
    if piece := os.read(descriptor, READ_BYTES):
        send(kind, piece)
        return True
    stream.close()
    del streams[descriptor]
    return False


def drain(streams: dict[int, tuple[bytes, IO[bytes]]]) -> None:
    """Send on what lay in the pipes when the command ended, and no more: who goes on may write for ever."""
    for _ in range(PIPE_BYTES // READ_BYTES):
        poller = select.poll()
        for descriptor in streams:
            poller.register(descriptor, select.POLLIN | select.POLLHUP)
        for descriptor, _ in poller.poll(0):
            pass_on(streams, descriptor)


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
    alone = "--alone" in words and (os.getpid() < LOWEST_PIDS or is_confined())
    libc = ctypes.CDLL(None, use_errno=True)
    # No command may look into this process, or trace it: both have the same user.
    libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    # Where there is no namespace that ends them, what is left running could outlive the run.
    lasting = alone and "--lasting" in words
    logs = Logs()
    orders = Orders(logs)
    send(b"r")
    while (order := orders.wait()) is not None:
        # An order to end a command that has ended by itself comes too late, and means nothing.
        if "argv" in order and not perform(order, orders, logs, alone=alone, lasting=lasting):
            break
    return 0
