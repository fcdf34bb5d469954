"""Walks through a tutorial word for word: writes the files that it shows, runs the commands that it shows.

A block marked ``console`` holds commands, each behind ``$ ``, and what they print. ``runner$ `` is the prompt
of another machine, which the page calls by that name. A command that ends with ``# in another terminal``
goes on until the page is read; one with ``# in that terminal, once it has ended`` waits for its end.
A file's content is the block after a paragraph that ends with its name and a colon, or with its name, the
machine's and a colon. Other blocks are for the reader only.
"""

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

from tests.patience import PATIENCE_S
from tests.worlds.warm_command import WarmCommand

ENDS_WITHIN_S: Final = 60
"""For one that goes on to be ready, and to end."""
LOOK_S: Final = 0.3
MOST_LOOK_S: Final = 3.0
LOOKS_AGAIN_S: Final = 60
"""What is listed may come a moment after what caused it, and nobody types as quickly as a test."""
HERE: Final = ""
GOES_ON: Final = "# in another terminal"
ENDED: Final = "# in that terminal, once it has ended"
FAILS: Final = "# fails"
_FENCE: Final = re.compile(r"^(`{3,})(\w+)\n(.*?)^\1$", re.MULTILINE | re.DOTALL)
_NAMES_FILE: Final = re.compile(r"`([\w./-]+)`(?: on `(\w+)`)?:\s*\Z")
_PROMPT: Final = re.compile(r"^(\w*)\$ ", re.MULTILINE)
_ONLY_LOOKS: Final = re.compile(r"sexton [a-z-]+ (?:list|show)\b")
_EXPORT: Final = re.compile(r"export (\w+)=.*")
_PLACEHOLDER: Final = re.compile(r"\b[A-Z]{4,}\b")


class Write(NamedTuple):
    """Put a text into a file."""

    path: str
    text: str
    machine: str = HERE


class Run(NamedTuple):
    """A command, and what it prints as the page shows it."""

    command: str
    shown: str
    machine: str = HERE


def steps(page: str) -> Iterator[Write | Run]:
    r"""What the reader is told to do, in order.

    >>> page = "Put this into `a/b.md`:\n\n```yaml\nx: 1\n```\n\n```console\n$ ls a\nb.md\n$ true\n```\n"
    >>> for step in steps(page):
    ...     print(step)
    Write(path='a/b.md', text='x: 1\n', machine='')
    Run(command='ls a', shown='b.md', machine='')
    Run(command='true', shown='', machine='')
    >>> list(steps("```console\nrunner$ ls\nb.md\n```\n"))
    [Run(command='ls', shown='b.md', machine='runner')]
    """
    for block in _FENCE.finditer(page):
        if block[2] == "console":
            _, *parts = _PROMPT.split(block[3])
            for machine, part in zip(parts[::2], parts[1::2], strict=True):
                command, _, shown = part.partition("\n")
                yield Run(command, shown.rstrip("\n"), machine)
        elif (named := _NAMES_FILE.search(page[: block.start()])) is not None:
            yield Write(named[1], block[3], named[2] or HERE)


def is_as_shown(printed: str, shown: str) -> bool:
    r"""Whether a command printed what the page shows; an ellipsis stands for anything, blanks for any blanks.

    >>> is_as_shown("id  7f\nstatus  ok\n", "id …\nstatus ok"), is_as_shown("status ok\n", "status bad")
    (True, False)
    >>> is_as_shown("a\nb\nc\n", "…\nc"), is_as_shown("c\n", "…\nc"), is_as_shown("c\nd\n", "c")
    (True, True, False)
    """
    if not shown:
        return True
    pattern = ""
    for line in shown.split("\n"):
        if line == "…":
            pattern += r"(?:.*\n)*?"
        else:
            escaped = re.escape(" ".join(line.split()))
            pattern += escaped.replace(re.escape(" … "), ".*").replace(re.escape("…"), ".*") + r"\n"
    lines = [" ".join(line.split()) for line in printed.rstrip("\n").split("\n")]
    return re.fullmatch(pattern, "\n".join(lines) + "\n") is not None


@dataclass(frozen=True, slots=True)
class Machine:
    """Where commands are run: a folder, an environment, and words before each command."""

    folder: Path
    environment: Mapping[str, str]
    through: Sequence[str] = ()
    warm: WarmCommand | None = None
    """What answers to ``sexton`` here; without it the program itself does."""

    def with_programs(self, folder: Path) -> "Machine":
        """The same with a folder of programs that come before its own."""
        path = f"{folder}{os.pathsep}{self.environment['PATH']}"
        warm = self.warm
        if warm is not None:
            first = f"{folder}{os.pathsep}{warm.environment['PATH']}"
            warm = replace(warm, environment={**warm.environment, "PATH": first})
        return replace(self, environment={**self.environment, "PATH": path}, warm=warm)

    def environment_of(self, *, goes_on: bool) -> dict[str, str]:
        """One that goes on is signalled at the end, so it is a process of its own."""
        return {**self.environment, **(self.warm.environment if self.warm and not goes_on else {})}


