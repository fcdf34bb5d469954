"""A runner on a simulated machine: the real client, renewals and drain; runs that follow a script."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, NamedTuple
from uuid import UUID

import orjson
import trio

from sexton_runner.checkpoint import RESOLVED
from sexton_runner.client import ControlPlane, Outage, open_http
from sexton_runner.command_protocol import Ask
from sexton_runner.errors import ControlPlaneError
from sexton_runner.frames import chunk
from sexton_runner.gates import Asking
from sexton_runner.lease import Halt, LiveLease
from sexton_runner.lease_execution import RunnerContext
from sexton_runner.providers.base import Usage as TokenCounts
from sexton_runner.renewal import Renewer
from sexton_runner.reporter import Answer, Reporter
from sexton_runner.reports import Report
from sexton_runner.run import Ending, Outcome, Run, failed
from sexton_runner.runner import Runner
from sexton_runner.sandbox.jobs import Sandbox
from sexton_runner.sandbox.limits import Limits
from sexton_runner.sandbox.tiers import Bare
from sexton_runner.supervisors.launcher import Launcher
from sexton_runner.supervisors.messages import Job, Outfit, Pipe
from sexton_runner.supervisors.process import supervise
from sexton_runner.timing import Clock, Timing
from sexton_runner.wire import Gate
from tests.simulation.product.customers import parts_of
from tests.simulation.product.follow_up_asking import ask_later, asks_later, told_apart_by
from tests.simulation.product.node import NAME, PORT
from tests.simulation.product.proposal_writing import note_told, with_proposal
from tests.simulation.product.refusals import note_refusals
from tests.simulation.product.requests import tell_of
from tests.simulation.product.runs import AskedGate, Handed, Runs
from tests.simulation.world.processes import PROCESS, Machine
from tests.simulation.world.replacements import Ending as ProcessEnding
from tests.simulation.world.run import World
from tests.simulation.world.sockets import SimulatedSocket

LIMITS = Limits(wall_s=3600, memory_bytes=1 << 28, pids=64)
SLOTS = 2
DRAIN_S = 20.0
PUT_OFF_EACH = 32
"""One run in 32 gives its event back for later, as a run does when every model is busy."""
PUT_OFF_MS = 12_000
PARKING_S = 0.012
"""From the last look at a gate to the parking. A person needs as long to reach a server."""


class Supervised(ProcessEnding):
    """The process of one run."""

    def __init__(self, world: World) -> None:
        super().__init__(world.descriptors)
        self.scope = trio.CancelScope()

    def kill(self, sent: int) -> None:
        del sent
        self.scope.cancel()


class TaskLauncher(Launcher):
    """Starts supervisors as tasks of the runner, which die with it."""

    def __init__(self, world: World, machine: Machine, nursery: trio.Nursery) -> None:
        super().__init__()
        self._world, self._machine, self._nursery = world, machine, nursery

    def start(self) -> None:
        """There is nothing to import."""

    async def fork(self, modules: Any) -> tuple[Pipe, int]:
        del modules
        await trio.lowlevel.checkpoint()
        ours, theirs = self._world.network.pair(self._machine)
        process = Supervised(self._world)
        number = self._world.descriptors.open(process)
        self._nursery.start_soon(self._supervise, theirs, process)
        return Pipe(trio.SocketStream(SimulatedSocket(self._world.network, ours))), number

    async def _supervise(self, theirs: int, process: Supervised) -> None:
        try:
            with process.scope:
                await supervise(theirs)
        except* (OSError, trio.BrokenResourceError, trio.ClosedResourceError):
            self._world.note("supervisor-broke")
        finally:
            process.set()


async def play(
    job: Job,
    live: LiveLease,
    plane: ControlPlane,
    _: Random,
    *,
    voice: Any,
    redactor: Any,
    seed: int,
    runs: Runs,
) -> Ending:
    """What an agent does, by a script that the seed, its event and its attempt decide.

    The runner's own number for the run does not: then one fault fewer would make all later runs others.
    """
    process = PROCESS.get()
    assert process is not None
    lease_id = UUID(job.lease.lease_id)
    runs.at_work[live] = UUID(job.lease.event.zombie_id), process
    runs.used[lease_id] = live.usage
    note_refusals(plane._http, runs)
    runs.handed.append(Handed(lease_id, process.machine.name, job.lease.instructions))
    note_told(job.lease, runs)
    try:
        rng = _script_of(seed, job)
        if runs.ask_for_more and asks_later(parts_of(job.lease.event.request_json).rest, _asked(job)):
            await ask_later(job.lease, plane, runs, _asked(job))
        ending = await _play(job, live, plane, rng, runs, voice=voice, redactor=redactor)
        if _is_put_off(seed, job):
            return await _put_off(live, plane)
        return with_proposal(ending, job.lease, runs, _asked(job))
    finally:
        runs.at_work.pop(live, None)


def _script_of(seed: int, job: Job) -> Random:
    return Random((seed << 40) + (job.lease.attempt << 32) + _asked(job))


def _asked(job: Job) -> int:
    # Whom it is about changes nothing in what is done.
    rest = told_apart_by(parts_of(job.lease.event.request_json).rest)
    return zlib.crc32(orjson.dumps(rest, option=orjson.OPT_SORT_KEYS))


def _is_put_off(seed: int, job: Job) -> bool:
    """Not drawn from the script: nothing else of a run is another for it."""
    return (_asked(job) + 7 * job.lease.attempt + 13 * seed) % PUT_OFF_EACH == 0


async def _play(
    job: Job,
    live: LiveLease,
    plane: ControlPlane,
    rng: Random,
    runs: Runs,
    *,
    voice: Any,
    redactor: Any,
) -> Ending:
    run = Run(
        live=live,
        plane=plane,
        sandbox=job.outfit.sandbox,
        timing=job.outfit.timing,
        rng=rng,
        clock=trio.current_time,
        redactor=redactor,
        show=voice.sender.put,
        shown=voice.flush,
        record=voice.transcript.put,
        folder=job.folder,
    )
    asking = WatchedAsking(run, runs, resting=partial(_rest, live))
    read = written = 0
    customer = parts_of(job.lease.event.request_json).customer
    for step in range(rng.randrange(1, 4)):
        await trio.sleep(rng.uniform(0.3, 9))
        read, written = read + rng.randrange(3000), written + rng.randrange(500)
        # Of what it has read, as much again came from a cache, and half as much was put into one.
        live.usage.count(TokenCounts(read, read, written, read // 2))
        voice.sender.put(chunk(f"step {step} for {customer}"))
        if rng.random() < 0.2:
            what = f"Deploy again for {customer}."
            await asking.decide(Ask("1", f"deploy-{step}", "http", "deploy", what, "one"), b"{}")
    if rng.random() < 0.1:
        return failed("agent_run", f"it did not work for {customer}")
    return Ending(
        outcome=Outcome.PROCESSED,
        response_text=f"done for {customer}",
        evidence={"found": "it", "for": customer},
    )


async def _put_off(live: LiveLease, plane: ControlPlane) -> Ending:
    """Give the event back for later, as the product's loop does when every model is busy."""
    body = {"reason": "every model is busy", "retry_after_ms": PUT_OFF_MS, "usage": live.renewal()}
    try:
        await plane.give_back(live.lease.lease_id, body)
    except ControlPlaneError as refusal:
        return failed("agent_run", f"it was not given back: {refusal}")
    live.halt(Halt.GIVEN_BACK, "every model is busy")
    return await trio.sleep_forever()  # The halt has cancelled the scope that this runs in.


