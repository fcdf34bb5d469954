"""Runs the checks of a trigger file when a run says that it is done."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from sexton_runner import frames
from sexton_runner.frames import Frame
from sexton_runner.redact import Redactor
from sexton_runner.rules import Check
from sexton_runner.sandbox.workspace import Workspace, WorkspaceGone
from sexton_runner.sandbox.workspace_command import CommandResult, run_command
from sexton_runner.timing import Clock
from sexton_runner.tools.programs import told

FAILED = "gate_command_failed"
TIMED_OUT = "gate_command_timeout"
USED_UP = "gate_repairs_exhausted"


@dataclass(frozen=True, slots=True)
class Unmet:
    """A check that did not end well.

    ``text`` is for the agent, or for the report. Without a ``failure_reason`` the agent may repair it and
    say again that it is done.
    """

    check: str
    text: str
    failure_reason: str | None


class Checks:
    """The checks of one run, and how often each was given back."""

    def __init__(
        self,
        checks: Sequence[Check],
        workspace: Callable[[], Awaitable[Workspace]],
        *,
        show: Callable[[Frame], None],
        redactor: Redactor,
        clock: Clock,
    ) -> None:
        self._checks = checks
        self._workspace = workspace
        self._show, self._redactor, self._clock = show, redactor, clock
        self._repairs: dict[str, int] = {}

    async def run(self, *, repairable: bool) -> Unmet | None:
        """Run all in order, up to the first that fails; None when all ended well."""
        for check in self._checks:
            name = f"check {check.name}"
            began = self._clock()
            self._show(frames.step_started(name))
            done = await self._perform(check)
            ok = done is not None and done.ok
            self._show(frames.step_completed(name, int((self._clock() - began) * 1000), ok=ok))
            if not ok:
                return self._unmet(check, done, repairable=repairable)
        return None

    async def _perform(self, check: Check) -> CommandResult | None:
        try:
            return await run_command(
                await self._workspace(),
                ["/bin/sh", "-c", check.command],
                redactor=self._redactor,
                timeout_s=check.timeout_s,
            )
        except WorkspaceGone:
            return None

    def _unmet(self, check: Check, done: CommandResult | None, *, repairable: bool) -> Unmet:
        seen = "[the sandbox was ended]" if done is None else told(done)
        text = f"The check {check.name} did not end well: {self._redactor.text(check.command)}\n{seen}"
        given_back = self._repairs.get(check.name, 0)
        if repairable and given_back < check.repair_attempts:
            self._repairs[check.name] = given_back + 1
            return Unmet(check.name, text, None)
        if given_back:
            return Unmet(check.name, text, USED_UP)
        return Unmet(check.name, text, TIMED_OUT if done is not None and done.timed_out else FAILED)
