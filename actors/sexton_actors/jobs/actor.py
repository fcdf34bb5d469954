"""Works on one bulk job, page by page, and lets people pause and stop it."""

from collections.abc import Sequence
from typing import Any, Final, assert_never

import trio

from sexton_actors.jobs import transitions
from sexton_actors.jobs.pages import do_page
from sexton_actors.jobs.record import HeldJob
from sexton_actors.pace import rest_s
from sexton_actors.protocol import jobs as m
from sexton_actors.protocol.jobs import LookForJobs
from sexton_actors.refusal import Refusal
from sexton_actors.world import World
from sexton_engine import Actor, Context, MailboxSpec
from sexton_storage.attribution import attributed
from sexton_storage.errors import Conflict, StorageError, StorageUnavailable
from sexton_storage.event_filter.parse import FilterError, parse_filter
from sexton_storage.records.jobs import OVER, Candidate, Job, JobKind, JobStatus, Selection
from sexton_storage.refusals import Lost

JOBS_LIMIT: Final = 32
"""Jobs of one workspace that are not over; one more is refused."""
AGAIN_S: Final = 1.0
"""When events that could not be done are tried again, and when a fault is got over."""


class JobActor(Actor):
    """One job. Its page is kept before it is done, and counted after; both name the version that was seen.

    Should this node die in between, another does the same page again, and each event answers whether it was
    done: a replay by the id of the event that it makes, a cancellation by the event's status.
    """

    kind = "job"
    mailbox = MailboxSpec(capacity=64)
    transparent = (StorageUnavailable,)

    def __init__(self, context: Context, world: World) -> None:
        super().__init__(context)
        self._world = world
        self._held = HeldJob(context, world)
        self._me = world.new_id()

    async def on_receive(self, message: m.Begin | m.Change | m.Work) -> Any:
        """Dispatch."""
        match message:
            case m.Begin():
                with attributed(message.audit):
                    return await self._begin(message)
            case m.Change():
                with attributed(message.audit):
                    return await self._change(message)
            case m.Work():
                await self._work()
                return None
            case _:
                assert_never(message)

    async def _begin(self, message: m.Begin) -> Job | Refusal:
        if (before := await self._held.load()) is not None:
            return before
        now = self._world.now_ms()
        try:
            picked = parse_filter(message.filter, now=now)
        except FilterError as fault:
            return Refusal("UZ-REQ-001", f"/filter: {fault}.")
        selection = Selection(message.workspace_id, message.kind, picked, message.failure_id)
        survey = await self._world.storage.jobs.survey(selection, sample=0)
        job = transitions.begin(self._held.id, message, survey, now)
        if not await self._world.storage.jobs.add(job, limit=JOBS_LIMIT):
            detail = (
                f"{JOBS_LIMIT} jobs of the workspace are not over, and no more may be; stop one, or wait."
            )
            return Refusal("UZ-JOB-002", detail)
        self._look()
        return job

    async def _change(self, message: m.Change) -> Job | Refusal:
        async def attempt(job: Job, now: int) -> Job | Refusal | Lost:
            decision = transitions.change(job, message.wish, now)
            if isinstance(decision, Refusal):
                return decision
            return job if isinstance(decision, transitions.Unchanged) else await self._held.save(decision)

        changed: Job | Refusal = await self._held.until_kept(attempt)
        if message.wish is m.Wish.STOP:
            # At once, whatever else of its workspace is at work.
            self._come(0)
        else:
            self._look()
        return changed

    async def _work(self) -> None:
        # Set first: an outage that ends this round does not end the rounds.
        self._come(AGAIN_S)
        began, queued = trio.current_time(), self._world.storage.journal.statistics().hot.depth
        try:
            job = await self._take()
            if job is None:
                self.context.cancel_timer("work")
                return
            if job.status in OVER:
                self.context.cancel_timer("work")
                self._look()
                return
            outcomes = await do_page(self.context, self._world, job)
            took_s = trio.current_time() - began
            waits = any(isinstance(outcome, transitions.Later) for outcome in outcomes)
            pause_s = AGAIN_S if waits else rest_s(took_s, len(outcomes), queued, job.rate_limit)
            await self._settle(job, outcomes, took_s + pause_s)
        except StorageError:
            return
        self._come(pause_s)

    async def _take(self) -> Job | None:
        """The job with events in hand, or over; None where it is not for this actor to go on."""
        job, now = await self._held.load(), self._world.now_ms()
        if job is None or not transitions.may_work(job, self._me, now):
            return None
        if job.kind is JobKind.SHADOW and not job.page and job.status is not JobStatus.STOPPING:
            spent = await self._world.storage.jobs.spent(job.id)
            if (why := transitions.shadow_is_over(job, spent)) is not None:
                return await self._held.save(transitions.enough(job, why, now))
        try:
            found = [] if job.page or job.status is JobStatus.STOPPING else await self._next(job)
        except FilterError as fault:
            # What a release before this one could read.
            return await self._held.save(transitions.fail(job, f"The filter cannot be read: {fault}.", now))
        try:
            return await self._held.save(transitions.take(job, found, self._me, now))
        except Conflict:
            return None

    async def _next(self, job: Job) -> list[Candidate]:
        picked = parse_filter(job.filter, now=job.created_at)
        found = await self._world.storage.jobs.page(
            Selection(job.workspace_id, job.kind, picked, job.failure_id),
            after=(job.after_at, job.after_arrival),
            until_arrival=job.until_arrival,
            limit=transitions.page_limit(job),
        )
        return list(found)

    async def _settle(self, job: Job, outcomes: Sequence[transitions.Outcome], took_s: float) -> None:
        async def attempt(record: Job, now: int) -> Job | Refusal | Lost:
            settled = transitions.settle(record, job.page, outcomes, round(took_s * 1000), now)
            return record if settled is None else await self._held.save(settled)

        if not isinstance(await self._held.until_kept(attempt), Refusal):
            self._world.meters.bulk.update(transitions.counted(outcomes))

    def _look(self) -> None:
        # Of each workspace one job goes on at a time; the rounds know which.
        self.context.tell("job_rounds", "", LookForJobs())

    def _come(self, after_s: float) -> None:
        self.context.set_timer("work", after_s, m.Work())
