"""What must hold of the ends of runs: an event keeps what its run said, and times and streaks count on."""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Final

from sexton_storage.records.events import Event, EventStatus
from sexton_storage.records.leases import Lease, LeaseStatus
from tests.simulation.product.judges_of_erasures import is_erased
from tests.simulation.product.record import Record

CODES: Final[Mapping[str, str | None]] = {
    "agent_run": "UZ-EXEC-013",
    "balance_exhausted": "UZ-BILLING-005",
    "budget_exceeded": "UZ-ZMB-001",
    "cancelled": None,
    "ceiling": "UZ-RUN-010",
    "run_start": "UZ-EXEC-002",
}
"""Why runs of the script fail or stop, and the code that an event has for it."""
_COUNTS: Final = ("input_tokens", "cached_input_tokens", "cache_write_tokens", "output_tokens")


def kept_as_reported(record: Record) -> Iterator[str]:
    """What a run has reported is what its event keeps, but for what an erasure has taken."""
    tables, seen = record.tables, record.as_reported
    for lease_id, body in record.runs.reported.items():
        lease = tables.leases.get(lease_id)
        if lease is None or lease.status is not LeaseStatus.REPORTED:
            continue
        event = tables.events.get(lease.event_id)
        if event is None or seen.get(lease_id) is event:
            continue  # Rows do not change: it is the one that was compared before.
        seen[lease_id] = event
        kept, said = _kept(event), _said(body, event)
        for name, value in said.items():
            if kept[name] != value:
                yield f"event {event.id} has {name} {kept[name]!r}, and its run has reported {value!r}"
        others = _others(record, lease)
        for name in _COUNTS:
            count, used = getattr(event, name), body[name] + sum(getattr(one, name) for one in others)
            if count != used:
                yield f"event {event.id} has {count} {name}, and its runs have used {used}"


def _kept(event: Event) -> dict[str, Any]:
    kept = {"status": event.status.value, "label": event.failure_label, "code": event.error_code}
    return {**kept, "text": event.response_text, "evidence": event.evidence, "retry_at": event.retry_at}


def _said(body: Mapping[str, Any], event: Event) -> dict[str, Any]:
    """What a report should have made of its event."""
    outcome, reason = body["outcome"], body.get("failure_reason")
    if event.status is EventStatus.CANCELLED:
        # A run that was told to stop ends cancelled, whatever it says.
        outcome, reason = "cancelled", "cancelled"
    said = {"status": outcome, "label": reason, "code": None if reason is None else CODES[reason]}
    texts = {} if is_erased(event) else {"text": body["response_text"], "evidence": body.get("evidence")}
    return {**said, **texts, "retry_at": None}


def _others(record: Record, lease: Lease) -> list[Lease]:
    """The event's leases before this one, however they ended: what they were billed for counts."""
    leases = record.tables.leases.values()
    return [one for one in leases if one.event_id == lease.event_id and one.id != lease.id]


def run_times_add_up(record: Record) -> Iterator[str]:
    """An event's time is that of its ended leases: as reported, or until the runner gave it back."""
    tables, times = record.tables, record.run_times
    for lease in islice(tables.leases.values(), times.read, None):
        times.read += 1
        times.going_on.append(lease.id)
    going_on, times.going_on = times.going_on, []
    for lease_id in going_on:
        lease = tables.leases[lease_id]
        if lease.ended_at is None:
            times.going_on.append(lease_id)
        else:
            times.ran_ms[lease.event_id] += _ran_ms(record, lease)
            times.seen.pop(lease.event_id, None)
    for event_id, ran_ms in times.ran_ms.items():
        event = tables.events.get(event_id)
        if event is None or times.seen.get(event_id) is event:
            continue  # Rows do not change: it is the one that was compared before.
        times.seen[event_id] = event
        if event.wall_ms != ran_ms:
            yield f"event {event_id} ran {event.wall_ms} ms, and its leases {ran_ms}"


def _ran_ms(record: Record, lease: Lease) -> int:
    if lease.status is LeaseStatus.REPORTED:
        body = record.runs.reported.get(lease.id)
        # A run that had to end before it began is reported by nobody.
        return 0 if body is None else int(body["telemetry"]["wall_ms"])
    # A grant that reached nobody is released as well, and not billed.
    is_given_back = lease.status in {LeaseStatus.PARKED, LeaseStatus.RELEASED} and lease.slice_seq > 0
    return max(0, (lease.ended_at or 0) - lease.granted_at) if is_given_back else 0


def streaks_count_on(record: Record) -> Iterator[str]:
    """An agent's streak is the number of its runs that were processed in a row since the last failure."""
    tables, streaks = record.tables, record.streaks
    for lease in islice(tables.leases.values(), streaks.read, None):
        streaks.read += 1
        streaks.going_on.setdefault(lease.zombie_id, []).append(lease.id)
    for agent, lease_ids in streaks.going_on.items():
        while lease_ids and (ended := tables.leases[lease_ids[0]]).ended_at is not None:
            del lease_ids[0]
            status = ended_as(record, ended)
            if status is EventStatus.PROCESSED:
                streaks.counted[agent] += 1
            elif status in {EventStatus.AGENT_ERROR, EventStatus.DEAD_LETTERED}:
                streaks.counted[agent] = 0
        head = tables.heads.get(agent)
        if head is not None and head.streak != streaks.counted[agent]:
            yield f"agent {agent} has a streak of {head.streak}, its runs one of {streaks.counted[agent]}"


def ended_as(record: Record, lease: Lease) -> EventStatus | None:
    """How the lease's event ended with it; None: it went on, or the run was one without effects."""
    event = record.tables.events.get(lease.event_id)
    if lease.shadow or event is None or event.completed_at != lease.ended_at:
        return None
    return event.status
