"""Schedules over changes of the clock, held against an oracle that looks at every minute there was."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from sexton_actors.schedules.times import following, latest

FIELDS: dict[str, tuple[frozenset[int], frozenset[int], frozenset[int]]] = {}
"""A schedule, and the minutes, hours and days of the month that it means, spelt out by hand."""
ALL_MINUTES, ALL_HOURS, ALL_DAYS = frozenset(range(60)), frozenset(range(24)), frozenset(range(1, 32))
for spelt, minutes, hours in (
    ("* * * * *", ALL_MINUTES, ALL_HOURS),
    ("*/7 * * * *", frozenset(range(0, 60, 7)), ALL_HOURS),
    ("*/15 2 * * *", frozenset({0, 15, 30, 45}), frozenset({2})),
    ("*/30 0,1 * * *", frozenset({0, 30}), frozenset({0, 1})),
    ("*/20 23 * * *", frozenset({0, 20, 40}), frozenset({23})),
    ("0 * * * *", frozenset({0}), ALL_HOURS),
    ("15 * * * *", frozenset({15}), ALL_HOURS),
    ("45 */2 * * *", frozenset({45}), frozenset(range(0, 24, 2))),
    ("10-50 * * * *", frozenset(range(10, 51)), ALL_HOURS),
    ("0 2 * * *", frozenset({0}), frozenset({2})),
    ("15 2 * * *", frozenset({15}), frozenset({2})),
    ("40 1 * * *", frozenset({40}), frozenset({1})),
    ("0,29,30,45 1,2 * * *", frozenset({0, 29, 30, 45}), frozenset({1, 2})),
    ("0 0 * * *", frozenset({0}), frozenset({0})),
    ("5 0-3 * * *", frozenset({5}), frozenset(range(4))),
):
    FIELDS[spelt] = (minutes, hours, ALL_DAYS)
FIELDS["*/10 * 6 * *"] = (frozenset(range(0, 60, 10)), ALL_HOURS, frozenset({6}))
FIELDS["30 2 6,7 * *"] = (frozenset({30}), frozenset({2}), frozenset({6, 7}))

CHANGES = [
    ("Australia/Lord_Howe", "2025-04-05T15:00Z"),
    ("Australia/Lord_Howe", "2025-10-04T15:30Z"),
    ("Europe/Berlin", "2025-03-30T01:00Z"),
    ("Europe/Berlin", "2025-10-26T01:00Z"),
    ("America/Havana", "2025-03-09T05:00Z"),
    ("America/Havana", "2025-11-02T05:00Z"),
    ("America/Santiago", "2025-04-06T03:00Z"),
    ("America/Santiago", "2025-09-07T04:00Z"),
    ("America/St_Johns", "2025-03-09T05:30Z"),
    ("Antarctica/Troll", "2025-03-30T01:00Z"),
    ("Antarctica/Troll", "2025-10-26T01:00Z"),
    ("Pacific/Apia", "2011-12-30T10:00Z"),
    ("Asia/Pyongyang", "2018-05-04T15:00Z"),
    ("Asia/Kathmandu", "2025-03-30T01:00Z"),
]
"""Zones, and a moment at which each changes; the last never does."""
MINUTE_S = 60


def means(schedule: str, local: datetime) -> bool:
    minutes, hours, days = FIELDS[schedule]
    return local.minute in minutes and local.hour in hours and local.day in days


def by_real_time(schedule: str, zone: ZoneInfo, begin: int, end: int) -> list[int]:
    """Each minute that there was and that the schedule means."""
    return [
        at
        for at in range(begin, end, MINUTE_S)
        if means(schedule, datetime.fromtimestamp(at, UTC).astimezone(zone))
    ]


def by_the_wall(schedule: str, zone: ZoneInfo, begin: int, end: int) -> list[int]:
    """Each time of the calendar that the schedule means: at its first coming, or right after the gap."""
    local = datetime.fromtimestamp(begin, UTC).replace(tzinfo=None) - timedelta(days=2)
    last = datetime.fromtimestamp(end, UTC).replace(tzinfo=None) + timedelta(days=2)
    there_was = {
        datetime.fromtimestamp(at, UTC).astimezone(zone).replace(tzinfo=None, fold=0): at
        for at in range(end + 3 * 86_400, begin - 3 * 86_400, -MINUTE_S)
    }  # Counted down, so that of two the first is kept.
    found = set()
    while local < last:
        if means(schedule, local):
            real = local
            while real not in there_was:
                real += timedelta(minutes=1)
            found.add(there_was[real])
        local += timedelta(minutes=1)
    return sorted(at for at in found if begin <= at < end)


@pytest.mark.parametrize(("name", "change"), CHANGES, ids=[f"{name} {change}" for name, change in CHANGES])
def test_over_a_change_of_the_clock_schedules_fire_when_the_oracle_says(name: str, change: str) -> None:
    zone = ZoneInfo(name)
    middle = round(datetime.fromisoformat(change).timestamp())
    begin, end = middle - 30 * 3600, middle + 30 * 3600
    for schedule in FIELDS:
        minute, hour, *_ = schedule.split()
        oracle = by_real_time if minute.startswith("*") or hour.startswith("*") else by_the_wall
        expected = oracle(schedule, zone, begin, end)
        fired: list[int] = []
        at = begin * 1000 - 1
        while (at := following(schedule, name, at)) < end * 1000:
            fired.append(at // 1000)
        assert fired == expected, schedule
        for since in range(middle - 3 * 3600, middle + 3 * 3600, 11 * MINUTE_S):
            ahead = [one for one in expected if one > since]
            if ahead:
                assert following(schedule, name, since * 1000) == ahead[0] * 1000, (schedule, since)
            behind = [one for one in expected if one <= since]
            if behind:
                assert latest(schedule, name, expected[0] * 1000, since * 1000) == behind[-1] * 1000, schedule