def _rest(live: LiveLease, rests: bool) -> None:
    if rests:
        live.usage.rest()
    else:
        live.usage.go()


class WatchedAsking(Asking):
    """Has people know when a run is about to park, and parks as a busy machine does."""

    def __init__(self, run: Run, runs: Runs, *, resting: Callable[[bool], None]) -> None:
        super().__init__(run, resting=resting)
        self._runs = runs

    async def _find(self, key: str, ask: Ask, evidence: bytes) -> Gate:
        gate = await super()._find(key, ask, evidence)
        if gate.status not in RESOLVED:
            found, lease_id = UUID(gate.gate_id), UUID(self._live.lease.lease_id)
            self._runs.asked_gates[found] = AskedGate(found, lease_id)
        return gate

    async def _park(self, gate_id: str) -> None:
        self._runs.parkings.to_people.send_nowait(UUID(gate_id))
        await trio.sleep(PARKING_S)
        await super()._park(gate_id)


class Lost(NamedTuple):
    """Where it is noted that a lease was refused for good."""

    runs: Runs
    now_ms: Callable[[], int]


class WatchedRenewer(Renewer):
    """Notes each lease that the control plane calls lost."""

    def __init__(self, plane: ControlPlane, timing: Timing, rng: Random, clock: Clock, lost: Lost) -> None:
        super().__init__(plane, timing, rng, clock)
        self._lost = lost

    def _end(self, live: LiveLease, why: Halt, reason: str) -> None:
        if why is Halt.LOST and reason.startswith("UZ-"):
            self._lost.runs.told_lost.append((UUID(live.lease.lease_id), reason, self._lost.now_ms()))
        super()._end(live, why, reason)


class WatchedReporter(Reporter):
    """Notes each report before it is sent."""

    def __init__(self, plane: ControlPlane, gather_s: float, runs: Runs) -> None:
        super().__init__(plane, gather_s)
        self._runs = runs

    async def report(self, body: Report) -> Answer:
        self._runs.reported[UUID(body["lease_id"])] = body
        return await super().report(body)


class SimulatedRunner:
    """One runner, which may be started again after its death."""

    def __init__(
        self, world: World, machine: Machine, token: str, lost: Lost, timing: Timing | None = None
    ) -> None:
        self._world, self._machine, self._token, self._lost = world, machine, token, lost
        self._timing = timing or Timing()
        self.current: Runner | None = None

    async def run(self, seed: int) -> None:
        rng, pace = Random(seed), self._timing
        url = f"http://{NAME}:{PORT}"
        sandbox = Sandbox(
            tier=Bare("/bin/false", "/bin/false"),
            layout=None,
            name=self._machine.name,
            limits=LIMITS,
            setpriv="",
        )
        outfit = Outfit(base_url=url, token=self._token, sandbox=sandbox, most=LIMITS, timing=pace)
        connect = partial(open_http, url, self._token, pace.call_timeout_s)
        async with connect() as work, connect() as beats, trio.open_nursery() as nursery:
            for http in (work, beats):
                tell_of(http, self._world.tale, self._machine.name)
                note_refusals(http, self._lost.runs)
            outage = Outage(trio.current_time)
            plane, pulse = ControlPlane(work, outage), ControlPlane(beats, outage)
            context = RunnerContext(
                plane=plane,
                renewer=WatchedRenewer(pulse, pace, rng, trio.current_time, self._lost),
                reporter=WatchedReporter(plane, pace.gather_s, self._lost.runs),
                timing=pace,
                rng=rng,
                clock=trio.current_time,
                folder=Path("/simulated/runs"),
                launcher=TaskLauncher(self._world, self._machine, nursery),
                outfit=outfit,
            )
            self.current = Runner(context, pulse, slots=SLOTS, drain_s=DRAIN_S)
            await self.current.run()
            nursery.cancel_scope.cancel()
