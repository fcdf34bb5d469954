"""What each judge of bulk jobs and erasures is there for, put into the rows of a life."""

from collections.abc import Callable, Collection
from uuid import UUID

from msgspec.structs import replace

from sexton_storage.decisions.erasure import ERASED_DOCUMENT, needle_of
from sexton_storage.records.erasures import Erasure, ErasureStatus
from sexton_storage.records.jobs import Job, JobKind, JobStatus
from tests.simulation.product import judges_of_erasures, judges_of_jobs
from tests.simulation.product.customers import CUSTOMERS, PATH
from tests.simulation.product.judges_of_erasures import is_erased
from tests.simulation.product.people import AskedJob
from tests.simulation.product.record import Judge, Record


def _replays(record: Record) -> list[Job]:
    jobs = record.tables.jobs.values()
    return [job for job in jobs if job.kind is JobKind.REPLAY and job.status is JobStatus.DONE and job.done]


def _a_replay_twice(record: Record) -> None:
    made = next(one for one, request in record.read_requests().items() if request.job is not None)
    record.tables.events[UUID(int=5)] = replace(record.tables.events[made], id=UUID(int=5))


def _another_filter(record: Record) -> None:
    stranger = UUID(int=9)
    asked = record.promises.jobs.items()
    record.promises.jobs = {text: one._replace(agent=stranger) for text, one in asked}


def _too_many(record: Record) -> None:
    job = _replays(record)[0]
    # As many as it may have made that were erased before the judges saw them, and more.
    many = len(record.tables.events)
    record.tables.jobs[job.id] = replace(job, done=job.done + many, updated_at=record.tables.now())


def _a_job_for_ever(record: Record) -> None:
    job = next(iter(record.tables.jobs.values()))
    record.tables.jobs[job.id] = replace(job, status=JobStatus.RUNNING, created_at=0)


def _not_cancelled(record: Record) -> None:
    tables = record.tables
    event = next(iter(tables.events.values()))
    asked = AskedJob("job-0", event.zombie_id, 0, 1 << 62, 0, replays=False)
    job = replace(
        next(iter(tables.jobs.values())),
        id=UUID(int=6),
        kind=JobKind.CANCEL,
        filter=asked.filter,
        status=JobStatus.DONE,
        until_arrival=1 << 40,
        skipped=0,
        failed=0,
        ended_at=1,
    )
    record.promises.jobs = {**record.promises.jobs, asked.filter: asked}
    tables.jobs[job.id], tables.events[event.id] = job, replace(event, completed_at=None)


def an_erasure(record: Record, value: str) -> Erasure:
    """An erasure of the value that has just come to its end."""
    some = next(iter(record.tables.erasures.values()))
    done = ErasureStatus.DONE
    sha256, now = needle_of(PATH, value).sha256, record.tables.now()
    return replace(some, id=UUID(int=7), sha256=sha256, dry_run=False, status=done, ended_at=now, erased={})


def _a_value_left(record: Record) -> None:
    events = record.tables.events
    value = next(
        request.customer
        for event_id, request in record.read_requests().items()
        if request.customer in CUSTOMERS and not is_erased(events[event_id])
    )
    record.tables.erasures[UUID(int=7)] = an_erasure(record, value)
    record.before[UUID(int=7)] = len(events)


def _first_of(record: Record, among: Collection[UUID]) -> UUID:
    """The first event of these that is a customer's and is as it was."""
    requests, events = record.read_requests().items(), record.tables.events
    return next(
        one
        for one, request in requests
        if one in among and request.customer in CUSTOMERS and not is_erased(events[one])
    )


def _erase_events(record: Record, first: UUID) -> str:
    """Erase a customer's first event, and what names the customer before that; nothing beside the events."""
    tables = record.tables
    value, before = record.read_requests()[first].customer, tables.arrivals[first]
    nothing = {"request_json": ERASED_DOCUMENT, "response_text": None, "evidence": None, "checkpoint": None}
    for event_id, event in list(tables.events.items()):
        if tables.arrivals[event_id] <= before and value in str(event):
            tables.events[event_id] = replace(event, **nothing)
    tables.erasures[UUID(int=7)] = an_erasure(record, value)
    record.before[UUID(int=7)] = before
    return value


def a_replay_left(record: Record) -> UUID:
    """A replay of a customer's first event comes after it was erased."""
    tables = record.tables
    first = _first_of(record, tables.events)
    replay = replace(tables.events[first], id=UUID(int=8), resumes_event_id=first)
    _erase_events(record, first)
    tables.events[replay.id], tables.arrivals[replay.id] = replay, max(tables.arrivals.values()) + 1
    return replay.id


def a_transcript_left(record: Record) -> UUID:
    """A pass has taken a customer's event, and left what its runs have said."""
    tables = record.tables
    told = {event_id for (_, event_id, _), entries in tables.transcript_entries.items() if entries}
    first = _first_of(record, told)
    _erase_events(record, first)
    waiting = replace(tables.erasures[UUID(int=7)], status=ErasureStatus.WAITING, passes=1)
    tables.erasures.clear()
    tables.erasures[waiting.id] = waiting
    return first


def a_value_in_a_transcript(record: Record) -> UUID:
    """A customer is named where an event of nobody's was run."""
    tables = record.tables
    first = _first_of(record, tables.events)
    value = _erase_events(record, first)
    key, entries = next((key, one) for key, one in tables.transcript_entries.items() if one)
    number, entry = next(iter(entries.items()))
    stranger = replace(tables.events[first], id=UUID(int=8), request_json="{}")
    tables.events[stranger.id], tables.arrivals[stranger.id] = stranger, tables.arrivals[first]
    said = {number: replace(entry, data={"said": f"Write to {value}."})}
    tables.transcript_entries = {(key[0], stranger.id, key[2]): said}
    return stranger.id


def _counted_twice(record: Record) -> None:
    erasure = replace(an_erasure(record, CUSTOMERS[0]), erased={"events": 1_000})
    record.tables.erasures[erasure.id] = erasure


def _an_erasure_at_rest(record: Record) -> None:
    erasure = an_erasure(record, CUSTOMERS[0])
    record.tables.erasures[erasure.id] = replace(erasure, status=ErasureStatus.WAITING, updated_at=0)


PLANTED: dict[Judge, Callable[[Record], None]] = {
    judges_of_jobs.each_replayed_once: _a_replay_twice,
    judges_of_jobs.jobs_keep_to_their_filter: _another_filter,
    judges_of_jobs.jobs_count_what_they_did: _too_many,
    judges_of_jobs.jobs_end: _a_job_for_ever,
    judges_of_jobs.cancelled_is_over: _not_cancelled,
    judges_of_erasures.erased_is_gone: _a_value_left,
    judges_of_erasures.receipts_agree: _counted_twice,
    judges_of_erasures.erasures_go_on: _an_erasure_at_rest,
}
