"""Sees to it that nothing of a benchmark stays behind, however it ends.

A benchmark starts a PostgreSQL, servers and clients. Were they all killed by their own parents, one SIGKILL
would leave the rest running. So the work is done in a child, and this process only waits for it: the kernel
hands it whatever the work leaves behind, and it ends that too. The work, in turn, is interrupted when this
process dies.
"""

import ctypes
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
WORK_S = 45.0
"""How long the work may take to end in order: a database writes its checkpoint, a server drains."""
REST_S = 15.0
"""How long what the work left behind may take to do so."""
LOOK_S = 0.1


def run_clean(work: Callable[[], int]) -> int:
    """Do the work and answer its exit status, or 128 and the number of the signal that ended it.

    Returns in the child as well, so call it as ``sys.exit(run_clean(work))``. SIGTERM, SIGINT, SIGHUP and the
    death of our parent interrupt the work. Under ``nohup``, which ignores SIGHUP, it outlives its parent.
    """
    waited = {*ENDING, signal.SIGCHLD}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, waited)
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        _end_with_parent(os.getppid(), signal.SIGTERM)
    folder = Path(tempfile.mkdtemp(prefix="bench-"))
    keeper = os.getpid()
    child = os.fork()
    if child == 0:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        _end_with_parent(keeper, signal.SIGINT)
        return _work_in(folder, work)
    try:
        return _wait(child, waited)
    finally:
        _end_rest(waited)
        shutil.rmtree(folder, ignore_errors=True)


def _work_in(folder: Path, work: Callable[[], int]) -> int:
    """With a folder for all temporary files of the work and of whatever it starts."""
    os.environ["TMPDIR"] = tempfile.tempdir = str(folder)
    try:
        return work()
    except (KeyboardInterrupt, BaseExceptionGroup) as error:
        # An interrupt that passes nurseries comes in groups.
        if isinstance(error, BaseExceptionGroup) and error.split(KeyboardInterrupt)[1] is not None:
            raise
        print("ended before it was done", file=sys.stderr)
        return 128 + signal.SIGINT
    finally:
        with suppress(OSError):
            folder.rmdir()


def _wait(child: int, waited: set[signal.Signals]) -> int:
    """Until the work has ended, by itself or because we were told to end."""
    told: int | None = None
    until = float("inf")
    while True:
        found = signal.sigtimedwait(waited, LOOK_S)
        if found is not None and found.si_signo in ENDING and told is None:
            told = found.si_signo
            until = time.monotonic() + WORK_S
            os.kill(child, signal.SIGINT)
        if time.monotonic() > until:
            os.kill(child, signal.SIGKILL)
        if (status := _reaped().get(child)) is not None:
            status = os.waitstatus_to_exitcode(status)
            return 128 + (told or -status) if told or status < 0 else status


def _end_rest(waited: set[signal.Signals]) -> None:
    """End what the work left behind: it is ours now, and so is what that leaves behind in its turn."""
    told: set[int] = set()
    until = time.monotonic() + REST_S
    while left := _children():
        hard = time.monotonic() > until
        for pid in left:
            if hard or pid not in told:
                told.add(pid)
                # Servers, PostgreSQL among them, end in order by SIGINT; a stopped one has to go on first.
                for number in (signal.SIGKILL,) if hard else (signal.SIGINT, signal.SIGCONT):
                    with suppress(ProcessLookupError):
                        os.kill(pid, number)
        signal.sigtimedwait(waited, LOOK_S)
        _reaped()


def _reaped() -> dict[int, int]:
    """The wait statuses of those that have ended, by process id."""
    found: dict[int, int] = {}
    with suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            found[ended[0]] = ended[1]
    return found


def _children() -> list[int]:
    me = os.getpid()
    words = Path(f"/proc/{me}/task/{me}/children").read_text(encoding="ascii").split()
    return [int(word) for word in words]


def _end_with_parent(parent: int, number: signal.Signals) -> None:
    _prctl(PR_SET_PDEATHSIG, number)
    if os.getppid() != parent:
        os.kill(os.getpid(), number)


def _prctl(what: int, value: int) -> None:
    if ctypes.CDLL(None, use_errno=True).prctl(what, value, 0, 0, 0):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
