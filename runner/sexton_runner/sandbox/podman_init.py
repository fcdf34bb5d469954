"""The first process of a container: starts one program, and ends with it or with the runner.

This file is copied into the container and run there by itself, with the standard library only. Descriptor 3
is a socket whose other end the runner has; 4, 5 and 6 are the streams of the program. It says that it is
there, and the kernel tells the runner which process that is. The answer is the order: one line of JSON with
``argv``, ``env``, ``folder`` and the filter of system calls, after the runner has put this process into its
control group. So neither the command line nor podman's records hold what the program is given.

When the runner has ended, however it did, the socket does too. Then this process ends, and the kernel ends
all others of the container with it.
"""

import base64
import ctypes
import json
import os
import select
import signal
import socket
from typing import Any

RUNNER, FIRST_STREAM = 3, 4
PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS = 4, 22, 38
FILTER = 2
STEP_BYTES = 8
SIGNALLED = 128
CANNOT_START = 125
READ_BYTES = 65536

libc = ctypes.CDLL(None, use_errno=True)


class Filter(ctypes.Structure):
    """A program for seccomp: ``struct sock_fprog``."""

    _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.c_void_p))


def end(why: str) -> None:
    """End the container: a wall that does not stand is no wall."""
    os.write(FIRST_STREAM + 2, f"container: {why}\n".encode())
    os._exit(CANNOT_START)


def order_of(runner: socket.socket) -> dict[str, Any]:
    """Wait for what is to be run; ends the container when the runner has ended."""
    held = b""
    while not held.endswith(b"\n"):
        piece = runner.recv(READ_BYTES)
        if not piece:
            os._exit(CANNOT_START)
        held += piece
    order: dict[str, Any] = json.loads(held)
    return order


def filter_calls(steps: bytes) -> None:
    """Have the kernel refuse the system calls that these steps refuse."""
    held = ctypes.create_string_buffer(steps, len(steps))
    filtered = Filter(len(steps) // STEP_BYTES, ctypes.cast(held, ctypes.c_void_p))
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(
        PR_SET_SECCOMP, FILTER, ctypes.byref(filtered), 0, 0
    ):
        end(f"seccomp: {os.strerror(ctypes.get_errno())}")


def start(order: dict[str, Any]) -> None:
    """Become the program; never returns."""
    os.setsid()
    for number in range(3):
        os.dup2(FIRST_STREAM + number, number)
    os.closerange(RUNNER, FIRST_STREAM)
    if order["seccomp"] is not None:
        filter_calls(base64.b64decode(order["seccomp"]))
    os.closerange(FIRST_STREAM, 1024)
    try:
        os.chdir(order["folder"])
        os.execve(order["argv"][0], order["argv"], order["env"])  # noqa: S606 - there is no shell in between
    except OSError as fault:
        os.write(2, f"{order['argv'][0]}: {os.strerror(fault.errno or 0)}\n".encode())
    os._exit(CANNOT_START)


def keep(program: int, runner: socket.socket) -> int:
    """Reap all that ends here until the program or the runner has; give the program's exit status."""
    woken, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, lambda _sign, _frame: None)
    poller = select.poll()
    poller.register(woken, select.POLLIN)
    poller.register(runner, select.POLLIN)
    while True:
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == program:
                code = os.waitstatus_to_exitcode(status)
                return code if code >= 0 else SIGNALLED - code
            if pid == 0:
                break
        for descriptor, _ in poller.poll():
            if descriptor == runner.fileno():
                return CANNOT_START  # The runner says nothing more: it has let go.
            os.read(woken, READ_BYTES)


def main() -> None:
    """Stand by for the order, carry it out, and end."""
    libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    with socket.socket(fileno=RUNNER) as runner:
        runner.send(b"r")
        order = order_of(runner)
        if (program := os.fork()) == 0:
            start(order)
        os.closerange(FIRST_STREAM, FIRST_STREAM + 3)
        status = keep(program, runner)
    os._exit(status)


if __name__ == "__main__":
    main()
