"""What must hold of erasures: what is erased is gone, a receipt counts it once, and none comes to rest."""

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final
from uuid import UUID

from sexton_storage.decisions.erasure import ERASED, ERASED_DOCUMENT, needle_of
from sexton_storage.decisions.erasure_steps import rest_ms
from sexton_storage.memory.tables import Tables
from sexton_storage.records.erasures import OVER, Erasure, ErasureStatus
from sexton_storage.records.events import Event
from tests.simulation.product.customers import CUSTOMERS, PATH
from tests.simulation.product.record import Record

FRESH_MS: Final = 5_000
"""For so long after its end an erasure is compared with all rows; what was there has gone then."""
LATE_MS: Final = 15_000
"""How much later than it is due a pass may begin, and how long a page may take."""
_CUSTOMER_OF: Final = {needle_of(PATH, one).sha256: one for one in CUSTOMERS}


def is_erased(event: Event) -> bool:
    """Whether an erasure has taken the whole event."""
    return event.request_json == ERASED_DOCUMENT


def erased_is_gone(record: Record) -> Iterator[str]:
    """When an erasure is done, what was there before its last pass has the value nowhere, nor a replay."""
    tables, now = record.tables, record.tables.now()
    about = Counter(erasure.sha256 for erasure in tables.erasures.values() if not erasure.dry_run)
    for erasure in tables.erasures.values():
        if erasure.dry_run or erasure.status is ErasureStatus.STOPPED:
            continue
        if erasure.status is ErasureStatus.WAITING:
            # Another pass begins later than this.
            record.before[erasure.id] = len(tables.arrivals)
        # It was begun after the judges looked for the last time.
        before = record.before.setdefault(erasure.id, record.arrived)
        if erasure.status is ErasureStatus.DONE and now - (erasure.ended_at or 0) <= FRESH_MS:
            yield from _left(record, erasure, before)
        # Of two about the same value, one may be between an event and its transcript, or have stopped there.
        if erasure.status is not ErasureStatus.RUNNING and about[erasure.sha256] == 1:
            yield from _left_by_a_pass(record, erasure)
    record.arrived = len(tables.arrivals)


def _left(record: Record, erasure: Erasure, before: int) -> Iterator[str]:
    """What is left of what was there when ``before`` events had arrived, and of what was made from that."""
    tables, value = record.tables, _CUSTOMER_OF[erasure.sha256]
    persons: set[UUID] = set()
    there: set[UUID] = set()
    for event_id, request in record.read_requests().items():
        if not _is_from(tables, event_id, before):
            continue
        there.add(event_id)
        event = tables.events[event_id]
        if request.customer == value:
            persons.add(event_id)
            if not is_erased(event):
                yield f"event {event_id} is there as it was, though erasure {erasure.id} is done"
        texts = (event.request_json, event.response_text, event.source_event_id, event.evidence)
        if _has(value, *texts, event.checkpoint):
            yield f"event {event_id} has the value of erasure {erasure.id}"
    yield from _left_in_transcripts(tables, erasure, there)
    yield from _left_beside(tables, erasure, persons)


def _is_from(tables: Tables, event_id: UUID | None, before: int) -> bool:
    """Whether an event had arrived then, or was made from one that had: a replay, of a replay perhaps."""
    while event_id is not None and (event := tables.events.get(event_id)) is not None:
        if tables.arrivals[event_id] <= before:
            return True
        event_id = event.resumes_event_id
    return False


def _left_in_transcripts(tables: Tables, erasure: Erasure, there: set[UUID]) -> Iterator[str]:
    value = _CUSTOMER_OF[erasure.sha256]
    for (_, event_id, _), entries in tables.transcript_entries.items():
        if event_id in there and any(_has(value, entry.data) for entry in entries.values()):
            yield f"the transcript of event {event_id} has the value of erasure {erasure.id}"


def _left_by_a_pass(record: Record, erasure: Erasure) -> Iterator[str]:
    """A pass that has taken a person's event has taken its transcript; asked once after each pass."""
    if record.passes.get(erasure.id, 0) == erasure.passes:
        return
    record.passes[erasure.id] = erasure.passes
    tables, requests = record.tables, record.read_requests()
    value = _CUSTOMER_OF[erasure.sha256]
    for (_, event_id, _), entries in tables.transcript_entries.items():
        request = requests.get(event_id)
        if not entries or request is None or request.customer != value:
            continue
        if is_erased(tables.events[event_id]):
            yield f"the transcript of event {event_id} is there, which erasure {erasure.id} has taken"


def _left_beside(tables: Tables, erasure: Erasure, persons: set[UUID]) -> Iterator[str]:
    value = _CUSTOMER_OF[erasure.sha256]
    for gate in tables.gates.values():
        texts = (gate.proposed_action, gate.blast_radius, gate.detail, gate.evidence)
        if gate.event_id in persons and _has(value, *texts):
            yield f"gate {gate.id} has the value of erasure {erasure.id}"
    for agent, frames in tables.frames.items():
        for frame in frames:
            if frame.event_id not in persons:
                continue
            if _has(value, frame.data) or frame.data.get("text", ERASED) != ERASED:
                yield f"frame {frame.seq} of agent {agent} has what erasure {erasure.id} was to take"
    for delivery in tables.deliveries.values():
        if delivery.event_id in persons and _has(value, delivery.headers, delivery.detail):
            yield f"delivery {delivery.id} has the value of erasure {erasure.id}"
    for proposal in tables.proposals.values():
        said = (proposal.title, proposal.rationale, proposal.rejection_reason)
        if proposal.event_id in persons and _has(value, *said):
            yield f"proposal {proposal.id} has the value of erasure {erasure.id}"
    for job in tables.jobs.values():
        if job.ended_at is not None and _has(value, job.filter, job.request_json):
            yield f"job {job.id} has the value of erasure {erasure.id}"


def _has(value: str, *texts: Any) -> bool:
    return any(value in str(text) for text in texts)


def receipts_agree(record: Record) -> Iterator[str]:
    """The receipts of erasures count each event that went, once."""
    tables = record.tables
    counted: Counter[str] = Counter()
    for erasure in tables.erasures.values():
        if not erasure.dry_run:
            counted[_CUSTOMER_OF[erasure.sha256]] += erasure.erased.get("events", 0)
    if not counted:
        return
    gone: Counter[str] = Counter()
    perhaps: Counter[str] = Counter()
    unseen = 0
    for event_id, request in record.read_requests().items():
        event = tables.events[event_id]
        unseen += request.was_erased
        if is_erased(event):
            gone[request.customer] += 1
            # The other one whom it named may have been taken out before.
            perhaps[request.named] += 1
        elif request.named not in event.request_json:
            gone[request.named] += 1
    for value, count in counted.items():
        if not gone[value] <= count <= gone[value] + perhaps[value] + unseen:
            yield f"{gone[value]} events of {value} are gone, and receipts count {count}"


def erasures_go_on(record: Record) -> Iterator[str]:
    """Once faults have healed, an erasure that is not over looks through all again and again."""
    now = record.tables.now()
    for erasure in record.tables.erasures.values():
        rests_ms = 0 if erasure.status is ErasureStatus.RUNNING else rest_ms(erasure)
        if erasure.status not in OVER and now - erasure.updated_at > rests_ms + LATE_MS:
            yield f"erasure {erasure.id} is {erasure.status} since {now - erasure.updated_at} ms"
