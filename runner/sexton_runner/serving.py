"""Carries one lease from its grant to its report."""

import random
import shutil
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, assert_never

import structlog
import trio
from structlog.contextvars import bind_contextvars

from sexton_runner.client import ControlPlane
from sexton_runner.errors import ControlPlaneError, Refused, TokenRejected, Unavailable
from sexton_runner.lease import Halt, LiveLease
from sexton_runner.providers.settings import ModelSettings
from sexton_runner.redact import Redactor
from sexton_runner.renewal import Renewer
from sexton_runner.run import Ending, Outcome, Run, failed
from sexton_runner.runtimes.registry import carry_out
from sexton_runner.sandbox.enclosure import Sandbox
from sexton_runner.sending import FrameSender
from sexton_runner.timing import Clock, Timing, backoff
from sexton_runner.tool_settings import ToolSettings

log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Workshop:
    """What all runs of one runner share. ``folder`` holds a private folder for each run."""

    plane: ControlPlane
    renewer: Renewer
    sandbox: Sandbox
    timing: Timing
    rng: random.Random
    clock: Clock
    folder: Path
    tools: ToolSettings = field(default_factory=ToolSettings)
    models: ModelSettings = field(default_factory=ModelSettings)


async def serve(live: LiveLease, shop: Workshop) -> None:
    """Run, then report, release or say nothing, as the end of the run asks. Only ``TokenRejected`` leaves."""
    began, event = shop.clock(), live.lease.event
    # This task is the lease's own, and so are those that it starts.
    bind_contextvars(lease_id=live.lease.lease_id, event_id=event.event_id, agent_id=event.zombie_id)
    shop.renewer.add(live)
    try:
        ending = await _run(live, shop)
        await _close(live, shop, ending, int((shop.clock() - began) * 1000))
    finally:
        shop.renewer.remove(live)


async def _run(live: LiveLease, shop: Workshop) -> Ending | None:
    """Give the ending, or None when the run was halted before it. Its frames are on their way by then."""
    sender = FrameSender(live, shop.plane, shop.timing, shop.rng)
    ending: Ending | None = None
    async with trio.open_nursery() as nursery:
        nursery.start_soon(sender.run)
        with live.scope:
            live.begun = True
            live.usage.go()
            ending = await _guarded(live, shop, sender)
        live.usage.rest()
        if live.halted not in (Halt.LOST, Halt.PARKED):
            await sender.flush()
        nursery.cancel_scope.cancel()
    # A run that had ended by itself has ended, even if something halted it while its frames were sent.
    return ending


async def _guarded(live: LiveLease, shop: Workshop, sender: FrameSender) -> Ending:
    folder = shop.folder / str(uuid.UUID(live.lease.lease_id))
    run = Run(
        live=live,
        plane=shop.plane,
        sandbox=shop.sandbox,
        timing=shop.timing,
        rng=shop.rng,
        clock=shop.clock,
        redactor=Redactor(live.lease.policy.secrets_map, live.lease.policy.api_key),
        show=sender.put,
        shown=sender.flush,
        folder=folder,
        tools=shop.tools,
        models=shop.models,
    )
    ending = failed("run_start", "the runner could not carry out the run; its log says more")
    try:
        folder.mkdir(mode=0o700, parents=True)
        ending = await carry_out(run)
    except* TokenRejected:
        raise
    except* Exception:
        # One event that trips over a fault of ours must not end the other runs of this process.
        log.exception("run_broken", lease_id=live.lease.lease_id)
    finally:
        with trio.CancelScope(shield=True):
            await trio.to_thread.run_sync(partial(shutil.rmtree, folder, ignore_errors=True))
    return ending


async def _close(live: LiveLease, shop: Workshop, ending: Ending | None, wall_ms: int) -> None:
    match live.halted if ending is None else None:
        case None:
            if ending is not None:
                await _report(live, shop, ending, wall_ms)
        case Halt.LOST:
            log.warning(
                "lease_lost",
                lease_id=live.lease.lease_id,
                event_id=live.lease.event.event_id,
                why=live.reason,
            )
        case Halt.PARKED:
            log.info("run_parked", lease_id=live.lease.lease_id, event_id=live.lease.event.event_id)
        case Halt.RELEASED:
            await release(live, shop)
        case Halt.CANCELLED:
            stopped = Ending(outcome=Outcome.CANCELLED, failure_reason="cancelled", response_text=live.reason)
            await _report(live, shop, _accounted(live, stopped), wall_ms)
        case Halt.BALANCE_EXHAUSTED | Halt.BUDGET_EXCEEDED | Halt.CEILING as why:
            stopped = failed(why.value, f"stopped by the control plane: {live.reason}")
            await _report(live, shop, _accounted(live, stopped), wall_ms)
        case _ as never:
            assert_never(never)


def _accounted(live: LiveLease, stopped: Ending) -> Ending:
    return stopped if live.account is None else replace(stopped, evidence=live.account())


async def _report(live: LiveLease, shop: Workshop, ending: Ending, wall_ms: int) -> None:
    body = report_body(live, ending, wall_ms)
    attempt = 0
    while True:
        try:
            answer = await shop.plane.report(body)
        except Unavailable as fault:
            await trio.sleep(fault.retry_after_s or backoff(attempt, shop.rng.random(), shop.timing))
            attempt += 1
        except TokenRejected:
            raise
        except Refused as refusal:
            log.warning(
                "report_refused", lease_id=live.lease.lease_id, code=refusal.code, detail=refusal.detail
            )
            return
        else:
            facts = {
                "outcome": ending.outcome.value,
                "failure_reason": ending.failure_reason,
                "wall_ms": wall_ms,
            }
            log.info(
                "reported", lease_id=live.lease.lease_id, duplicate=bool(answer.get("duplicate")), **facts
            )
            return


def report_body(live: LiveLease, ending: Ending, wall_ms: int) -> Mapping[str, Any]:
    """Spell a report; what is not known is left out."""
    first = wall_ms if ending.first_output_ms is None else ending.first_output_ms
    body: dict[str, Any] = {
        "lease_id": live.lease.lease_id,
        "event_id": live.lease.event.event_id,
        "fencing_token": live.lease.fencing_token,
        "outcome": ending.outcome.value,
        "response_text": ending.response_text,
        **live.usage.tokens(),
        "telemetry": {"time_to_first_token_ms": first, "wall_ms": wall_ms},
    }
    if ending.failure_reason is not None:
        body["failure_reason"] = ending.failure_reason
    if ending.evidence is not None:
        body["evidence"] = ending.evidence
    if ending.checkpoint is not None:
        body["checkpoint"] = ending.checkpoint
    if ending.proposals:
        body["proposals"] = list(ending.proposals)
    return body


async def release(live: LiveLease, shop: Workshop) -> None:
    """Give a lease back, trying again while the caller lets it; a refusal means that it is ours no longer."""
    attempt = 0
    while True:
        try:
            await shop.plane.release(live.lease.lease_id, live.reason)
        except Unavailable:
            await trio.sleep(backoff(attempt, shop.rng.random(), shop.timing))
            attempt += 1
        except TokenRejected:
            raise
        except ControlPlaneError as refusal:
            log.warning("release_refused", lease_id=live.lease.lease_id, why=str(refusal))
            return
        else:
            log.info("lease_released", lease_id=live.lease.lease_id, reason=live.reason)
            return
