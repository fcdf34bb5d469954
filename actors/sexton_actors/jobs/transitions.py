"""What becomes of a bulk job; docs/reference/states.md has the table."""

from collections import Counter
from collections.abc import Sequence
from typing import Final
from uuid import UUID

import msgspec
from msgspec.structs import replace

from sexton_actors.amounts import dollars
from sexton_actors.protocol.jobs import Begin, Wish
from sexton_actors.refusal import Refusal
from sexton_storage.records.jobs import OVER, Candidate, Job, JobKind, JobStatus, Survey

HOLD_MS: Final = 3_000
"""How long nobody else goes on with a job after a sign of life of whoever works on it."""
PAGE_EVENTS: Final = 512
"""A job with a rate has no more than a second's events in a page: it must not rest longer than it is held."""
PAGE_BYTES: Final = 8 * 1024 * 1024
"""The bytes of requests in one page; a single event may have more."""
DONE: Final = "done"
SKIPPED: Final = "skipped"


class Unchanged(msgspec.Struct, frozen=True):
    """It is so already."""


class Refused(msgspec.Struct, frozen=True):
    """The event is counted as failed, under this code."""

    code: str


class Later(msgspec.Struct, frozen=True):
    """The event stays in hand, and its turn comes again."""

    why: str


Outcome = str | Refused | Later
"""``DONE``, ``SKIPPED``, or why not."""
_TO: Final = {Wish.PAUSE: JobStatus.PAUSED, Wish.RESUME: JobStatus.WAITING, Wish.STOP: JobStatus.STOPPING}
_NOTHING: Final = {
    Wish.PAUSE: {JobStatus.PAUSED},
    Wish.RESUME: {JobStatus.WAITING, JobStatus.RUNNING},
    Wish.STOP: {JobStatus.STOPPING, JobStatus.STOPPED},
}


def begin(job_id: UUID, message: Begin, survey: Survey, now: int) -> Job:
    """The job as it is made."""
    return Job(
        id=job_id,
        tenant_id=message.tenant_id,
        workspace_id=message.workspace_id,
        kind=message.kind,
        status=JobStatus.WAITING,
        version=1,
        filter=message.filter,
        created_by=message.by,
        created_by_name=message.by_name,
        created_at=now,
        updated_at=now,
        until_arrival=survey.until_arrival,
        total=survey.total,
        failure_id=message.failure_id,
        request_json=message.request_json,
        merges=message.merges,
        asked_version=message.asked_version,
        rate_limit=message.rate_limit,
        budget_nanos=message.budget_nanos,
        events_limit=message.events_limit,
    )


def change(job: Job, wish: Wish, now: int) -> Job | Unchanged | Refusal:
    """What a person asks for. Whoever works on a job learns it before the next page."""
    if job.status in _NOTHING[wish]:
        return Unchanged()
    if job.status in OVER or job.status is JobStatus.STOPPING:
        detail = f"The job is {job.status}; it cannot {wish} any more."
        return Refusal("UZ-REQ-009", detail, {"current_state": str(job.status)})
    # Nobody holds it any more: it goes on, or ends, at once.
    return _next(job, now, status=_TO[wish], holder=None, held_until=0, waits_for=None, rate=0)


def may_work(job: Job, me: UUID, now: int) -> bool:
    """Whether this actor may go on with it now.

    >>> from sexton_storage.records.jobs import JobKind
    >>> it, me = UUID(int=1), UUID(int=2)
    >>> job = Job(
    ...     it, it, it, JobKind.REPLAY, JobStatus.RUNNING, 1, "", "", "", 0, 0, 0, 0, holder=it, held_until=9
    ... )
    >>> may_work(job, me, 8), may_work(job, me, 9), may_work(job, it, 8)
    (False, True, True)
    >>> may_work(replace(job, status=JobStatus.PAUSED), it, 99)
    False
    """
    if job.status in OVER or job.status is JobStatus.PAUSED:
        return False
    return job.holder == me or job.held_until <= now


def take(job: Job, found: Sequence[Candidate], me: UUID, now: int) -> Job:
    """The job with its next events in hand; it is over when there are none.

    What a job that is to stop has in hand comes first: of each event it is known whether it was done.
    """
    if job.page:
        status = JobStatus.STOPPING if job.status is JobStatus.STOPPING else JobStatus.RUNNING
        return _held(job, me, now, status=status)
    if job.status is JobStatus.STOPPING:
        return _over(job, JobStatus.STOPPED, now)
    page = within_bytes(found)
    if not page:
        return _over(job, JobStatus.DONE, now)
    last = page[-1]
    return _held(
        job,
        me,
        now,
        status=JobStatus.RUNNING,
        after_at=last.created_at,
        after_arrival=last.arrival,
        page=tuple(one.event_id for one in page),
        page_agents=tuple(one.zombie_id for one in page),
    )


