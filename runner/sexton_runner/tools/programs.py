"""The tools that run programs in the sandbox."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sexton_runner.network import Network
from sexton_runner.redact import Redactor
from sexton_runner.sandbox.jobs import Sandbox
from sexton_runner.sandbox.walls import Loopback, Walls
from sexton_runner.sandbox.workspace import WorkspaceGone
from sexton_runner.sandbox.workspace_command import CommandResult, run_command
from sexton_runner.tools.arguments import an_object
from sexton_runner.tools.base import ToolResult
from sexton_runner.tools.tool_sandbox import ToolSandbox
from sexton_runner.tools.truncation import clipped

DEFAULT_TIMEOUT_S = 60
MAX_TIMEOUT_S = 900
MAX_PROGRAM_CHARS = 30_000  # One word of a command line holds 128 KiB, and a character may be 4 bytes.
SHARED = (
    "The folder it starts in keeps its files for the whole event; the event is in $SEXTON_RUN/event.json. "
)
GOES_ON = (
    "What it leaves running (server &) goes on for the whole event: the answer says its process number, and "
    "the file with its output."
)
ENDS_WITH_IT = "What it leaves running (server &) is ended with it: start and use a server in one call."


def _told(network: Network | None, hosts: Sequence[str], walls: Walls) -> str:
    """Say what a program reaches, by which names it has secrets that it never sees, and what stays of it."""
    stays = SHARED + (GOES_ON if walls.own_processes else ENDS_WITH_IT)
    if network is None or walls.loopback is Loopback.NONE:
        return f"It runs without network and without secrets. {stays}"
    variables = ", ".join(f"${name}" for name in network.variables) or "none"
    return (
        f"It reaches these hosts only, by the proxy of its environment: {', '.join(hosts)}. Placeholders of "
        f"secrets, which become the secret on the way to their host: {variables}. {stays}"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Programs:
    """What ``shell`` and ``python`` have in common."""

    tool_sandbox: ToolSandbox
    sandbox: Sandbox
    redactor: Redactor
    network: Network | None = None
    hosts: Sequence[str] = ()

    @property
    def told(self) -> str:
        """Say, for the model, what all programs of the run have in common."""
        return _told(self.network, self.hosts, self.sandbox.tier.walls)

    async def run(self, words: Sequence[str], source: str, timeout_s: int) -> ToolResult:
        """Run a program that is the last word of its command line."""
        facts: dict[str, Any] = {"program_sha256": hashlib.sha256(source.encode()).hexdigest()}
        try:
            workspace = await self.tool_sandbox.workspace()
            if self.network is not None:
                source = self.network.fill(source)
            done = await run_command(workspace, [*words, source], redactor=self.redactor, timeout_s=timeout_s)
        except WorkspaceGone as gone:
            text = f"the sandbox was ended ({gone}); the next call finds a new one, with an empty folder"
            return ToolResult(self.redactor.text(text), ok=False, facts=facts)
        facts |= {"exit_status": done.status, "timed_out": done.timed_out}
        return ToolResult(told(done), ok=done.ok, facts=facts)


def told(done: CommandResult) -> str:
    """Give what a model reads about a command: its end, then its output, then its errors."""
    parts = [f"[{done.told()}]", done.out.text().rstrip("\n")]
    if errors := done.err.text().rstrip("\n"):
        parts += ["[standard error]", errors]
    for each in done.left:
        prints = f"; what it prints from now on is in {each.log}" if each.log else ""
        parts.append(f"[left running: {each.pid} {each.command}{prints}]")
    return clipped("\n".join(part for part in parts if part))


def _timeout() -> Mapping[str, Any]:
    return {"type": "integer", "minimum": 1, "maximum": MAX_TIMEOUT_S, "default": DEFAULT_TIMEOUT_S}


def _source(what: str) -> Mapping[str, Any]:
    return {"type": "string", "minLength": 1, "maxLength": MAX_PROGRAM_CHARS, "description": what}


@dataclass(frozen=True, slots=True)
class Shell:
    """``shell``."""

    programs: Programs
    name: str = "shell"
    parallel_safe: bool = False

    @property
    def description(self) -> str:
        """Say what is run, and what it reaches."""
        return f"Run shell commands in a sandbox. {self.programs.told}"

    @property
    def input_schema(self) -> Mapping[str, Any]:
        """Give the shape of the arguments."""
        return an_object(["command"], command=_source("a script for /bin/sh"), timeout_s=_timeout())

    async def call(self, arguments: Mapping[str, Any]) -> ToolResult:
        """Run it."""
        timeout_s = arguments.get("timeout_s", DEFAULT_TIMEOUT_S)
        return await self.programs.run(["/bin/sh", "-c"], arguments["command"], timeout_s)


@dataclass(frozen=True, slots=True)
class Python:
    """``python``."""

    programs: Programs
    name: str = "python"
    parallel_safe: bool = False

    @property
    def description(self) -> str:
        """Say what is run, and what it reaches."""
        return f"Run a Python program in a sandbox, with the standard library. {self.programs.told}"

    @property
    def input_schema(self) -> Mapping[str, Any]:
        """Give the shape of the arguments."""
        return an_object(
            ["code"], code=_source("a Python program; print what is to be seen"), timeout_s=_timeout()
        )

    async def call(self, arguments: Mapping[str, Any]) -> ToolResult:
        """Run it."""
        timeout_s = arguments.get("timeout_s", DEFAULT_TIMEOUT_S)
        words = self.programs.sandbox.interpreter("python", "-c")
        return await self.programs.run(words, arguments["code"], timeout_s)
