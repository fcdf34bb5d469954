"""When a schedule fires: next, and last, in its own time zone, over changes of the clock too."""

import hashlib
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice
from zoneinfo import ZoneInfo

import msgspec
from cronsim import CronSim, CronSimError

from sexton_actors.schedules.real_time import by_real_time
from sexton_storage.records.crons import NEVER

MINUTE_MS = 60_000
_HOUR_MS, _DAY_MS = 60 * MINUTE_MS, 24 * 60 * MINUTE_MS
_LOOK_BACK_MS = (2 * _HOUR_MS, 2 * _DAY_MS, 62 * _DAY_MS)
"""How far back the last firing is looked for: a schedule that fires often has one close by."""


MOST_COUNTED = 1_000
"""Missed firings that are counted."""


class Unreadable(Exception):
    """The schedule or its time zone means nothing to this machine (any more)."""


def following(schedule: str, timezone: str, after: int) -> int:
    """The first firing after ``after``; NEVER when there is none. Unix ms. Raises Unreadable.

    A time that the clock skips is made up for right after the gap; one that it shows twice counts the first
    time. Where the minute or the hour begins with a star, the schedule goes by real time instead: once each
    such hour, also when it comes twice, and not at all when it is skipped.

    >>> following("30 2 * * *", "UTC", 0) == 2 * _HOUR_MS + 30 * MINUTE_MS
    True
    """
    return next(_firings(schedule, timezone, after), NEVER)


def latest(schedule: str, timezone: str, due_at: int, now: int) -> int:
    """The last firing from ``due_at`` (itself one) up to ``now``: all before it were missed for good.

    >>> latest("0 * * * *", "UTC", 0, 5 * _HOUR_MS + 1) == 5 * _HOUR_MS
    True
    """
    for span in _LOOK_BACK_MS:
        if now - span > due_at and (found := _last_of(schedule, timezone, now - span, now)) is not None:
            return found
    found = _last_of(schedule, timezone, due_at, now)
    return due_at if found is None else found


def key_of(schedule: str, timezone: str, minute: int) -> bytes:
    """What a firing is known by beside its agent: 32 bytes."""
    return hashlib.sha256(f"cron\0{schedule}\0{timezone}\0{minute // MINUTE_MS}".encode()).digest()


def count(schedule: str, timezone: str, first: int, until: int, *, most: int = MOST_COUNTED) -> int:
    """How many firings there are from ``first``, itself one, on and before ``until``.

    >>> count("0 * * * *", "UTC", 0, 3 * _HOUR_MS), count("* * * * *", "UTC", 0, _DAY_MS, most=9)
    (3, 9)
    """
    found = 1 if first < until else 0
    for at in _firings(schedule, timezone, first):
        if at >= until or found >= most:
            break
        found += 1
    return found


def upcoming(schedule: str, timezone: str, after: int, number: int) -> list[int]:
    """The next firings after this time, as many as there are.

    >>> upcoming("0 * * * *", "UTC", 0, 2) == [_HOUR_MS, 2 * _HOUR_MS]
    True
    """
    return list(islice(_firings(schedule, timezone, after), number))


class Fired(msgspec.Struct, frozen=True):
    """A firing that is due: the moment it stands for, and when the schedule fires next."""

    at: int
    next_at: int


def fire(schedule: str, timezone: str, due_at: int, now: int) -> Fired | None:
    """What is to be done at ``now`` about a firing that was planned for ``due_at``; None before its time."""
    if now < due_at:
        return None
    return Fired(latest(schedule, timezone, due_at, now), following(schedule, timezone, now))


def _last_of(schedule: str, timezone: str, after: int, now: int) -> int | None:
    found = None
    for at in _firings(schedule, timezone, after):
        if at > now:
            break
        found = at
    return found


def _firings(schedule: str, timezone: str, after: int) -> Iterator[int]:
    """The firings after ``after``, each moment once, in order."""
    try:
        begin = datetime.fromtimestamp(after / 1000, UTC if timezone == "UTC" else ZoneInfo(timezone))
        simulated: Iterator[datetime] = iter(CronSim(schedule, begin))
    except (CronSimError, ValueError, OverflowError, OSError, KeyError) as fault:
        raise Unreadable(f"{schedule} {timezone}: {fault}") from fault
    if timezone != "UTC" and _goes_by_real_time(schedule):
        simulated = by_real_time(schedule, begin)
    last = after
    for moment in simulated:
        # The hour that comes twice is counted by its first time only: seen from within its second, that is
        # past. And two times of a schedule that fall into one gap are made up for in the same moment.
        at = round(moment.timestamp() * 1000)
        if at > last:
            last = at
            yield at


def _goes_by_real_time(schedule: str) -> bool:
    minute, hour, *_ = schedule.split()
    return minute.startswith("*") or hour.startswith("*")