def page_limit(job: Job) -> int:
    """How many events a page may have.

    >>> from sexton_storage.records.jobs import JobKind
    >>> it = UUID(int=1)
    >>> job = Job(it, it, it, JobKind.REPLAY, JobStatus.RUNNING, 1, "", "", "", 0, 0, 0, 0)
    >>> page_limit(job), page_limit(replace(job, rate_limit=20))
    (512, 20)
    """
    return 1 if job.kind is JobKind.SHADOW else min(PAGE_EVENTS, job.rate_limit or PAGE_EVENTS)


def shadow_is_over(job: Job, spent: int) -> str | None:
    """Why a shadow takes no further event into its hand; None: it may.

    One event at a time is run, so what is spent is passed by one run at most; that run is told what is left.

    >>> it = UUID(int=1)
    >>> job = Job(it, it, it, JobKind.SHADOW, JobStatus.RUNNING, 1, "", "", "", 0, 0, 0, 0, done=2)
    >>> job = replace(job, budget_nanos=100, events_limit=3)
    >>> shadow_is_over(job, 99), shadow_is_over(replace(job, done=3), 0)
    (None, 'It has repeated 3 events, as many as were asked for.')
    >>> shadow_is_over(job, 100)
    'Its budget of $0.0000001 is spent.'
    """
    if job.budget_nanos is not None and spent >= job.budget_nanos:
        return f"Its budget of {dollars(job.budget_nanos)} is spent."
    dealt_with = job.done + job.failed
    if job.events_limit is not None and dealt_with >= job.events_limit:
        return f"It has repeated {dealt_with} events, as many as were asked for."
    return None


def enough(job: Job, why: str, now: int) -> Job:
    """End a job before all that fitted is done, and say why."""
    return _over(replace(job, detail=why), JobStatus.DONE, now)


def within_bytes(found: Sequence[Candidate]) -> Sequence[Candidate]:
    """As many as a page may have in bytes, and at least one.

    >>> it = UUID(int=1)
    >>> found = [Candidate(it, it, 0, n, PAGE_BYTES // 2) for n in range(3)]
    >>> len(within_bytes(found)), len(within_bytes(found[:1])), len(within_bytes([]))
    (2, 1, 0)
    """
    left = PAGE_BYTES
    for count, one in enumerate(found):
        left -= one.request_bytes
        if left < 0 and count:
            return found[:count]
    return found


def settle(job: Job, page: Sequence[UUID], outcomes: Sequence[Outcome], took_ms: int, now: int) -> Job | None:
    """Count what became of the page; None where somebody else has done so.

    Events whose turn comes again stay in hand, so none is lost and none is counted twice; a job that is to
    stop leaves them as they are.
    """
    if tuple(page) != job.page:
        return None
    is_last = job.status is JobStatus.STOPPING
    later = [(e, a) for e, a, o in zip(page, job.page_agents, outcomes, strict=True) if isinstance(o, Later)]
    refused = Counter(outcome.code for outcome in outcomes if isinstance(outcome, Refused))
    done = sum(outcome == DONE for outcome in outcomes)
    why = next((outcome.why for outcome in outcomes if isinstance(outcome, Later)), None)
    return _next(
        job,
        now,
        done=job.done + done,
        skipped=job.skipped + sum(outcome == SKIPPED for outcome in outcomes),
        failed=job.failed + refused.total(),
        refused=dict(Counter(job.refused) + refused),
        rate=(len(page) - len(later)) * 1000 // max(1, took_ms),
        page=() if is_last else tuple(event_id for event_id, _ in later),
        page_agents=() if is_last else tuple(agent for _, agent in later),
        held_until=0 if job.holder is None else now + HOLD_MS,
        waits_for=why,
    )


def counted(outcomes: Sequence[Outcome]) -> Counter[str]:
    """How many events were dealt with, by how it ended.

    >>> sorted(counted([DONE, Refused("UZ-ZMB-012"), Later("busy")]).items())
    [('done', 1), ('failed', 1)]
    """
    return Counter(
        "failed" if isinstance(outcome, Refused) else outcome
        for outcome in outcomes
        if not isinstance(outcome, Later)
    )


def fail(job: Job, detail: str, now: int) -> Job:
    """End a job that cannot go on, and say why."""
    return _over(replace(job, detail=detail), JobStatus.FAILED, now)


def _held(job: Job, me: UUID, now: int, **changes: object) -> Job:
    started_at = now if job.started_at is None else job.started_at
    return _next(job, now, holder=me, held_until=now + HOLD_MS, started_at=started_at, **changes)


def _over(job: Job, status: JobStatus, now: int) -> Job:
    return _next(job, now, status=status, ended_at=now, holder=None, held_until=0, waits_for=None, rate=0)


def _next(job: Job, now: int, **changes: object) -> Job:
    return replace(job, version=job.version + 1, updated_at=now, **changes)
