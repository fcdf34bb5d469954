"""Runs one command of a workspace to its end, within a time, and keeps of its output what may be kept."""

import codecs
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import trio

from sexton_runner.output import Output
from sexton_runner.redact import Redactor, StreamRedactor
from sexton_runner.sandbox.workspace import LeftRunning, Pieces, Workspace


@dataclass(slots=True)
class CommandResult:
    """How a command ended. ``status`` is None when it was stopped: out of time, or by its flood of output."""

    out: Output
    err: Output
    status: int | None = None
    timed_out: bool = False
    flooded: bool = False
    left: tuple[LeftRunning, ...] = ()

    @property
    def ok(self) -> bool:
        """Tell whether it ended well."""
        return self.status == 0

    def told(self) -> str:
        """Say how it ended, in a few words."""
        if self.timed_out:
            return "stopped: it took too long"
        if self.flooded:
            return "stopped: it printed too much"
        if self.status is not None and self.status < 0:
            return f"ended by signal {-self.status}"
        return f"exit status {self.status}"


def _unheard(text: str) -> None:
    """Show nothing."""


async def run_command(
    workspace: Workspace,
    argv: Sequence[str],
    *,
    redactor: Redactor,
    timeout_s: float,
    stdin: bytes = b"",
    env: Mapping[str, str] | None = None,
    hear: Callable[[str], None] = _unheard,
) -> CommandResult:
    """Run ``argv``; raises ``WorkspaceGone``. ``hear`` gets standard output, redacted, as it comes."""
    seen = CommandResult(Output(), Output())
    with trio.CancelScope() as scope:
        async with workspace.work(argv, env=env, stdin=stdin) as work:
            # The time begins with the command, not while it waits for the one before.
            scope.deadline = trio.current_time() + timeout_s
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_drain, work.stdout, seen.out, redactor, hear, scope)
                nursery.start_soon(_drain, work.stderr, seen.err, redactor, _unheard, scope)
                await work.ended()
            seen.status = await work.wait()
            seen.left = work.left
    seen.flooded = seen.out.flooded or seen.err.flooded
    seen.timed_out = scope.cancelled_caught and not seen.flooded
    return seen


async def _drain(
    pieces: Pieces, output: Output, redactor: Redactor, hear: Callable[[str], None], scope: trio.CancelScope
) -> None:
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    stream = StreamRedactor(redactor)
    while piece := await pieces.receive_some():
        text = stream.feed(decoder.decode(piece))
        output.feed(text.encode())
        hear(text)
        if output.flooded:
            scope.cancel()
            return
    text = stream.feed(decoder.decode(b"", final=True)) + stream.flush()
    output.feed(text.encode())
    hear(text)
