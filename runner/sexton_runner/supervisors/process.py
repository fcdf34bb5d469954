"""What the supervisor of a run does: carries the run out, tells its runner what it uses and how it ended."""

import contextlib
import random
import socket
from dataclasses import dataclass, replace

import orjson
import structlog
import trio

from sexton_runner.client import ControlPlane, Outage, open_http
from sexton_runner.errors import SandboxUnavailable, TokenRejected
from sexton_runner.frame_sender import FrameSender
from sexton_runner.images.store import find
from sexton_runner.lease import Halt, LiveLease
from sexton_runner.network import without_places
from sexton_runner.redact import Redactor
from sexton_runner.run import Ending, Run, failed
from sexton_runner.run_bounds import TooMuch, allotted
from sexton_runner.run_files.brought_files import LOST, FilesLost, fetch_files
from sexton_runner.run_folder import remove_folder
from sexton_runner.run_network import open_network
from sexton_runner.runtimes.registry import carry_out
from sexton_runner.sandbox.jobs import Sandbox
from sexton_runner.sandbox.walls import Loopback
from sexton_runner.server_network import open_server_network
from sexton_runner.supervisors.messages import (
    MAX_MESSAGE_BYTES,
    Job,
    Over,
    Pipe,
    Refusal,
    encoded,
    read_stop,
    unpack_job,
    used,
)
from sexton_runner.transcript_sender import TranscriptSender

TELL_S = 0.25  # Counters this old at most go with a renewal.
SIGN_OF_LIFE_S = 2.0
log = structlog.get_logger()


async def supervise(descriptor: int) -> None:
    """Carry out the job that comes over the socket ``descriptor``, and end with it."""
    stream = trio.SocketStream(trio.socket.from_stdlib_socket(socket.socket(fileno=descriptor)))
    pipe = Pipe(stream)
    content = await pipe.receive()
    if content is None:
        return
    job = unpack_job(content)
    live = LiveLease(job.lease, trio.current_time, job.outfit.timing.lease_term_s)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_obey, pipe, live, nursery.cancel_scope)
        nursery.start_soon(_tell, pipe, live)
        over = await _carried(job, live)
        with contextlib.suppress(trio.BrokenResourceError):
            await pipe.send(_last_word(over))
        nursery.cancel_scope.cancel()
    await pipe.aclose()


async def _obey(pipe: Pipe, live: LiveLease, everything: trio.CancelScope) -> None:
    while content := await pipe.receive():
        stop = read_stop(content)
        live.halt(stop.why, stop.reason)
    everything.cancel()  # The runner has let go of us.


async def _tell(pipe: Pipe, live: LiveLease) -> None:
    told: tuple[object, ...] = ()
    while True:
        now = (live.usage.resting, live.usage.counted(), int(trio.current_time() / SIGN_OF_LIFE_S))
        if now != told:
            told = now
            try:
                await pipe.send(encoded(used(live.usage)))
            except trio.BrokenResourceError:
                return
        with trio.move_on_after(TELL_S):
            await live.usage.changed.wait()
        live.usage.changed = trio.Event()


async def _carried(job: Job, live: LiveLease) -> Over:
    ending: Ending | None = None
    refusal: Refusal | None = None
    try:
        ending = await _run(job, live)
    except* TokenRejected as group:
        fault = _first(group)
        refusal = Refusal(fault.status, fault.code, fault.detail)
    return Over(
        used=used(live.usage),
        ending=ending,
        halted=live.halted,
        reason=live.reason,
        account=None if live.account is None or ending is not None else live.account(),
        refusal=refusal,
    )


async def _run(job: Job, live: LiveLease) -> Ending | None:
    """Give the ending, or None when the run was halted before it. Its frames are on their way by then."""
    timing, rng = job.outfit.timing, random.Random(job.seed)  # noqa: S311 - it spreads calls in time
    ending: Ending | None = None
    lease, outfit = job.lease, job.outfit
    structlog.contextvars.bind_contextvars(
        lease_id=lease.lease_id, event_id=lease.event.event_id, agent_id=lease.event.zombie_id
    )
    connection = open_http(outfit.base_url, outfit.token, timing.call_timeout_s, outfit.server_cert)
    async with connection as http:
        plane = ControlPlane(http, Outage(trio.current_time, told=False))
        sender = FrameSender(live, plane, timing, rng)
        redactor = Redactor(lease.policy.secrets_map, lease.policy.api_key)
        redactor.learn({"fallbacks": [one.api_key or "" for one in lease.policy.fallbacks]})
        redactor.learn({one.name: one.secrets for one in lease.policy.mcp_servers})
        transcript = TranscriptSender(live, plane, timing=timing, rng=rng, redactor=redactor)
        voice = _Voice(sender, transcript)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(sender.run)
            nursery.start_soon(transcript.run)
            with live.scope:
                live.usage.go()
                ending = await _guarded(job, live, plane, rng, voice=voice, redactor=redactor)
            live.usage.rest()
            if live.halted not in (Halt.LOST, Halt.PARKED, Halt.GIVEN_BACK):
                transcript.put("end", _told_of(ending, live))
                await voice.flush()
            nursery.cancel_scope.cancel()
    # A run that had ended by itself has ended, even if something halted it while its frames were sent.
    return ending


