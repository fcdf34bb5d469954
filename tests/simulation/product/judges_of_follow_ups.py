"""What must hold of follow-ups: each wakes its agent once, in time, unless a person has taken it back."""

from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Final
from uuid import UUID

import orjson

from sexton_storage.memory.tables import Tables
from sexton_storage.records.events import Event
from sexton_storage.records.follow_ups import FollowUp, FollowUpStatus
from tests.simulation.product.record import Record

KIND: Final = "follow_up"
KIND_ID: Final = "follow_up_id"
FIRING_MS: Final = 20_000


def follow_ups_wake_once(record: Record) -> Iterator[str]:
    """A follow-up wakes its agent once, when its time has come, and never when it was taken back."""
    tables, seen = record.tables, record.follow_ups
    if not tables.follow_ups:
        return
    for event in islice(tables.events.values(), seen.events, None):
        if (follow_up_id := _made_by(event)) is not None:
            yield from _wrong(tables, event, follow_up_id)
            if follow_up_id in seen.woken:
                yield f"follow-up {follow_up_id} made events {seen.woken[follow_up_id]} and {event.id}"
            seen.woken[follow_up_id] = event.id
    seen.events = len(tables.events)
    for follow_up in tables.follow_ups.values():
        has_fired = follow_up.status is FollowUpStatus.FIRED
        if has_fired != (follow_up.id in seen.woken):
            made = seen.woken.get(follow_up.id, "none")
            yield f"follow-up {follow_up.id} is {follow_up.status}, and its event is {made}"


def _made_by(event: Event) -> UUID | None:
    """The follow-up that has made it; a replay by a bulk job is of no follow-up."""
    if event.event_type != KIND:
        return None
    request = orjson.loads(event.request_json)
    return None if KIND_ID not in request or "job" in request else UUID(request[KIND_ID])


def _wrong(tables: Tables, event: Event, follow_up_id: UUID) -> Iterator[str]:
    follow_up = tables.follow_ups.get(follow_up_id)
    if follow_up is None:
        yield f"event {event.id} is of follow-up {follow_up_id}, which nobody has asked for"
    elif (event.zombie_id, event.resumes_event_id) != (follow_up.zombie_id, follow_up.event_id):
        yield f"event {event.id} is not of the agent and the event of follow-up {follow_up_id}"
    elif event.created_at < follow_up.at:
        yield f"follow-up {follow_up_id} came {follow_up.at - event.created_at} ms too early"


def follow_ups_as_told(record: Record) -> Iterator[str]:
    """A follow-up is there once, as its run was told, and it stays as it ended, and as a person was told."""
    tables, ended = record.tables, record.follow_ups.ended
    for follow_up_id, at in record.runs.follow_ups.items():
        kept = tables.follow_ups.get(follow_up_id)
        if kept is None or kept.at != at:
            yield f"a run was told of follow-up {follow_up_id} at {at}, and it is {kept}"
    for (event_id, call_id), count in Counter(_asked(one) for one in tables.follow_ups.values()).items():
        if count > 1:
            yield f"event {event_id} has {count} follow-ups of call {call_id}"
    for follow_up in tables.follow_ups.values():
        if follow_up.status is FollowUpStatus.PENDING:
            continue
        before = ended.setdefault(follow_up.id, follow_up.status)
        if before is not follow_up.status:
            yield f"follow-up {follow_up.id} ended as {before} and is {follow_up.status}"
    for follow_up_id in record.promises.taken_back:
        if ended.get(follow_up_id) is not FollowUpStatus.CANCELLED:
            yield f"follow-up {follow_up_id} was taken back, and ended as {ended.get(follow_up_id)}"


def _asked(follow_up: FollowUp) -> tuple[UUID, str]:
    return follow_up.event_id, follow_up.call_id


def follow_ups_in_time(record: Record) -> Iterator[str]:
    """Once faults have healed, no follow-up waits for longer than 20 seconds after its time."""
    now = record.tables.now()
    for follow_up in record.tables.follow_ups.values():
        if follow_up.status is FollowUpStatus.PENDING and follow_up.at + FIRING_MS < now:
            yield f"follow-up {follow_up.id} is overdue since {now - follow_up.at} ms"
