"""A command ``sexton`` for shells, forked as ``tests/worlds/warm_start.py`` forks it."""

import os
import socket
import threading
from ast import literal_eval
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.worlds.warm_start import WarmProcess

STREAMS: Final = 3
REQUEST_BYTES: Final = 1 << 20
PATIENCE_S: Final = 110.0
ADDRESS: Final = "WARM_SEXTON"
PROGRAM: Final = f"""\
#!/usr/bin/env -S python3 -IS
import os, socket, sys
environment = dict(os.environ)
with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as line:
    line.connect(environment.pop("{ADDRESS}"))
    request = repr((sys.argv[1:], os.getcwd(), environment))
    socket.send_fds(line, [request.encode()], [0, 1, 2])
    sys.exit(int(line.recv(32)))
"""
"""It imports next to nothing, since that is what each command of a shell costs."""


@dataclass(frozen=True, slots=True)
class WarmCommand:
    """With ``environment``, a shell finds it."""

    environment: Mapping[str, str]


@contextmanager
def open_warm_command(folder: Path, path: str) -> Iterator[WarmCommand]:
    """Put ``sexton`` into a folder and answer to it; ``path`` is where shells look for all other commands."""
    program, address = folder / "sexton", str(folder / "line")
    program.write_text(PROGRAM, encoding="utf-8")
    program.chmod(0o755)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(address)
        listener.listen()
        threading.Thread(target=_serve, args=(listener, path), daemon=True).start()
        try:
            yield WarmCommand({"PATH": f"{folder}{os.pathsep}{path}", ADDRESS: address})
        finally:
            listener.shutdown(socket.SHUT_RDWR)


def _serve(listener: socket.socket, path: str) -> None:
    while True:
        try:
            line, _ = listener.accept()
        except OSError:
            # It was shut down: nobody starts another command.
            return
        threading.Thread(target=_answer, args=(line, path), daemon=True).start()


def _answer(line: socket.socket, path: str) -> None:
    with line, ExitStack() as stack:
        request, files, _, _ = socket.recv_fds(line, REQUEST_BYTES, STREAMS)
        stdin, stdout, stderr = (stack.enter_context(os.fdopen(file, "rb")) for file in files)
        words, folder, environment = literal_eval(request.decode())
        # It is itself what a command of its own finds by its name.
        environment |= {"PATH": path}
        process = WarmProcess(
            words, stdin=stdin, stdout=stdout, stderr=stderr, env=environment, cwd=Path(folder)
        )
        try:
            line.send(str(process.wait(PATIENCE_S)).encode())
        except TimeoutError:
            # The shell hears nothing, and says so.
            process.kill()
            process.wait()
