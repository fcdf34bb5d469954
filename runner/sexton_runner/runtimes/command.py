"""Runs the fenced program of an agent's instructions in the sandbox, with the event on its standard input."""

import codecs
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import assert_never

import msgspec
import orjson
import trio

from sexton_runner import frames
from sexton_runner.code_blocks import Block, first_runnable
from sexton_runner.command_channel import Channel, ChannelFlooded, open_channel
from sexton_runner.command_protocol import Ask, Failed, Garbage, Line, Part, Progress, Started, Step, reply
from sexton_runner.errors import SandboxUnavailable
from sexton_runner.event import event_json
from sexton_runner.gates import MAX_ASKS, MAX_GATE_EVIDENCE_BYTES, Asking
from sexton_runner.kept_workspace import LOST, KeptWorkspace, WorkspaceLost, with_workspace
from sexton_runner.output import MAX_OUTPUT_BYTES, Output
from sexton_runner.redact import StreamRedactor
from sexton_runner.rules import read_gates
from sexton_runner.run import Ending, Outcome, Run, failed
from sexton_runner.run_files.file_upload import Left, send_files, with_files
from sexton_runner.run_files.files_pipe import FilesPipe, open_files_pipe, put_sender
from sexton_runner.runtimes.programs import Kept, Program, Source, given, with_checks
from sexton_runner.runtimes.verdict import Observed, judge
from sexton_runner.sandbox.jobs import INSIDE_PATH, Running
from sexton_runner.sandbox.tiers import Inside
from sexton_runner.sandbox.workspace import WorkspaceGone, open_workspace
from sexton_runner.step_frames import StepFrames
from sexton_runner.tools.completion_checks import Checks
from sexton_runner.tools.request_gate import RequestGate
from sexton_runner.transcript import steps

HELPERS = Path(__file__).resolve().parent.parent / "helper"
READ_BYTES = 65536
MAX_OPEN_ASKS = 32
# For output that was written before the end but not read yet; longer only if something is very wrong.
DRAIN_S = 2.0
VERDICTS = {"approved": "approved", "denied": "denied"}


async def run_command(run: Run) -> Ending:
    """Run the first ``sh`` or ``python`` block; never raises for what the command or the sandbox does."""
    block = first_runnable(run.live.lease.instructions)
    if block is None:
        return failed(
            "invalid_config", "the instructions hold no fenced sh or python block, so there is nothing to run"
        )
    run_dir, workspace = run.folder / "run", run.folder / "workspace"
    try:
        _furnish(run, block, run_dir, workspace)
        with open_channel(run_dir) as channel, open_files_pipe(run_dir) as pipe:
            attempt = _Attempt(run, block, channel, pipe)
            ending = await attempt.carry_out(run_dir, workspace)
            return with_files(ending, attempt.left, run)
    except msgspec.ValidationError as fault:
        return failed("invalid_config", f"the gates of the lease cannot be read: {fault}")
    except WorkspaceLost as fault:
        return failed(LOST, str(fault))
    except (SandboxUnavailable, WorkspaceGone, OSError) as fault:
        return failed("startup_posture", f"UZ-RUN-007: the sandbox could not be established: {fault}")


def _furnish(run: Run, block: Block, run_dir: Path, workspace: Path) -> None:
    (run_dir / "bin").mkdir(parents=True)
    workspace.mkdir()
    for name in ("sexton-step", "sexton-start"):
        helper = run_dir / "bin" / name
        helper.write_bytes((HELPERS / name).read_bytes())
        helper.chmod(0o755)
    put_sender(run.sandbox, run_dir)
    source = block.source if run.network is None else run.network.fill(block.source)
    (run_dir / "program").write_text(source, encoding="utf-8")
    (run_dir / "event.json").write_bytes(event_json(run.live.lease))
    (run_dir / "memory.json").write_bytes(orjson.dumps(run.live.lease.memory))


