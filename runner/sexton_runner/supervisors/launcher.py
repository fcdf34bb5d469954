"""Starts supervisors: asks a process that has imported everything to fork, which takes milliseconds."""

import array
import contextlib
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence

import orjson
import trio

from sexton_runner.errors import RunnerError, SandboxUnavailable
from sexton_runner.logs import LogSettings
from sexton_runner.supervisors.messages import Pipe

SERVER = "sexton_runner.fork_server"
FORK_S = 30.0  # With the first import of everything, on a machine that is busy.
HELLO = b"p"
TRIES = 2


class NotStarted(RunnerError):
    """No supervisor could be started."""


class Launcher:
    """The way to the fork server. It is started with the first use, and again when it has died.

    It is started by the main thread, because its parent-death signal follows the thread that forked; the
    supervisors are children of its only thread, and so all of them die with it, as it does with the runner.
    """

    def __init__(self, log: LogSettings | None = None) -> None:
        self._log = log or LogSettings()
        self._server: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None

    def __repr__(self) -> str:
        return f"<Launcher {'resting' if self._server is None else self._server.pid}>"

    def start(self) -> None:
        """Start the fork server, if it does not run: it imports while the runner does something else."""
        if self._server is not None and self._server.poll() is None:
            return
        if threading.current_thread() is not threading.main_thread():
            raise SandboxUnavailable("supervisors can only be started from the main thread")
        self.close()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._control = ours
            ours.settimeout(0)
            self._server = subprocess.Popen(
                [sys.executable, "-P", "-m", SERVER, str(os.getpid()), *self._log.options],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                start_new_session=True,  # A Ctrl-C at a terminal is for the runner, which says what follows.
            )

    def close(self) -> None:
        """End the fork server, and whatever it has started."""
        if self._control is not None:
            self._control.close()
        if self._server is not None:
            self._server.kill()
            self._server.wait()
        self._server = self._control = None

    async def fork(self, modules: Sequence[str]) -> tuple[Pipe, int]:
        """Start a supervisor; give the pipe to it and its pidfd. Raises ``NotStarted``.

        ``modules`` are imported by the fork server first, once for all supervisors to come.
        """
        for _ in range(TRIES):
            ours, theirs = socket.socketpair()
            ours.settimeout(0)
            try:
                with theirs:
                    self._ask(modules, theirs)
                with trio.move_on_after(FORK_S):
                    pidfd = await _pidfd(ours)
                    return Pipe(trio.SocketStream(trio.socket.from_stdlib_socket(ours))), pidfd
            except OSError:
                pass  # The server has died under our hands: there is one more try with another.
            except BaseException:
                ours.close()
                raise
            ours.close()
            self.close()
        raise NotStarted("no process could be started for the run")

    def _ask(self, modules: Sequence[str], theirs: socket.socket) -> None:
        self.start()
        if self._control is None:
            raise ConnectionError("the fork server is not there")
        socket.send_fds(self._control, [orjson.dumps(list(modules))], [theirs.fileno()])


async def _pidfd(ours: socket.socket) -> int:
    size = array.array("i").itemsize
    await trio.lowlevel.wait_readable(ours)
    word, ancillary, _, _ = ours.recvmsg(len(HELLO), socket.CMSG_SPACE(size), socket.MSG_CMSG_CLOEXEC)
    for _level, _kind, content in ancillary:
        descriptors = array.array("i")
        descriptors.frombytes(content[:size])
        if word == HELLO:
            return descriptors[0]
        with contextlib.suppress(OSError):
            os.close(descriptors[0])
    raise ConnectionError("the fork server has ended")
