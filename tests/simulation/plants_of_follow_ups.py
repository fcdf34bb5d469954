"""What the judges of follow-ups must notice: a planted row for each."""

from collections.abc import Callable, Mapping
from typing import Final
from uuid import UUID

import orjson
from msgspec.structs import replace

from sexton_storage.records.events import Event
from sexton_storage.records.follow_ups import FollowUp, FollowUpStatus
from tests.simulation.product import judges_of_follow_ups
from tests.simulation.product.record import Judge, Record

ANOTHER: Final = UUID(int=11)


def _new(record: Record, status: FollowUpStatus) -> FollowUp:
    tables, now = record.tables, record.tables.now()
    event = next(iter(tables.events.values()))
    made = FollowUp(ANOTHER, event.zombie_id, event.id, "planted", "Look.", now - 60_000, 0, status, now)
    tables.follow_ups[made.id] = made
    return made


def _event_of(record: Record, follow_up: FollowUp, number: int = 12, at: int = 0) -> Event:
    event = record.tables.events[follow_up.event_id]
    made = replace(
        event,
        id=UUID(int=number),
        event_type="follow_up",
        request_json=orjson.dumps({"follow_up_id": str(follow_up.id)}).decode(),
        resumes_event_id=follow_up.event_id,
        created_at=at or follow_up.at,
    )
    record.tables.events[made.id] = made
    return made


def _came_after_all(record: Record) -> None:
    _event_of(record, _new(record, FollowUpStatus.CANCELLED))


def _came_twice(record: Record) -> None:
    follow_up = _new(record, FollowUpStatus.FIRED)
    _event_of(record, follow_up)
    _event_of(record, follow_up, 13)


def _came_early(record: Record) -> None:
    follow_up = _new(record, FollowUpStatus.FIRED)
    _event_of(record, follow_up, at=follow_up.at - 1)


def _never_came(record: Record) -> None:
    _new(record, FollowUpStatus.FIRED)


def _of_another_agent(record: Record) -> None:
    follow_up = _new(record, FollowUpStatus.FIRED)
    event = _event_of(record, follow_up)
    record.tables.events[event.id] = replace(event, zombie_id=ANOTHER)


def _of_none(record: Record) -> None:
    follow_up = _new(record, FollowUpStatus.FIRED)
    _event_of(record, follow_up)
    another = replace(follow_up, id=UUID(int=14), status=FollowUpStatus.PENDING)
    record.tables.follow_ups[another.id] = another
    del record.tables.follow_ups[follow_up.id]


def _fired_though_taken_back(record: Record) -> None:
    record.promises.taken_back.add(_new(record, FollowUpStatus.FIRED).id)


def _never_kept(record: Record) -> None:
    record.runs.follow_ups[ANOTHER] = 0


def _asked_twice(record: Record) -> None:
    asked = _new(record, FollowUpStatus.PENDING)
    record.tables.follow_ups[UUID(int=15)] = replace(asked, id=UUID(int=15))


def _ended_again(record: Record) -> None:
    record.follow_ups.ended[_new(record, FollowUpStatus.FIRED).id] = FollowUpStatus.CANCELLED


def _overdue(record: Record) -> None:
    _new(record, FollowUpStatus.PENDING)


PLANTED: Final[Mapping[Judge, Callable[[Record], None]]] = {
    judges_of_follow_ups.follow_ups_wake_once: _came_after_all,
    judges_of_follow_ups.follow_ups_as_told: _fired_though_taken_back,
    judges_of_follow_ups.follow_ups_in_time: _overdue,
}
MORE_PLANTED: Final[tuple[tuple[Judge, Callable[[Record], None]], ...]] = (
    *(
        (judges_of_follow_ups.follow_ups_wake_once, plant)
        for plant in (_came_twice, _came_early, _never_came, _of_another_agent, _of_none)
    ),
    *(
        (judges_of_follow_ups.follow_ups_as_told, plant)
        for plant in (_never_kept, _asked_twice, _ended_again)
    ),
)