@dataclass(slots=True)
class Reader:
    """Does what the page says, on the machines that it names.

    A word in capitals in a command stands for the id that was last printed under that head.
    """

    machines: dict[str, Machine]
    _ids: dict[str, str] = field(default_factory=dict, init=False)
    _going_on: "list[subprocess.Popen[bytes]]" = field(default_factory=list, init=False)

    @property
    def folder(self) -> Path:
        return self.machines[HERE].folder

    def read(self, page: str, spelled: Mapping[str, str] | None = None) -> None:
        """All steps of a page; raises AssertionError where one does not go as it shows.

        ``spelled`` is what this reader has in place of what the page says, as a port of their own.
        """
        for said, had in (spelled or {}).items():
            assert said in page, f"the page says nothing of {said}"
            page = page.replace(said, had)
        try:
            for step in steps(page):
                self._do(step)
        finally:
            self._end()

    def _do(self, step: Write | Run) -> None:
        machine = self.machines[step.machine]
        if isinstance(step, Write):
            path = machine.folder / step.path
            assert path.parent.is_dir(), f"the page writes {step.path} before there is its folder"
            path.write_text(step.text, encoding="utf-8")
        elif (exported := _EXPORT.fullmatch(step.command)) is not None:
            # Each command has a shell of its own, and a terminal's remembers.
            value = _ended(f'{step.command}; printf %s "${exported[1]}"', machine).stdout
            self.machines[step.machine] = replace(
                machine, environment={**machine.environment, exported[1]: value}
            )
        elif step.command.endswith(GOES_ON):
            self._begin(step, machine)
        elif step.command.endswith(ENDED):
            status = self._going_on[-1].wait(ENDS_WITHIN_S)
            self._run(step._replace(command=f"(exit {status}); {step.command}"), machine)
        else:
            self._run(step, machine)

    def _run(self, step: Run, machine: Machine) -> None:
        command = self._filled(step.command)
        until = time.monotonic() + (LOOKS_AGAIN_S if _ONLY_LOOKS.match(command) else 0)
        pause = LOOK_S
        while True:
            ended = _ended(command, machine)
            fails = step.command.endswith(FAILS)
            assert (ended.returncode != 0) is fails, (
                f"{command} ended with {ended.returncode}: {ended.stdout}"
            )
            if is_as_shown(ended.stdout, step.shown):
                break
            assert time.monotonic() < until, f"{command} printed:\n{ended.stdout}\nnot:\n{step.shown}"
            time.sleep(pause)
            pause = min(2 * pause, MOST_LOOK_S)
        self._note_ids(ended.stdout)

    def _begin(self, step: Run, machine: Machine) -> None:
        """Start it, and wait until it has said what the page shows."""
        said = machine.folder / f"terminal-{len(self._going_on)}"
        with said.open("wb") as output:
            process = subprocess.Popen(
                [*machine.through, "/bin/bash", "-c", f"exec {self._filled(step.command)}"],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=machine.folder,
                env=machine.environment_of(goes_on=True),
                start_new_session=True,
            )
        self._going_on.append(process)
        until = time.monotonic() + ENDS_WITHIN_S
        while not is_as_shown(printed := said.read_text(encoding="utf-8", errors="replace"), step.shown):
            assert process.poll() is None, f"{step.command} ended with {process.returncode}: {printed}"
            assert time.monotonic() < until, f"{step.command} printed:\n{printed}\nnot:\n{step.shown}"
            time.sleep(LOOK_S)
        self._note_ids(printed)

    def _end(self) -> None:
        """Press Ctrl-C in the other terminals, the last first."""
        for process in reversed(self._going_on):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(ENDS_WITHIN_S)
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)

    def _filled(self, command: str) -> str:
        return _PLACEHOLDER.sub(lambda word: self._ids.get(word[0], word[0]), command)

    def _note_ids(self, printed: str) -> None:
        lines = printed.splitlines()
        for head, row in pairwise(lines):
            if _PLACEHOLDER.match(head) and row.split():
                self._ids[head.split()[0]] = row.split()[0]


def _ended(command: str, machine: Machine) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*machine.through, "/bin/bash", "-c", command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        cwd=machine.folder,
        env=machine.environment_of(goes_on=False),
        timeout=PATIENCE_S,
    )
