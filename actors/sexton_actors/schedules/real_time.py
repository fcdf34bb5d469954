"""Firings of schedules that go by real time, over any change of the clock."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo

from cronsim import CronSim

_SECOND = timedelta(seconds=1)
_STEP = timedelta(hours=6)
"""No zone changes its clock and takes that back within so short a time."""


def by_real_time(schedule: str, begin: datetime) -> Iterator[datetime]:
    """The moments after ``begin``, in its zone's time, whose minute on the clock the schedule means.

    CronSim steps through a zone by whole hours, and so loses its way where the clock is changed by half an
    hour. Between two changes the clock is as even as UTC, so it is asked about one such stretch at a time,
    without a zone.

    >>> from zoneinfo import ZoneInfo
    >>> begin = datetime(2025, 4, 6, 1, 0, tzinfo=ZoneInfo("Australia/Lord_Howe"))
    >>> firings = by_real_time("15,45 * * * *", begin)
    >>> [next(firings).astimezone(begin.tzinfo).strftime("%H:%M%z") for _ in range(4)]
    ['01:15+1100', '01:45+1100', '01:45+1030', '02:15+1030']
    """
    zone, here = begin.tzinfo or UTC, begin.astimezone(UTC)
    while True:
        offset = _offset(here, zone)
        change = None
        for local in CronSim(schedule, (here + offset).replace(tzinfo=None)):
            moment = (local - offset).replace(tzinfo=UTC)
            change = _change_between(here, moment, zone)
            if change is not None:
                break
            here = moment
            yield moment
        if change is None:
            return
        # CronSim gives what comes after a moment; the first one of the next stretch may be meant itself.
        yield from _at(schedule, change, _offset(change, zone))
        here = change


def _at(schedule: str, moment: datetime, offset: timedelta) -> Iterator[datetime]:
    """The moment itself, if the schedule means it."""
    local = (moment + offset).replace(tzinfo=None)
    if next(CronSim(schedule, local - _SECOND), None) == local:
        yield moment


def _change_between(after: datetime, until: datetime, zone: tzinfo) -> datetime | None:
    """The first moment after ``after`` and up to ``until`` at which the zone's offset is another."""
    offset = _offset(after, zone)
    low, high = after, after
    while high < until:
        low, high = high, min(high + _STEP, until)
        if _offset(high, zone) != offset:
            break
    else:
        return None
    while high - low > _SECOND:
        middle = low + (high - low) / 2
        low, high = (middle, high) if _offset(middle, zone) == offset else (low, middle)
    return high.replace(microsecond=0)


def _offset(moment: datetime, zone: tzinfo) -> timedelta:
    return moment.astimezone(zone).utcoffset() or timedelta()
