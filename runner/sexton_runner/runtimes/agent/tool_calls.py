"""Carries out the model's tool calls, several at once where that is safe, and waits for approvals."""

from collections.abc import Callable, Sequence

import structlog
import trio

from sexton_runner.errors import ControlPlaneError, TokenRejected
from sexton_runner.lease import Halt
from sexton_runner.providers.base import ToolAnswer, ToolUse
from sexton_runner.run import Run
from sexton_runner.runtimes.agent.evidence import Evidence
from sexton_runner.tools.base import Parked, ToolResult
from sexton_runner.tools.toolbox import Toolbox

MAX_CALLS_A_TURN = 64
AT_ONCE = 8
log = structlog.get_logger()

Checkpointed = Callable[[Sequence[ToolAnswer]], dict[str, object]]
"""Gives the whole checkpoint of the run, with the answers of this turn that are there already."""


class ToolCalls:
    """The tool calls of one run."""

    def __init__(self, run: Run, toolbox: Toolbox, evidence: Evidence, checkpointed: Checkpointed) -> None:
        self._run, self._toolbox, self._evidence = run, toolbox, evidence
        self._checkpointed = checkpointed
        self._done: dict[str, ToolAnswer] = {}

    async def carry_out(
        self, uses: Sequence[ToolUse], done: Sequence[ToolAnswer] = ()
    ) -> tuple[ToolAnswer, ...]:
        """Answer each use, in order; ``done`` are answers that a parked run had already."""
        wanted = {use.id for use in uses}
        self._done = {answer.id: answer for answer in done if answer.id in wanted}
        left = [use for use in uses if use.id not in self._done]
        for use in left[MAX_CALLS_A_TURN:]:
            self._done[use.id] = ToolAnswer(use.id, f"not done: more than {MAX_CALLS_A_TURN} calls", ok=False)
        left = left[:MAX_CALLS_A_TURN]
        if len(left) > 1 and all(self._is_safe(use) for use in left):
            await self._at_once(left)
        else:
            for use in left:
                await self._one(use)
        return tuple(self._done[use.id] for use in uses)

    def _is_safe(self, use: ToolUse) -> bool:
        tool = self._toolbox.tools.get(use.name)
        return tool is not None and tool.parallel_safe and not use.fault

    async def _at_once(self, uses: Sequence[ToolUse]) -> None:
        room = trio.Semaphore(AT_ONCE)
        faults: list[Exception] = []

        async def one(use: ToolUse, scope: trio.CancelScope) -> None:
            async with room:
                try:
                    await self._one(use)
                except Exception as fault:  # noqa: BLE001 - raised below, out of the group that hides its kind
                    faults.append(fault)
                    scope.cancel()

        async with trio.open_nursery() as nursery:
            for use in uses:
                nursery.start_soon(one, use, nursery.cancel_scope)
        for fault in faults:
            raise fault

    async def _one(self, use: ToolUse) -> None:
        if use.fault:
            self._done[use.id] = ToolAnswer(use.id, f"not done: {use.fault}", ok=False)
            told = {"id": use.id, "name": use.name, "ok": False, "content": f"not done: {use.fault}"}
            self._run.record("tool_result", told)
            return
        began = self._run.clock()
        result = await self._answered(use)
        arguments = self._run.redactor.json(use.arguments)
        ms = int((self._run.clock() - began) * 1000)
        self._evidence.add(self._run.redactor.text(use.name), arguments, result, ms)
        self._done[use.id] = ToolAnswer(use.id, result.content, result.ok, result.pictures)

    async def _answered(self, use: ToolUse) -> ToolResult:
        while True:
            try:
                return await self._toolbox.call(use.name, use.arguments, use.id)
            except Parked as parked:
                await self._park(parked.gate_id)

    async def _park(self, gate_id: str) -> None:
        """Leave the slot; comes back only when the run could not be parked, and has to wait on."""
        lease_id = self._run.live.lease.lease_id
        why = await self._toolbox.keep_workspace()
        if why is not None:
            self._run.record("note", {"text": f"the run waits on, as its workspace cannot be kept: {why}"})
            return
        await self._run.shown()  # What is not sent before the lease is given back is lost.
        try:
            await self._run.plane.park(lease_id, gate_id, self._checkpointed(list(self._done.values())))
        except TokenRejected:
            raise
        except ControlPlaneError as fault:
            # The gate may have been resolved just now; if the lease is gone the next call will say so.
            log.info("not_parked", lease_id=lease_id, why=str(fault))
            return
        self._run.live.halt(Halt.PARKED)
        await trio.sleep_forever()  # The halt has cancelled the scope that this runs in.
