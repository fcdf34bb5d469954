"""What must hold of bulk jobs: each event is dealt with once, no other is touched, and each job ends."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import Final
from uuid import UUID

from sexton_storage.memory.tables import Tables
from sexton_storage.records.events import Event, EventStatus
from sexton_storage.records.jobs import OVER, Job, JobStatus
from tests.simulation.product.people import AskedJob
from tests.simulation.product.record import Record

CLOCKS_APART_MS: Final = 3_000
"""How far two nodes may take the database's clock differently, while the way there is slow."""
FRESH_MS: Final = 5_000
"""For so long after its last change a job that is over is compared with what it did."""
ENDS_MS: Final = 40_000
"""A job that nothing holds up is over by then: it is about a handful of events, one a second."""
TERM_AND_A_SECOND_MS: Final = 31_000


def each_replayed_once(record: Record) -> Iterator[str]:
    """A bulk job replays each event once, whatever dies meanwhile, and is made once."""
    for mark, made in _made(record).items():
        for origin, count in Counter(made.values()).items():
            if count > 1:
                yield f"{mark} has replayed event {origin} {count} times"
    for text, count in Counter(job.filter for job in record.tables.jobs.values()).items():
        if count > 1:
            yield f"{count} jobs were made of one request, {text}"


def jobs_keep_to_their_filter(record: Record) -> Iterator[str]:
    """A bulk job replays what is over and cancels what is not, of what its filter picks and was there."""
    tables = record.tables
    of_mark = {asked.mark: (job, asked) for job, asked in _jobs(record) if asked.replays}
    for mark, made in _made(record).items():
        for event_id, origin in made.items():
            if mark not in of_mark or not _is_about(tables, *of_mark[mark], tables.events[origin]):
                yield f"event {event_id} is a replay of {origin} by {mark}"
            elif (tables.events[origin].completed_at or _NEVER) > _latest(tables.events[event_id]):
                yield f"event {origin} was replayed before it was over"
    cancelling = [(job, asked) for job, asked in _jobs(record) if not asked.replays]
    for event in tables.events.values():
        if event.status is EventStatus.CANCELLED and not any(
            _is_about(tables, *one, event) for one in cancelling
        ):
            yield f"event {event.id} was cancelled, and no job is about it"


def jobs_count_what_they_did(record: Record) -> Iterator[str]:
    """What a bulk job counts as done was done, and one that has come to its end has left nothing out."""
    tables, now = record.tables, record.tables.now()
    for job, asked in _jobs(record):
        if job.ended_at is None or now - job.updated_at > FRESH_MS:
            continue
        dealt_with = job.done + job.skipped + job.failed
        if asked.replays:
            yield from _replayed(record, job, asked)
            if job.status is JobStatus.DONE and dealt_with < job.total:
                yield f"job {job.id} was about {job.total} events, and has dealt with {dealt_with}"
        elif job.status is JobStatus.DONE:
            others = [one for one in _jobs(record) if one[0] is not job and not one[1].replays]
            cancelled = [
                event.id
                for event in tables.events.values()
                if event.status is EventStatus.CANCELLED
                and _is_about(tables, job, asked, event)
                and not any(_is_about(tables, *one, event) for one in others)
            ]
            if len(cancelled) > job.done:
                yield f"job {job.id} has cancelled {len(cancelled)} events, and says {job.done}"


def _replayed(record: Record, job: Job, asked: AskedJob) -> Iterator[str]:
    tables, made = record.tables, _made(record)[asked.mark]
    # What was erased before the judges saw it: replays of this agent may be the job's.
    unseen = sum(
        request.was_erased
        for event_id, request in record.requests.items()
        if tables.events[event_id].resumes_event_id and tables.events[event_id].zombie_id == asked.agent
    )
    if job.done > len(made) + unseen:
        yield f"job {job.id} has made {len(made)} events, and says {job.done}"
    if job.status is not JobStatus.DONE:
        return
    if job.done < len(made):
        yield f"job {job.id} has made {len(made)} events, and says {job.done}"
    replayed = set(made.values())
    left_out = [
        event.id
        for event in tables.events.values()
        if (event.completed_at or _NEVER) < asked.asked_ms - CLOCKS_APART_MS
        and event.id not in replayed
        and _is_about(tables, job, asked, event)
    ]
    if len(left_out) > job.skipped + job.failed + unseen:
        yield f"job {job.id} has left out {', '.join(map(str, left_out))}"


def jobs_end(record: Record) -> Iterator[str]:
    """Once faults have healed, a bulk job that is not paused comes to its end."""
    now = record.tables.now()
    for job in record.tables.jobs.values():
        if job.status not in {*OVER, JobStatus.PAUSED} and now - job.created_at > ENDS_MS:
            yield f"job {job.id} is {job.status} since {now - job.updated_at} ms, waiting for {job.waits_for}"


def cancelled_is_over(record: Record) -> Iterator[str]:
    """Once faults have healed, what a bulk job has cancelled is over within a term and a second."""
    tables, now = record.tables, record.tables.now()
    for job, asked in _jobs(record):
        if asked.replays or job.status is not JobStatus.DONE or job.skipped or job.failed:
            continue
        if now - (job.ended_at or now) > TERM_AND_A_SECOND_MS:
            for event in tables.events.values():
                if event.completed_at is None and _is_about(tables, job, asked, event):
                    yield f"event {event.id} is {event.status}, and job {job.id} has cancelled it"


_NEVER: Final = 1 << 62


def _latest(event: Event) -> int:
    return event.created_at + CLOCKS_APART_MS


def _jobs(record: Record) -> Iterator[tuple[Job, AskedJob]]:
    asked = record.promises.jobs
    return ((job, asked[job.filter]) for job in record.tables.jobs.values())


def _made(record: Record) -> Mapping[str, dict[UUID, UUID]]:
    """By the mark of a job, what it has made: each event with the one that it replays."""
    found: defaultdict[str, dict[UUID, UUID]] = defaultdict(dict)
    for event_id, request in record.read_requests().items():
        if request.job is not None:
            origin = record.tables.events[event_id].resumes_event_id
            assert origin is not None, "only replays have a mark"
            found[request.job][event_id] = origin
    return found


def _is_about(tables: Tables, job: Job, asked: AskedJob, event: Event) -> bool:
    return (
        event.zombie_id == asked.agent
        and asked.after_ms <= event.created_at < asked.before_ms
        and tables.arrivals[event.id] <= job.until_arrival
        and event.created_at <= job.created_at + CLOCKS_APART_MS
    )
