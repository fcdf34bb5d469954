"""Runs the command as a person and as a script do: with a home, an environment, and perhaps a terminal."""

import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import orjson

from tests.patience import PATIENCE_S
from tests.worlds.warm_start import WarmProcess, can_be_warm

COMMAND = [sys.executable, "-m", "sexton_cli.main"]
Ended = subprocess.CompletedProcess[str]


class Shell:
    """A home folder and an environment; each call is a process of its own."""

    def __init__(self, folder: Path, **environment: str) -> None:
        self.home = folder / "home"
        self.home.mkdir(exist_ok=True)
        self.environment = {
            "PATH": "/usr/bin:/bin",
            "HOME": str(self.home),
            "TMPDIR": str(folder),
            "PYTHONWARNINGS": "error",
            **environment,
        }

    @property
    def credentials(self) -> Path:
        return self.home / ".config" / "sexton" / "credentials.json"

    def __call__(self, *words: str, stdin: str | None = None, **environment: str) -> Ended:
        """Run to the end; without ``stdin`` there is nothing to read."""
        return run_command(words, self.environment | environment, stdin=stdin)

    def json(self, *words: str, **rest: Any) -> Any:
        """The one document that the command writes; it has to succeed, and be silent otherwise."""
        ended = self(*words, "--json", **rest)
        assert ended.returncode == 0, ended.stderr
        return orjson.loads(ended.stdout)

    @contextmanager
    def terminal(self, *words: str, stdout: int | None = None, **environment: str) -> Iterator["Terminal"]:
        """Start in a terminal; ``stdout`` may be turned elsewhere."""
        ours, theirs = pty.openpty()
        process = subprocess.Popen(
            # A shell that runs the tests in its background has them ignore Ctrl-C; a terminal's own does not.
            ["env", "--default-signal=INT", "setsid", "--ctty", *COMMAND, *words],
            stdin=theirs,
            stdout=theirs if stdout is None else stdout,
            stderr=theirs,
            env=self.environment | {"TERM": "xterm"} | environment,
            # Not a leader of its group, so that setsid need not fork.
            start_new_session=False,
        )
        os.close(theirs)
        try:
            yield Terminal(process, ours)
        finally:
            if process.poll() is None:
                process.kill()
            process.wait()
            if process.stdout is not None:
                process.stdout.close()
            os.close(ours)


class Terminal:
    """What a person sees and types."""

    def __init__(self, process: "subprocess.Popen[bytes]", descriptor: int) -> None:
        self._process = process
        self._descriptor = descriptor
        self._read_to = 0
        self.screen = ""

    def expect(self, text: str) -> str:
        """Wait until this has appeared, after what was expected before; what was said up to there."""
        until = time.monotonic() + PATIENCE_S  # Of a program that goes on and never says it.
        while (found := self.screen.find(text, self._read_to)) < 0:
            assert self._more(), f"{text!r} never came; on the screen: {self.screen!r}"
            assert time.monotonic() < until, f"{text!r} never came; on the screen: {self.screen[-4000:]!r}"
        said = self.screen[self._read_to : found + len(text)]
        self._read_to = found + len(text)
        return said

    def type(self, text: str) -> None:
        os.write(self._descriptor, text.encode())

    def interrupt(self) -> None:
        """Press Ctrl-C while it waits for something.

        Python notices a signal that comes in the very instant before it begins to wait only when that ends.
        """
        wait_until(self._asleep)
        self.type("\x03")

    def _asleep(self) -> bool:
        stat = Path(f"/proc/{self._process.pid}/stat").read_text(encoding="utf-8")
        return stat.rpartition(")")[2].split()[0] == "S"

    def output(self) -> bytes:
        """All of a standard output that was turned elsewhere."""
        assert self._process.stdout is not None
        return self._process.stdout.read()

    def ends(self) -> int:
        """Wait for its end; its exit status."""
        while self._more():
            pass
        return self._process.wait(PATIENCE_S)

    def _more(self) -> bool:
        ready, _, _ = select.select([self._descriptor], [], [], PATIENCE_S)
        assert ready, f"nothing more came; on the screen: {self.screen!r}"
        try:
            piece = os.read(self._descriptor, 4096)
        except OSError:
            # Linux's way to say that nobody has the other side open.
            return False
        self.screen += piece.decode(errors="replace")
        return bool(piece)


def run_command(words: Sequence[str], environment: Mapping[str, str], *, stdin: str | None = None) -> Ended:
    """Run ``sexton`` to its end with these variables alone; without ``stdin`` there is nothing to read."""
    if can_be_warm(environment):
        return _run_warm(words, stdin, environment)
    source: dict[str, Any] = {"stdin": subprocess.DEVNULL} if stdin is None else {"input": stdin}
    return subprocess.run(
        [*COMMAND, *words],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        timeout=PATIENCE_S,
        **source,
    )


def _run_warm(words: Sequence[str], stdin: str | None, environment: Mapping[str, str]) -> Ended:
    with TemporaryFile() as given, TemporaryFile() as output, TemporaryFile() as errors:
        given.write((stdin or "").encode())
        given.seek(0)
        process = WarmProcess(words, stdin=given, stdout=output, stderr=errors, env=environment)
        try:
            status = process.wait(PATIENCE_S)
        except TimeoutError:
            process.kill()
            raise
        texts = []
        for file in (output, errors):
            file.seek(0)
            texts.append(file.read().decode().replace("\r\n", "\n"))
    return Ended([*COMMAND, *words], status, *texts)


def said(ended: Ended) -> str:
    """The one line on standard error that says what went wrong."""
    assert "Traceback" not in ended.stderr
    lines = ended.stderr.splitlines()
    assert len(lines) == 1, ended.stderr
    return lines[0]


def wait_until(what: Any) -> None:
    """Until it is so, for another process makes it so."""
    deadline = time.monotonic() + PATIENCE_S
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.02)