class _Attempt:
    """One start of the program, from the first byte to the last."""

    def __init__(self, run: Run, block: Block, channel: Channel, pipe: FilesPipe) -> None:
        self._run, self._block, self._channel, self._pipe = run, block, channel, pipe
        self.left = Left()
        self._files_sent = trio.Event()
        self._show = steps(run.show, run.record)
        self._story = StepFrames(self._show, run.clock)
        self._asking = Asking(run, resting=self._rest)
        if run.network is not None:
            gates = read_gates(run.live.lease.policy.gates)
            run.network.judge = RequestGate(self._asking, gates.rules).judge
        self._wall = trio.CancelScope()
        self._wall_left = run.sandbox.limits.wall_s
        self._out, self._err = Output(), Output()
        self._seen = Observed()
        self._began = run.clock()
        self._parts: dict[str, bytearray] = {}
        self._asks = self._open_asks = 0
        self._checks = read_gates(run.live.lease.policy.gates).checks
        self._kept = KeptWorkspace(run)

    async def carry_out(self, run_dir: Path, workspace: Path) -> Ending:
        """Start, attend to and judge the program, and its checks if it has any."""
        if self._checks or self._kept.is_wanted:
            return await self._checked(run_dir, workspace)
        inside = self._run.sandbox.tier.inside(run_dir, workspace)
        argv = self._argv(inside)
        serial = self._run.live.lease.lease_id
        try:
            async with self._run.sandbox.open(
                argv,
                run_dir=run_dir,
                workspace=workspace,
                env=self._env(inside),
                serial=serial,
                network=self._run.network,
                brought=self._run.brought,
            ) as running:
                await self._attend(running.child, partial(self._feed, running))
                self._seen.out_of_memory = running.out_of_memory()
                self._seen.out_of_disk = running.out_of_disk()
        finally:
            # Also of a run that was halted: who watches sees its last step end.
            self._story.end(ok=self._seen.exit_status == 0)
        return self._judged()

    def _judged(self) -> Ending:
        self._seen.refusal = self._asking.refusal
        return judge(self._seen, self._out, self._err, self._run.redactor, self._run.sandbox.limits)

    async def _checked(self, run_dir: Path, folder: Path) -> Ending:
        """Run the program, then its checks in the same folder. Nobody is there to repair what they find.

        A folder that the agent keeps is filled before and kept after.
        """
        run = self._run
        async with open_workspace(
            run.sandbox,
            run_dir=run_dir,
            folder=folder,
            serial=run.live.lease.lease_id,
            network=run.network,
            brought=run.brought,
        ) as workspace:
            await self._kept.restore(workspace, run_dir)
            inside = workspace.inside
            argv = self._argv(inside)
            event = event_json(run.live.lease)
            try:
                async with workspace.work(argv, env=self._env(inside), stdin=event) as work:
                    await self._attend(Kept(work))
                self._seen.out_of_memory = workspace.out_of_memory()
                self._seen.out_of_disk = workspace.out_of_disk()
            finally:
                self._story.end(ok=self._seen.exit_status == 0)
            ending = self._judged()
            if ending.outcome is not Outcome.PROCESSED:
                return ending
            checks = Checks(
                self._checks,
                partial(given, workspace),
                show=self._show,
                redactor=run.redactor,
                clock=run.clock,
            )
            ending = with_checks(ending, await checks.run(repairable=False))
            if ending.outcome is not Outcome.PROCESSED:
                return ending
            return with_workspace(ending, await self._kept.keep(workspace), run)

    def _argv(self, inside: Inside) -> list[str]:
        sandbox = self._run.sandbox
        # The program is not the first process any more; without walls it has to be told to end with that.
        guard = [] if sandbox.tier.walls.own_processes else [sandbox.setpriv, "--pdeathsig", "KILL", "--"]
        program = sandbox.interpreter(self._block.language, f"{inside.run_dir}/program")
        return ["/bin/sh", f"{inside.run_dir}/bin/sexton-start", *guard, *program]

    def _env(self, inside: Inside) -> dict[str, str]:
        lease = self._run.live.lease
        return self._run.sandbox.environment(
            {
                "PATH": f"{inside.run_dir}/bin:{INSIDE_PATH}",
                "HOME": inside.home,
                "TMPDIR": inside.home,
                "LANG": "C.UTF-8",
                "SEXTON_RUN": inside.run_dir,
                "SEXTON_EVENT_ID": lease.event.event_id,
                "SEXTON_ATTEMPT": str(lease.attempt),
                **({"TRACEPARENT": lease.traceparent} if lease.traceparent else {}),
            }
        )

    async def _attend(self, program: Program, feed: Callable[[], Awaitable[None]] | None = None) -> None:
        self._wall.deadline = trio.current_time() + self._wall_left
        with self._wall:
            async with trio.open_nursery() as listeners:
                listeners.start_soon(self._listen, listeners)
                listeners.start_soon(self._send_files)
                async with trio.open_nursery() as streams:
                    if feed is not None:
                        streams.start_soon(feed)
                    streams.start_soon(self._pump, program.stdout, self._out, self._print)
                    streams.start_soon(self._pump, program.stderr, self._err, self._record_error)
                    self._seen.exit_status = await program.wait()
                    # What the program left running has died with it, so the streams end; the bound is for
                    # the unforeseen.
                    streams.cancel_scope.deadline = trio.current_time() + DRAIN_S
                await self._hear_out()
                self._pipe.end()
                await self._files_sent.wait()
                listeners.cancel_scope.cancel()
        self._seen.timed_out = self._wall.cancelled_caught and not self._seen.flooded

    async def _feed(self, running: Running) -> None:
        async with running.child.stdin as stdin:
            try:
                await stdin.send_all((self._run.folder / "run" / "event.json").read_bytes())
            except trio.BrokenResourceError:
                return  # A program need not read its event.

    async def _pump(self, stream: Source, output: Output, show: Callable[[str], None]) -> None:
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        redactor = StreamRedactor(self._run.redactor)
        while piece := await stream.receive_some(READ_BYTES):
            text = redactor.feed(decoder.decode(piece))
            output.feed(text.encode())
            show(text)
            if output.flooded:
                self._flooded(f"it printed more than {MAX_OUTPUT_BYTES >> 20} MiB")
                return
        text = redactor.feed(decoder.decode(b"", final=True)) + redactor.flush()
        output.feed(text.encode())
        show(text)

    def _print(self, text: str) -> None:
        if text:
            if self._seen.first_output_ms is None:
                self._seen.first_output_ms = self._ms()
            self._run.show(frames.chunk(text))
            self._run.record("output", {"stream": "stdout", "text": text})

    def _record_error(self, text: str) -> None:
        # Errors are told in the report, and only when the run failed; the transcript has them in any case.
        if text:
            self._run.record("output", {"stream": "stderr", "text": text})

    def _flooded(self, how: str) -> None:
        self._seen.flooded = True
        self._seen.flood = self._seen.flood or how
        self._wall.cancel()

    async def _listen(self, nursery: trio.Nursery) -> None:
        try:
            while True:
                for line in await self._channel.read():
                    self._hear(line, nursery)
        except ChannelFlooded as flood:
            self._flooded(str(flood))

    async def _send_files(self) -> None:
        self.left = await send_files(self._run, self._pipe)
        self._files_sent.set()

    async def _hear_out(self) -> None:
        """Hear what was said before the end; nobody is there any more to answer to."""
        try:
            while lines := await self._channel.rest():
                for line in lines:
                    self._hear(line, None)
        except ChannelFlooded as flood:
            self._flooded(str(flood))

    def _hear(self, line: Line, nursery: trio.Nursery | None) -> None:
        match line:
            case Started():
                self._seen.started = True
            case Step(name):
                self._story.begin(self._run.redactor.text(name))
            case Progress():
                self._story.progress()
            case Failed():
                self._story.end(ok=False)
            case Part(ask_id, data):
                self._collect(ask_id, data)
            case Ask():
                if nursery is not None:
                    self._begin_ask(line, nursery)
            case Garbage():
                pass  # A command may write what it likes into its own pipe.
            case _:
                assert_never(line)

    def _collect(self, ask_id: str, data: bytes) -> None:
        if ask_id in self._parts or len(self._parts) < MAX_OPEN_ASKS:
            held = self._parts.setdefault(ask_id, bytearray())
            held += data[: MAX_GATE_EVIDENCE_BYTES - len(held)]

    def _begin_ask(self, ask: Ask, nursery: trio.Nursery) -> None:
        evidence = bytes(self._parts.pop(ask.ask_id, b""))
        self._asks += 1
        if self._asks > MAX_ASKS:
            self._flooded(f"it asked for more than {MAX_ASKS} approvals")
        elif self._open_asks >= MAX_OPEN_ASKS:
            self._flooded(f"it asked for more than {MAX_OPEN_ASKS} approvals at a time")
        else:
            self._open_asks += 1
            nursery.start_soon(self._ask, ask, evidence)

    async def _ask(self, ask: Ask, evidence: bytes) -> None:
        try:
            decision = await self._asking.decide(ask, evidence)
        finally:
            self._open_asks -= 1
        self._channel.answer(reply(VERDICTS.get(decision.status, "ended"), ask.ask_id, decision.detail))

    def _rest(self, resting: bool) -> None:  # noqa: FBT001 - a callback with one meaning
        # Time at a gate is a person's, not the run's: it is neither billed nor counted against the wall
        # clock.
        if resting:
            self._run.live.usage.rest()
            self._wall_left = self._wall.deadline - trio.current_time()
            self._wall.deadline = float("inf")
        else:
            self._run.live.usage.go()
            self._wall.deadline = trio.current_time() + self._wall_left

    def _ms(self) -> int:
        return int((self._run.clock() - self._began) * 1000)