def _told_of(ending: Ending | None, live: LiveLease) -> dict[str, str | None]:
    if ending is not None:
        return {"outcome": ending.outcome.value, "failure_reason": ending.failure_reason}
    return {"halted": None if live.halted is None else live.halted.value, "reason": live.reason}


@dataclass(frozen=True, slots=True)
class _Voice:
    """What a run shows while it goes on, and what is kept of it."""

    sender: FrameSender
    transcript: TranscriptSender

    async def flush(self) -> None:
        async with trio.open_nursery() as both:
            both.start_soon(self.sender.flush)
            both.start_soon(self.transcript.flush)


def _asked_for(job: Job) -> Sandbox:
    """Give the sandbox as this run's agent asks for it; raises ``TooMuch`` and ``SandboxUnavailable``."""
    sandbox, policy = job.outfit.sandbox, job.lease.policy
    limits = allotted(policy.resources, sandbox.limits, job.outfit.most)
    if not policy.hosts or sandbox.tier.walls.loopback is Loopback.NONE:
        # With a network its proxy's side gives them, placeholders put in.
        sandbox = replace(sandbox, variables=without_places(policy.env))
    if policy.image is None:
        return replace(sandbox, limits=limits)
    image = find(job.outfit.images, policy.image) if sandbox.tier.walls.own_root else None
    if image is None:
        raise SandboxUnavailable(f"this runner does not have the image {policy.image}")
    return replace(sandbox, limits=limits, image=image)


async def _guarded(
    job: Job,
    live: LiveLease,
    plane: ControlPlane,
    rng: random.Random,
    *,
    voice: _Voice,
    redactor: Redactor,
) -> Ending:
    try:
        sandbox = _asked_for(job)
    except TooMuch as fault:
        return failed("invalid_config", f"resources: {fault}")
    except SandboxUnavailable as fault:
        return failed("startup_posture", f"UZ-RUN-007: the sandbox could not be established: {fault}")
    run = Run(
        live=live,
        plane=plane,
        sandbox=sandbox,
        timing=job.outfit.timing,
        rng=rng,
        clock=trio.current_time,
        redactor=redactor,
        show=voice.sender.put,
        shown=voice.flush,
        record=voice.transcript.put,
        folder=job.folder,
        tools=job.outfit.tools,
        models=job.outfit.models,
    )
    ending = failed("run_start", "the runner could not carry out the run; its log says more")
    try:
        job.folder.mkdir(mode=0o700, parents=True)
        policy, egress = live.lease.policy, job.outfit.egress
        async with (
            open_network(policy, egress, redactor, run.show) as network,
            open_server_network(policy.mcp_servers, egress, redactor, run.show, job.folder) as servers,
        ):
            ending = await _begun(replace(run, network=network, servers=servers))
    except* TokenRejected:
        raise
    except* MemoryError:
        ending = failed("resource_kill", "the run made its supervisor use more memory than it may")
    except* Exception:
        # A fault of ours ends this event, and says so in the log.
        log.exception("run_broken", lease_id=live.lease.lease_id)
    finally:
        with trio.CancelScope(shield=True):
            await trio.to_thread.run_sync(remove_folder, job.folder)
    return ending


async def _begun(run: Run) -> Ending:
    try:
        return await carry_out(replace(run, brought=await fetch_files(run)))
    except FilesLost as fault:
        return failed(LOST, str(fault))


def _last_word(over: Over) -> bytes:
    try:
        content = encoded(over)
    except (TypeError, orjson.JSONEncodeError):
        log.exception("ending_unspeakable")
        content = b""
    if not content or len(content) > MAX_MESSAGE_BYTES:
        text = "what the run came to cannot be told: it is too long, or no JSON"
        content = encoded(Over(used=over.used, ending=failed("agent_run", text), halted=over.halted))
    return content


def _first(group: BaseExceptionGroup[TokenRejected]) -> TokenRejected:
    for inner in group.exceptions:
        return _first(inner) if isinstance(inner, BaseExceptionGroup) else inner
    raise AssertionError("an exception group holds at least one exception")
