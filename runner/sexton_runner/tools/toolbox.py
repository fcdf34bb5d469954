"""Holds the tools of one run, and checks each call before it reaches one."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import structlog
import trio

from sexton_runner import frames
from sexton_runner.anomalies import Occurrences
from sexton_runner.background_tasks import run_in_background
from sexton_runner.checkpoint import encode
from sexton_runner.errors import SandboxUnavailable, TokenRejected, Unavailable
from sexton_runner.gates import Asking
from sexton_runner.rules import Gates, read_gates
from sexton_runner.run import Run
from sexton_runner.run_files.file_upload import Left, send_files
from sexton_runner.tools import call_gate
from sexton_runner.tools.arguments import BadArguments, Checked
from sexton_runner.tools.base import Parked, Tool, ToolResult
from sexton_runner.tools.completion_checks import Checks, Unmet
from sexton_runner.tools.folder_files import FolderFiles
from sexton_runner.tools.lent_secrets import LentSecrets
from sexton_runner.tools.mcp import Servers
from sexton_runner.tools.picture_shelf import PictureShelf
from sexton_runner.tools.request_gate import RequestGate, Undecided
from sexton_runner.tools.table import TOOLS, Kit
from sexton_runner.tools.tool_sandbox import ToolSandbox
from sexton_runner.tools.truncation import clipped, shown
from sexton_runner.transcript import steps

PROGRESS_S = 5.0
# Longer than any tool's own bound; a tool that does not keep its own must not hold the run up for ever.
CALL_S = 960.0
MAX_NAME_CHARS = 128
log = structlog.get_logger()


class Fitted:
    """A tool as it is handed out: its schema compiled, and alone in its turn when a person may be asked."""

    def __init__(self, tool: Tool, gates: Gates) -> None:
        self._tool = tool
        self.name, self.description = tool.name, tool.description
        self.input_schema = tool.input_schema
        # By an anomaly rule any call may come to need a decision.
        alone = call_gate.may_be_gated(gates.rules, tool.name) or bool(gates.anomaly_rules)
        self.parallel_safe = tool.parallel_safe and not alone
        self.checked = Checked(tool.input_schema)

    def __repr__(self) -> str:
        return f"<Fitted {self.name}>"

    async def call(self, arguments: Mapping[str, Any]) -> ToolResult:
        """Do what the tool does, with no question asked: calls of a model go through the toolbox."""
        return await self._tool.call(arguments)


class Toolbox:
    """The tools that a run may use.

    ``proposals`` are what the run proposed about its own agent, for its report.
    """

    def __init__(self, run: Run, kit: Kit, tools: Mapping[str, Tool], gates: Gates, asking: Asking) -> None:
        self._run = run
        self._gates = gates
        self._asking = asking
        self._seen = Occurrences(gates.anomaly_rules, run.clock)
        self._fitted = {name: Fitted(tool, gates) for name, tool in tools.items()}
        self.tools: Mapping[str, Tool] = self._fitted
        self.proposals = kit.proposals
        self._sandbox = kit.tool_sandbox
        self.pictures = PictureShelf(run, kit.folder_files)
        self._checks = Checks(
            gates.checks,
            kit.tool_sandbox.workspace,
            show=steps(run.show, run.record),
            redactor=run.redactor,
            clock=run.clock,
        )

    def __repr__(self) -> str:
        return f"<Toolbox {', '.join(self.tools)}>"

    @property
    def refusal(self) -> str | None:
        """Give the status of the last gate that was not approved."""
        return self._asking.refusal

    def checkpoint(self) -> dict[str, object]:
        """Give what a resumed run has to know of gates, as members of its checkpoint."""
        return encode(self._asking.checkpoint)

    async def send_files(self) -> Left:
        """Send what the run left in ``out`` of its workspace, if it has one."""
        workspace = self._sandbox.standing
        if workspace is None:
            return Left()
        words = ["/bin/sh", f"{workspace.inside.run_dir}/bin/send-files"]
        async with workspace.work(words) as work:
            work.stderr.ignore()
            return await send_files(self._run, work.stdout)

    async def keep_workspace(self) -> str | None:
        """Keep the folder of the run, if its agent keeps one and it has one; why it could not be."""
        workspace = self._sandbox.standing
        return None if workspace is None else await self._sandbox.kept.keep(workspace)

    async def check(self) -> Unmet | None:
        """Run the agent's checks; None when it is really done. Raises ``SandboxUnavailable``."""
        return await self._checks.run(repairable=True)

    async def call(self, name: str, arguments: Mapping[str, Any], call_id: str) -> ToolResult:
        """Carry out one call of the model's; the same ``call_id`` asks the same person the same question.

        Raises ``Parked`` when a person has to decide first and has not done so for a while, and
        ``SandboxUnavailable`` when the sandbox cannot be made to stand.
        """
        name = name[:MAX_NAME_CHARS]
        began = self._run.clock()
        self._run.show(frames.call_started(self._run.redactor.text(name), self._shown(arguments)))
        about = {"id": call_id, "name": name}
        self._run.record("tool_call", {**about, "arguments": dict(arguments)})
        result = ToolResult("stopped", ok=False)
        try:
            async with run_in_background(partial(self._progress, name, began)):
                result = self._safe(await self._answer(name, arguments, call_id))
        finally:
            ms = int((self._run.clock() - began) * 1000)
            self._run.show(frames.step_completed(self._run.redactor.text(name), ms, ok=result.ok))
            told = {"ok": result.ok, "ms": ms, "content": result.content, "facts": dict(result.facts)}
            self._run.record("tool_result", {**about, **told})
        return result

    def _safe(self, result: ToolResult) -> ToolResult:
        # Each tool does this for itself where it has to; here it is certain.
        facts = self._run.redactor.json(dict(result.facts))
        content = clipped(self._run.redactor.text(result.content))
        return ToolResult(content, result.ok, facts, pictures=result.pictures)

    def _shown(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        cut = shown(self._run.redactor.json(dict(arguments)))
        return cut if isinstance(cut, dict) else {}

    async def _progress(self, name: str, began: float) -> None:
        while True:
            await trio.sleep(PROGRESS_S)
            elapsed = int((self._run.clock() - began) * 1000)
            self._run.show(frames.step_progress(self._run.redactor.text(name), elapsed))

    async def _answer(self, name: str, arguments: Mapping[str, Any], call_id: str) -> ToolResult:
        tool = self._fitted.get(name)
        if tool is None:
            return self._unknown(name)
        try:
            tool.checked.check(arguments)
        except BadArguments as fault:
            return self._refused(f"the arguments do not fit: {fault}")
        decision = await call_gate.decide(
            self._asking, self._gates.rules, self._seen, name, arguments, call_id=call_id
        )
        if decision is not None and decision.status != "approved":
            self._run.show(frames.chunk(f"[{self._run.redactor.text(name)}: not done: {decision.told}]\n"))
            facts = {"gate": decision.status, **({"by": decision.by} if decision.by else {})}
            return ToolResult(clipped(f"not done: {decision.told}"), ok=False, facts=facts)
        result = await self._carried_out(tool, arguments)
        if decision is not None and decision.detail:
            return replace(result, content=f"{result.content}\n[the approver said: {decision.detail}]")
        return result

    async def _carried_out(self, tool: Fitted, arguments: Mapping[str, Any]) -> ToolResult:
        try:
            with trio.move_on_after(CALL_S):
                return await self.pictures.shelved(await tool.call(arguments))
        except (SandboxUnavailable, TokenRejected):
            raise
        except Unavailable as fault:
            return self._refused(f"the control plane cannot be reached: {fault}")
        except Exception as fault:  # noqa: BLE001 - one tool's fault is an answer, not the end of the run
            # The name of the fault only: its text may quote what the call was made of.
            log.warning("tool_broken", tool=tool.name, fault=type(fault).__name__)
            return self._refused(f"the tool failed: {type(fault).__name__}")
        return self._refused("stopped: it took too long")

    def _unknown(self, name: str) -> ToolResult:
        if name in TOOLS:
            text = (
                f"UZ-TOOL-004: the tool {name} is not attached to this agent: its TRIGGER.md does not name it"
            )
        else:
            text = f"UZ-TOOL-005: there is no tool {name}; there are {', '.join(self.tools) or 'none'}"
        self._run.show(frames.chunk(f"[{self._run.redactor.text(text)}]\n"))
        return self._refused(text)

    def _refused(self, text: str) -> ToolResult:
        return ToolResult(clipped(self._run.redactor.text(text)), ok=False)


async def _raise_parked(gate_id: str) -> None:
    raise Parked(gate_id)


async def _wait_no_longer(gate_id: str) -> None:
    raise Undecided(gate_id)


@asynccontextmanager
async def open_toolbox(run: Run, resting: Callable[[bool], None] | None = None) -> AsyncIterator[Toolbox]:
    """Open what the lease's policy names; raises ``msgspec.ValidationError`` for gates that cannot be read.

    ``resting`` is told when the run begins (True) and ends (False) to wait for a person; without one only
    the time that is billed stands still.
    """

    def rest(begins: bool) -> None:  # noqa: FBT001 - a callback with one meaning
        (run.live.usage.rest if begins else run.live.usage.go)()

    policy = run.live.lease.policy
    gates = read_gates(policy.gates)
    tool_sandbox = ToolSandbox(run)
    kit = Kit(
        run=run,
        tool_sandbox=tool_sandbox,
        secrets=_lent(run),
        folder_files=FolderFiles(run, tool_sandbox),
    )
    asking = Asking(run, resting=resting or rest, park=_raise_parked)
    if run.network is not None:
        run.network.judge = RequestGate(asking, gates.rules, park=_wait_no_longer).judge
    servers = Servers(run, policy.tools)
    tools: dict[str, Tool] = {name: TOOLS[name](kit) for name in policy.tools if name in TOOLS}
    for name in policy.tools:
        if name not in TOOLS and not servers.knows(name):
            run.show(frames.chunk(f"[UZ-TOOL-005: this runner has no tool {name}]\n"))
    async with run_in_background(kit.tool_sandbox.host, *servers.hosts):
        offered, missing = await servers.tools()
        for text in missing:
            run.show(frames.chunk(f"[{text}]\n"))
        yield Toolbox(run, kit, {**offered, **tools}, gates, asking)


def _lent(run: Run) -> LentSecrets:
    policy = run.live.lease.policy
    return LentSecrets(
        policy.secrets_map,
        run.redactor,
        hosts=policy.secret_hosts,
        allow=policy.hosts,
    )
