"""Carries one lease from its grant to its report."""

import random
import uuid
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import assert_never

import structlog
import trio
from structlog.contextvars import bind_contextvars

from sexton_runner.client import ControlPlane
from sexton_runner.errors import ControlPlaneError, Refused, TokenRejected, Unavailable
from sexton_runner.lease import Halt, LiveLease
from sexton_runner.renewal import Renewer
from sexton_runner.reporter import Reporter
from sexton_runner.reports import fitted, report_body, told_again
from sexton_runner.run import Ending, Outcome, failed
from sexton_runner.supervisors.launcher import Launcher, NotStarted
from sexton_runner.supervisors.messages import Job, Outfit, Over
from sexton_runner.supervisors.supervisor import Supervisor, open_supervisor, refused
from sexton_runner.timing import Clock, Timing, backoff

log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerContext:
    """What all runs of one runner share. ``folder`` holds a private folder for each run."""

    plane: ControlPlane
    renewer: Renewer
    reporter: Reporter
    timing: Timing
    rng: random.Random
    clock: Clock
    folder: Path
    launcher: Launcher
    outfit: Outfit


async def execute_lease(live: LiveLease, context: RunnerContext) -> None:
    """Run, then report, release or say nothing, as the end of the run asks. Only ``TokenRejected`` leaves."""
    began, event = context.clock(), live.lease.event
    # This task is the lease's own, and so are those that it starts.
    bind_contextvars(lease_id=live.lease.lease_id, event_id=event.event_id, agent_id=event.zombie_id)
    context.renewer.add(live)
    try:
        ending = await _run(live, context)
        await _close(live, context, ending, int((context.clock() - began) * 1000))
    finally:
        context.renewer.remove(live)


async def _run(live: LiveLease, context: RunnerContext) -> Ending | None:
    """Give the ending, or None when the run was halted before it. Its frames are on their way by then."""
    lease = live.lease
    folder = context.folder / str(uuid.UUID(lease.lease_id))
    job = Job(lease=lease, outfit=context.outfit, folder=folder, seed=context.rng.getrandbits(32))
    supervisor: Supervisor | None = None
    over: Over | None = None
    async with AsyncExitStack() as stack:
        try:
            with live.scope:
                supervisor = await stack.enter_async_context(open_supervisor(context.launcher, job, live))
                live.begun = True
                live.usage.go()
                over = await supervisor.hear()
        except NotStarted as fault:
            return failed("run_start", str(fault))
        live.usage.rest()
        if over is None and live.halted is not None and supervisor is not None:
            over = await supervisor.stop(live.halted, live.reason, context.timing.flush_patience_s)
    if over is None:
        return None
    refused(over)
    if over.ending is None:
        account = over.account
        live.account = None if account is None else lambda: account
        live.halt(over.halted or Halt.LOST, over.reason)
    return over.ending


async def _close(live: LiveLease, context: RunnerContext, ending: Ending | None, wall_ms: int) -> None:
    match live.halted if ending is None else None:
        case None:
            if ending is not None:
                await _report(live, context, ending, wall_ms)
        case Halt.LOST:
            log.warning(
                "lease_lost",
                lease_id=live.lease.lease_id,
                event_id=live.lease.event.event_id,
                why=live.reason,
            )
        case Halt.PARKED:
            log.info("run_parked", lease_id=live.lease.lease_id, event_id=live.lease.event.event_id)
        case Halt.GIVEN_BACK:
            log.info(
                "run_given_back",
                lease_id=live.lease.lease_id,
                event_id=live.lease.event.event_id,
                why=live.reason,
            )
        case Halt.RELEASED:
            await release(live, context)
        case Halt.CANCELLED:
            stopped = Ending(outcome=Outcome.CANCELLED, failure_reason="cancelled", response_text=live.reason)
            await _report(live, context, _accounted(live, stopped), wall_ms)
        case Halt.BALANCE_EXHAUSTED | Halt.BUDGET_EXCEEDED | Halt.CEILING as why:
            stopped = failed(why.value, f"stopped by the control plane: {live.reason}")
            await _report(live, context, _accounted(live, stopped), wall_ms)
        case _ as never:
            assert_never(never)


def _accounted(live: LiveLease, stopped: Ending) -> Ending:
    return stopped if live.account is None else replace(stopped, evidence=live.account())


async def _report(live: LiveLease, context: RunnerContext, ending: Ending, wall_ms: int) -> None:
    body = fitted(report_body(live, ending, wall_ms))
    attempt, refusals = 0, 0
    while True:
        try:
            answer = await context.reporter.report(body)
        except Unavailable as fault:
            await trio.sleep(fault.retry_after_s or backoff(attempt, context.rng.random(), context.timing))
            attempt += 1
        except TokenRejected:
            raise
        except Refused as refusal:
            log.warning(
                "report_refused", lease_id=live.lease.lease_id, code=refusal.code, detail=refusal.detail
            )
            again = told_again(body, refusal)
            if again is None or refusals:
                return
            body, refusals = again, refusals + 1
        else:
            facts = {
                "outcome": body["outcome"],
                "failure_reason": body.get("failure_reason"),
                "wall_ms": wall_ms,
            }
            log.info(
                "reported", lease_id=live.lease.lease_id, duplicate=bool(answer.get("duplicate")), **facts
            )
            return


async def release(live: LiveLease, context: RunnerContext) -> None:
    """Give a lease back, trying again while the caller lets it; a refusal means that it is ours no longer."""
    attempt = 0
    while True:
        try:
            await context.plane.release(live.lease.lease_id, live.reason)
        except Unavailable:
            await trio.sleep(backoff(attempt, context.rng.random(), context.timing))
            attempt += 1
        except TokenRejected:
            raise
        except ControlPlaneError as refusal:
            log.warning("release_refused", lease_id=live.lease.lease_id, why=str(refusal))
            return
        else:
            log.info("lease_released", lease_id=live.lease.lease_id, reason=live.reason)
            return
