"""Forks a supervisor for each run: ``python -m sexton_runner.fork_server PID``, started by a runner.

It has imported everything, has one thread and no event loop, so that a fork is cheap and safe. Requests come
as packets on standard input: a list of modules to import first, and the supervisor's end of a pair of
sockets.
"""

import argparse
import contextlib
import ctypes
import gc
import importlib
import os
import resource
import select
import signal
import socket
import sys
from pathlib import Path

import orjson
import structlog
import trio

from sexton_runner.logs import LogFormat, LogLevel, LogSettings, configure_logs
from sexton_runner.supervisors.launcher import HELLO
from sexton_runner.supervisors.process import supervise

PR_SET_PDEATHSIG = 1
PR_SET_NAME = 15
REQUEST_BYTES = 65536
NICENESS = 5  # What a run makes its supervisor do does not come before the renewal of anybody's lease.
DATA_BYTES = 1 << 30
OPEN_FILES = 1024
OOM_SCORE = "500"  # When the host's memory runs out a run goes before its runner.
BROKEN = 70
log = structlog.get_logger()


def die_with(parent: int) -> None:
    """Ask the kernel to kill this process when its parent ends; exit if it has ended already."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(BROKEN)


def leave_signals_to_the_runner() -> None:
    """Outlive what a service manager sends to every process of a service: the runner drains first.

    A handler, unlike the choice to ignore, is not inherited by the programs that are started.
    """
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: None)


def bound() -> None:
    """Give a supervisor less than its runner has: of memory, files, processor time and mercy."""
    os.nice(NICENESS)
    for what, most in ((resource.RLIMIT_DATA, DATA_BYTES), (resource.RLIMIT_NOFILE, OPEN_FILES)):
        soft, hard = resource.getrlimit(what)
        # The soft bound only: programs in the sandbox have bounds of their own.
        least = most if soft == resource.RLIM_INFINITY else min(soft, most)
        resource.setrlimit(what, (least, hard))
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(OOM_SCORE, encoding="ascii")


class ForkServer:
    """One thread, one socket, and the pidfds of the supervisors that are to be reaped."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._children: set[int] = set()
        self._poller = select.poll()
        self._poller.register(control, select.POLLIN)

    def serve(self) -> None:
        """Fork at each request until the runner has closed its end."""
        while True:
            for descriptor, _ in self._poller.poll():
                if descriptor in self._children:
                    self._reap(descriptor)
                elif not self._take():
                    return

    def _reap(self, pidfd: int) -> None:
        os.waitid(os.P_PIDFD, pidfd, os.WEXITED)
        self._poller.unregister(pidfd)
        self._children.remove(pidfd)
        os.close(pidfd)

    def _take(self) -> bool:
        content, descriptors, _, _ = socket.recv_fds(self._control, REQUEST_BYTES, 1)
        if not content:
            return False
        for name in orjson.loads(content):
            with contextlib.suppress(ImportError):  # The run says what is missing, where it needs it.
                importlib.import_module(name)
        for descriptor in descriptors:
            self._fork(descriptor)
        return True

    def _fork(self, descriptor: int) -> None:
        gc.freeze()
        server = os.getpid()
        pid = os.fork()
        if pid == 0:
            self._become(descriptor, server)
        pidfd = os.pidfd_open(pid)
        self._children.add(pidfd)
        self._poller.register(pidfd, select.POLLIN)
        with socket.socket(fileno=descriptor) as theirs, contextlib.suppress(OSError):
            # What is written here comes out at the runner's end, before anything of the supervisor's.
            socket.send_fds(theirs, [HELLO], [pidfd])

    def _become(self, descriptor: int, server: int) -> None:
        status = BROKEN
        try:
            die_with(server)
            os.setsid()
            ctypes.CDLL(None).prctl(PR_SET_NAME, b"sexton-run", 0, 0, 0)
            self._control.close()
            for pidfd in self._children:
                os.close(pidfd)
            bound()
            trio.run(supervise, descriptor)
            status = 0
        except BaseException:
            log.exception("supervisor_broken")  # And nothing of the server's goes on in its child.
        finally:
            with contextlib.suppress(OSError, ValueError):
                sys.stderr.flush()
            os._exit(status)


def main(words: list[str]) -> int:
    """Serve the runner whose process id is the first word; the others say how it logs."""
    parser = argparse.ArgumentParser()
    parser.add_argument("runner", type=int)
    parser.add_argument("--log-format", type=LogFormat, default=LogFormat.AUTO)
    parser.add_argument("--log-level", type=LogLevel, default=LogLevel.INFO)
    given = parser.parse_args(words)
    die_with(given.runner)
    leave_signals_to_the_runner()
    configure_logs(LogSettings(given.log_format, given.log_level))
    control = socket.socket(fileno=os.dup(0))
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    gc.collect()
    ForkServer(control).serve()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
