"""A program of a run, in a separate sandbox or in one that also runs the checks."""

import signal
from dataclasses import replace
from typing import Protocol

from sexton_runner.run import Ending, Outcome
from sexton_runner.sandbox.workspace import Work, Workspace, WorkspaceGone
from sexton_runner.tools.completion_checks import Unmet


class Source(Protocol):
    """A stream of a program: empty at its end."""

    async def receive_some(self, max_bytes: int | None = None, /) -> bytes | bytearray:
        """Wait for the next piece."""
        ...


class Program(Protocol):
    """A program that has been started, in a sandbox of its own or in one that goes on."""

    @property
    def stdout(self) -> Source:
        """Give its output."""
        ...

    @property
    def stderr(self) -> Source:
        """Give its errors."""
        ...

    async def wait(self) -> int:
        """Wait for its end."""
        ...


class Kept:
    """A command of a workspace; one whose sandbox ends under it was killed."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self.stdout: Source = work.stdout
        self.stderr: Source = work.stderr

    async def wait(self) -> int:
        """Wait for its end."""
        try:
            return await self._work.wait()
        except WorkspaceGone:
            return -signal.SIGKILL


async def given(workspace: Workspace) -> Workspace:
    """Give a sandbox that stands already to whoever would have one made."""
    return workspace


def with_checks(ending: Ending, unmet: Unmet | None) -> Ending:
    """Give the ending of a program after its checks."""
    if unmet is None:
        return ending
    text = f"{ending.response_text.rstrip()}\n{unmet.text}".lstrip()
    return replace(
        ending, outcome=Outcome.AGENT_ERROR, failure_reason=unmet.failure_reason, response_text=text
    )
