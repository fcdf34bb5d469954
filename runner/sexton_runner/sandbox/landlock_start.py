"""Starts one job shut in by Landlock, and ends all of it when the job or the runner ends.

This file is run by itself, with the standard library only: ``landlock_start.py RULES PROGRAM...``, where
RULES is the JSON of ``landlock.Rules``. Three processes stand around the program:

- the keeper, which the runner started, waits for the program and passes its exit status on;
- the guard lives in a session of its own and ends the run when the keeper is killed;
- the program, and whatever it starts, under rules that neither can be reached from.

Keeper and guard enter a Landlock domain that only confines signals. So their ``kill(-1)`` reaches the
processes of this run, all of them and no others, whatever sessions and groups those have made.
"""

import ctypes
import json
import os
import signal
import stat
import sys
from typing import Any

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
SIGNALS_AND_SOCKETS = 0b11
"""What a domain may confine beside files: abstract sockets and signals."""
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = (
    1,
    4,
    22,
    36,
    38,
)
PATH_BENEATH = 1
FILTER = 2
OF_FILES = 1 << 0 | 1 << 1 | 1 << 2 | 1 << 14 | 1 << 15  # Execute, write, read, truncate, control of devices.
SIGNALLED = 128
CANNOT_START = 125

libc = ctypes.CDLL(None, use_errno=True)


class Attributes(ctypes.Structure):
    """What a ruleset is about: ``struct landlock_ruleset_attr``."""

    _fields_ = (("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class Beneath(ctypes.Structure):
    """One rule: ``struct landlock_path_beneath_attr``."""

    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


class Filter(ctypes.Structure):
    """A program for seccomp: ``struct sock_fprog``."""

    _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.c_void_p))


def must(what: str, result: int) -> int:
    """Give the result of a system call, or end: a wall that does not stand is no wall."""
    if result < 0:
        fault = ctypes.get_errno()
        os.write(2, f"landlock: {what}: {os.strerror(fault)}\n".encode())
        os._exit(CANNOT_START)
    return result


def enter(files: int, network: int, rules: list[tuple[str, int]]) -> None:
    """Enter a domain: of ``files`` and ``network`` only what the rules name is left."""
    attributes = Attributes(files, network, SIGNALS_AND_SOCKETS)
    size = ctypes.c_size_t(ctypes.sizeof(attributes))
    ruleset = must("ruleset", libc.syscall(CREATE_RULESET, ctypes.byref(attributes), size, 0))
    for path, allowed in rules:
        try:
            place = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except FileNotFoundError:
            continue  # What this host does not have need not be shown.
        is_folder = stat.S_ISDIR(os.fstat(place).st_mode)
        rule = Beneath(allowed if is_folder else allowed & OF_FILES, place)
        must(path, libc.syscall(ADD_RULE, ruleset, PATH_BENEATH, ctypes.byref(rule), 0))
        os.close(place)
    must("no new privileges", libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    must("restrict", libc.syscall(RESTRICT_SELF, ruleset, 0))
    os.close(ruleset)


def filter_calls(descriptor: int) -> None:
    """Have the kernel refuse the system calls that the program in ``descriptor`` refuses."""
    with os.fdopen(descriptor, "rb") as file:
        steps = file.read()
    held = ctypes.create_string_buffer(steps, len(steps))
    filtered = Filter(len(steps) // 8, ctypes.cast(held, ctypes.c_void_p))
    must("seccomp", libc.prctl(PR_SET_SECCOMP, FILTER, ctypes.byref(filtered), 0, 0))


def follow(parent: int, sign: int) -> None:
    """Get ``sign`` when the parent has died, also if it has by now."""
    libc.prctl(PR_SET_PDEATHSIG, sign, 0, 0, 0)
    if os.getppid() != parent:
        os.kill(os.getpid(), sign)


def end_all() -> None:
    """Kill every process of this run but the caller; the domain keeps the signal from all others."""
    try:
        os.kill(-1, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return


def guard(keeper: int) -> None:
    """End the run once the keeper has gone; never returns."""
    os.setsid()
    signal.pthread_sigmask(signal.SIG_SETMASK, [])

    def end(_sign: int, _frame: object) -> None:
        end_all()
        os._exit(0)

    signal.signal(signal.SIGTERM, end)
    follow(keeper, signal.SIGTERM)
    while True:
        signal.pause()


def keep(program: int) -> int:
    """Reap all that ends here until the program has, end the rest, and give the program's status."""
    while True:
        pid, status = os.wait()
        if pid == program:
            break
    end_all()
    try:
        while True:
            os.wait()
    except ChildProcessError:
        return status


def leave_streams() -> None:
    """Let go of the program's streams, so that its reader sees their end."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)
    os.close(nothing)


def start(rules: dict[str, Any], argv: list[str]) -> None:
    """Become the program; never returns."""
    os.setsid()
    enter(rules["files"], rules["network"], [(path, allowed) for path, allowed in rules["paths"]])
    if rules["seccomp"] is not None:
        filter_calls(rules["seccomp"])
    try:
        os.chdir(rules["folder"])
        os.execve(argv[0], argv, rules["env"])  # noqa: S606 - there is no shell in between, and none is wanted
    except OSError as fault:
        os.write(2, f"{argv[0]}: {os.strerror(fault.errno or 0)}\n".encode())
    os._exit(CANNOT_START)


def main(words: list[str]) -> None:
    """Stand the processes up, and end as the program ends."""
    rules, argv = json.loads(words[0]), words[1:]
    runner = os.getppid()
    libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    follow(runner, signal.SIGKILL)
    # Nothing is handled here but the kernel's right to what is about files: nothing is taken away yet.
    enter(0, 0, [])
    keeper = os.getpid()
    if os.fork() == 0:
        leave_streams()
        guard(keeper)
    if (program := os.fork()) == 0:
        start(rules, argv)
    leave_streams()
    status = keep(program)
    if os.WIFSIGNALED(status):
        # As the program ended: by the same signal, or by the number that shells give it.
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.kill(os.getpid(), os.WTERMSIG(status))
        os._exit(SIGNALLED + os.WTERMSIG(status))
    os._exit(os.WEXITSTATUS(status))


if __name__ == "__main__":
    main(sys.argv[1:])
