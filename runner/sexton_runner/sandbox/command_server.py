"""Runs one command after another inside a sandbox, on orders from the runner outside.

This file is copied into the sandbox and run there by itself: it uses the standard library only. Orders come
as lines of JSON on standard input: ``{"argv", "env", "cwd", "stdin"}`` begins a command (``stdin`` as base64)
and ``{"kill": true}`` ends it. What happens goes back on standard output as frames: a letter, the length in
four bytes, the content. ``r`` ready, ``o`` and ``e`` output and errors, ``l`` what it left running, ``x``
the exit status, ``f`` a command that could not be started.

With ``--lasting`` what a command leaves running goes on until the sandbox ends, and what it still prints is
written to a file. Otherwise it is killed with its command.
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
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

READ_BYTES = 32768
PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_CHILD_SUBREAPER = 36
LOWEST_PIDS = 20
PIPE_BYTES = 65536
BURY_MS = 1000
LOG_BYTES = 1 << 20
"""The size at which a log is put aside, once; so a process that goes on has at most twice that."""
MAX_TOLD = 16
MAX_COMMAND_CHARS = 200


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


class Logs:
    """What commands that have ended left running still prints: a file for each command, bounded."""

    def __init__(self) -> None:
        self._open: dict[int, tuple[IO[bytes], Path]] = {}
        self._count = 0

    def keep(self, streams: Iterable[IO[bytes]], folder: str) -> Path:
        """Go on reading the streams, into a file of their own below the folder."""
        self._count += 1
        path = Path(folder) / "processes" / f"{self._count}.log"
        with contextlib.suppress(OSError):
            path.parent.mkdir(exist_ok=True)
            path.touch()
        for stream in streams:
            self._open[stream.fileno()] = (stream, path)
        return path

    def descriptors(self) -> tuple[int, ...]:
        """Give what is read from."""
        return tuple(self._open)

    def take(self, descriptor: int) -> bool:
        """Write down what is there to be read; False at its end."""
        stream, path = self._open[descriptor]
        piece = os.read(descriptor, READ_BYTES)
        if not piece:
            stream.close()
            del self._open[descriptor]
            return False
        # Whatever a command did to the file, what is lost is its own.
        with contextlib.suppress(OSError):
            if path.stat().st_size > LOG_BYTES:
                path.replace(path.with_suffix(".old"))
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
            file = os.open(path, flags, 0o600)
            try:
                os.write(file, piece)
            finally:
                os.close(file)
        return True

    def write_until_readable(self, descriptor: int) -> None:
        """Write down what comes until there is something to read from ``descriptor``."""
        while True:
            poller = select.poll()
            for each in (descriptor, *self._open):
                poller.register(each, select.POLLIN | select.POLLHUP)
            ready = [each for each, _ in poller.poll(BURY_MS)]
            if not ready:
                bury()
            for each in ready:
                if each in self._open:
                    self.take(each)
            if descriptor in ready:
                return


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


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
