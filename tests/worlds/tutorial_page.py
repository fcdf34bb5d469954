"""Walks through a tutorial word for word: writes the files that it shows, runs the commands that it shows.

A block marked ``console`` holds commands, each behind ``$ ``, and what they print. A file's content is the
block after a paragraph that ends with its name and a colon. Other blocks are for the reader only.
"""

import re
import subprocess
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

PATIENCE_S: Final = 120
_FENCE: Final = re.compile(r"^(`{3,})(\w+)\n(.*?)^\1$", re.MULTILINE | re.DOTALL)
_NAMES_FILE: Final = re.compile(r"`([\w./-]+)`:\s*\Z")
_PLACEHOLDER: Final = re.compile(r"\b[A-Z]{4,}\b")


class Write(NamedTuple):
    """Put a text into a file."""

    path: str
    text: str


class Run(NamedTuple):
    """A command, and what it prints as the page shows it."""

    command: str
    shown: str


def steps(page: str) -> Iterator[Write | Run]:
    r"""What the reader is told to do, in order.

    >>> list(
    ...     steps("Put this into `a/b.md`:\n\n```yaml\nx: 1\n```\n\n```console\n$ ls a\nb.md\n$ true\n```\n")
    ... )
    [Write(path='a/b.md', text='x: 1\n'), Run(command='ls a', shown='b.md'), Run(command='true', shown='')]
    """
    for block in _FENCE.finditer(page):
        if block[2] == "console":
            for part in re.split(r"^\$ ", block[3], flags=re.MULTILINE)[1:]:
                command, _, shown = part.partition("\n")
                yield Run(command, shown.rstrip("\n"))
        elif (named := _NAMES_FILE.search(page[: block.start()])) is not None:
            yield Write(named[1], block[3])


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


class Reader:
    """Does what the page says, in a folder of their own.

    A word in capitals in a command stands for the id that was last printed under that head.
    """

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self.folder = folder
        self._environment = environment
        self._ids: dict[str, str] = {}

    def do(self, step: Write | Run) -> None:
        """One step; raises AssertionError where it does not go as the page shows."""
        if isinstance(step, Write):
            path = self.folder / step.path
            assert path.parent.is_dir(), f"the page writes {step.path} before there is its folder"
            path.write_text(step.text, encoding="utf-8")
            return
        command = _PLACEHOLDER.sub(lambda word: self._ids.get(word[0], word[0]), step.command)
        ended = subprocess.run(
            ["/bin/bash", "-c", command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            cwd=self.folder,
            env=dict(self._environment),
            timeout=PATIENCE_S,
        )
        fails = step.command.endswith("# fails")
        assert (ended.returncode != 0) is fails, f"{command} ended with {ended.returncode}: {ended.stdout}"
        assert is_as_shown(ended.stdout, step.shown), (
            f"{command} printed:\n{ended.stdout}\nnot:\n{step.shown}"
        )
        self._note_ids(ended.stdout)

    def _note_ids(self, printed: str) -> None:
        lines = printed.splitlines()
        for head, row in pairwise(lines):
            if _PLACEHOLDER.match(head) and row.split():
                self._ids[head.split()[0]] = row.split()[0]
