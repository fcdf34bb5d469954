"""Starts ``sexton`` by a fork of a process that has imported it, and not by an import of its own each time.

That process has also made what every server makes of its routes alone: their documents and their rules. All
else is as in a process of its own. `make test-thorough` does without.
"""

import atexit
import gc
import os
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import IO, Any, Final

import httpx2
import orjson

from sexton_cli import main as command
from sexton_cli.commands.table import COMMANDS
from sexton_http.bodies.decoding import query_decoder_of
from sexton_http.bodies.lenient import decoder_of
from sexton_http.bodies.shapes import Nothing
from sexton_http.describe.documents import make_documents
from sexton_http.gateway.quart_mount import compile_rules
from sexton_http.routes.removed import PREFIXES
from sexton_http.routes.table import OPERATIONS
from tests.thorough import THOROUGH

ROOT: Final = Path(__file__).resolve().parents[2]
STRICT: Final = "PYTHONWARNINGS"
OF_THE_INTERPRETER: Final = ("PYTHON", "LC_", "LANG", "LD_")
"""What an interpreter looks at as it starts."""
REQUEST_BYTES: Final = 1 << 20
WORD_BYTES: Final = 32
STREAMS: Final = 3


def can_be_warm(environment: Mapping[str, str]) -> bool:
    """Whether a process with these variables may come of a fork."""
    told = [name for name in environment if name.startswith(OF_THE_INTERPRETER) and name != STRICT]
    return not (THOROUGH or told)


class WarmProcess:
    """As much of ``subprocess.Popen`` as tests use; the arguments are files and what they are there."""

    def __init__(
        self,
        words: Sequence[str],
        *,
        stdin: IO[bytes],
        stdout: IO[bytes],
        stderr: IO[bytes],
        env: Mapping[str, str],
        start_new_session: bool = False,
        cwd: Path | None = None,
    ) -> None:
        self._told, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        where = str(cwd or Path.cwd())
        request = {"words": words, "cwd": where, "env": dict(env), "session": start_new_session}
        with theirs:
            files = [stdin.fileno(), stdout.fileno(), stderr.fileno(), theirs.fileno()]
            socket.send_fds(_parent(), [orjson.dumps(request)], files)
        self.pid = int(self._told.recv(WORD_BYTES))
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """The exit status, None while it runs."""
        if self.returncode is None:
            with suppress(BlockingIOError):
                self._end(self._told.recv(WORD_BYTES, socket.MSG_DONTWAIT))
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """The exit status. Raises TimeoutError."""
        if self.returncode is None:
            self._told.settimeout(timeout)
            self._end(self._told.recv(WORD_BYTES))
        assert self.returncode is not None
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _end(self, said: bytes) -> None:
        assert said, "the process that forks has ended"
        self.returncode = int(said)
        self._told.close()


@cache
def _parent() -> socket.socket:
    """The line to the process that forks; one for each process of the tests, and ended with it."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.worlds.warm_start", str(theirs.fileno())],
            stdin=subprocess.DEVNULL,
            cwd=ROOT,
            env={"PATH": "/usr/bin:/bin", STRICT: "error"},
            pass_fds=[theirs.fileno()],
            start_new_session=True,
        )

    def end() -> None:
        ours.close()
        process.wait()

    atexit.register(end)
    return ours


# --- the process that forks ---------------------------------------------------------------------------------


def _serve(control: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    """Fork for each request. Gives the request and its files in each child, and None here at the end."""
    watched = selectors.DefaultSelector()
    watched.register(control, selectors.EVENT_READ)
    children: dict[int, tuple[int, socket.socket]] = {}
    while True:
        for key, _ in watched.select():
            if key.fd in children:
                watched.unregister(key.fd)
                os.close(key.fd)
                pid, told = children.pop(key.fd)
                status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
                with told, suppress(OSError):
                    told.send(str(status).encode())
                continue
            request, files, _, _ = socket.recv_fds(control, REQUEST_BYTES, STREAMS + 1)
            if not request:
                for pid, _ in children.values():
                    os.kill(pid, signal.SIGKILL)
                return None
            pid = os.fork()
            if pid == 0:
                # Their numbers will be others': nothing of ours may close them later.
                watched.close()
                for one in (control, *(told for _, told in children.values())):
                    one.detach()
                return orjson.loads(request), files
            for file in files[:STREAMS]:
                os.close(file)
            told = socket.socket(fileno=files[STREAMS])
            told.send(str(pid).encode())
            children[os.pidfd_open(pid)] = pid, told
            watched.register(next(reversed(children)), selectors.EVENT_READ)


def _become(request: dict[str, Any], files: list[int]) -> None:
    """Take over what a process of its own would have been started with."""
    if request["session"]:
        os.setsid()
    for number, file in enumerate(files[:STREAMS]):
        os.dup2(file, number)
    os.closerange(STREAMS, os.sysconf("SC_OPEN_MAX"))
    # Those that we had know whether they can seek: a file can, and a pipe in its place cannot.
    sys.stdin, sys.stdout, sys.stderr = (
        os.fdopen(number, mode, encoding="utf-8", closefd=False) for number, mode in enumerate("rww")
    )
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    time.tzset()
    sys.argv = [str(command.__file__), *request["words"]]
    if STRICT not in os.environ:
        warnings.resetwarnings()
        for kind in (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning):
            warnings.simplefilter("ignore", kind)


def _main(descriptor: int) -> None:
    for entry in COMMANDS.values():
        import_module(f"sexton_cli.commands.{entry.place.partition(':')[0]}")
    for name in ("connection", "screen", "yaml_documents"):  # What commands import when they need it.
        import_module(f"sexton_cli.{name}")
    # A client imports what it sends with when it is made.
    httpx2.AsyncClient()
    make_documents(OPERATIONS, "")
    compile_rules(OPERATIONS, PREFIXES)
    for operation in OPERATIONS:
        decoder_of(Nothing if operation.takes_nothing else operation.body)
        query_decoder_of(operation.query)
    gc.collect()
    gc.freeze()
    asked = _serve(socket.socket(fileno=descriptor))
    if asked is not None:
        _become(*asked)
        try:
            command.main()
        except SystemExit as end:
            if isinstance(end.code, int | None):
                _end(end.code or 0)
            raise


def _end(status: int) -> None:
    """End as a process does, but for taking all modules apart: that costs more than most commands."""
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()
    atexit._run_exitfuncs()
    # Whoever left a file open is told so, as ever.
    gc.collect()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    _main(int(sys.argv[1]))
