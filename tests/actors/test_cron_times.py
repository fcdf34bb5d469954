"""When schedules fire: in their own zone, over both changes of the clock, and after a time of silence."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings, strategies as st

from sexton_actors.schedules.times import (
    MINUTE_MS,
    Fired,
    Unreadable,
    fire,
    following,
    key_of,
    latest,
)
from sexton_storage.records.crons import NEVER
from tests.thorough import examples

BERLIN = "Europe/Berlin"
SPRING, AUTUMN = "2025-03-30", "2025-10-26"
"""At 01:00 UTC Berlin goes from 02:00 to 03:00, and from 03:00 back to 02:00."""


def ms(text: str, zone: str = "UTC") -> int:
    moment = datetime.fromisoformat(text)
    local = moment if moment.tzinfo else moment.replace(tzinfo=ZoneInfo(zone))
    return round(local.timestamp() * 1000)


def fires(schedule: str, zone: str, begin: str, end: str) -> list[str]:
    """The firings from one UTC time to another, as local times with their offset."""
    shown, at = [], ms(begin) - 1
    while (at := following(schedule, zone, at)) <= ms(end):
        shown.append(datetime.fromtimestamp(at / 1000, ZoneInfo(zone)).strftime("%d %H:%M%z")[:-2])
    return shown


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ("30 1 * * *", ["29 01:30+01", "30 01:30+01", "31 01:30+02"]),
        ("30 2 * * *", ["29 02:30+01", "30 03:00+02", "31 02:30+02"]),
        ("0 3 * * *", ["29 03:00+01", "30 03:00+02", "31 03:00+02"]),
        ("0,30 2 * * *", ["29 02:00+01", "29 02:30+01", "30 03:00+02", "31 02:00+02", "31 02:30+02"]),
        ("0 2,3 * * *", ["29 02:00+01", "29 03:00+01", "30 03:00+02", "31 02:00+02", "31 03:00+02"]),
        ("*/30 2 * * *", ["29 02:00+01", "29 02:30+01", "31 02:00+02", "31 02:30+02"]),
    ],
)
def test_in_spring_what_the_clock_skips_is_made_up_for_at_once(schedule: str, expected: list[str]) -> None:
    assert fires(schedule, BERLIN, "2025-03-29T00:00Z", "2025-03-31T01:30Z") == expected


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ("30 1 * * *", ["25 01:30+02", "26 01:30+02", "27 01:30+01"]),
        ("30 2 * * *", ["25 02:30+02", "26 02:30+02"]),
        ("0 3 * * *", ["25 03:00+02", "26 03:00+01"]),
        (
            "0,30 2 * * *",
            ["25 02:00+02", "25 02:30+02", "26 02:00+02", "26 02:30+02", "27 02:00+01"],
        ),
        (
            "*/30 2 * * *",
            [
                "25 02:00+02",
                "25 02:30+02",
                "26 02:00+02",
                "26 02:30+02",
                "26 02:00+01",
                "26 02:30+01",
                "27 02:00+01",
            ],
        ),
    ],
)
def test_in_autumn_the_hour_that_comes_twice_counts_once_unless_it_goes_by_stars(
    schedule: str, expected: list[str]
) -> None:
    assert fires(schedule, BERLIN, "2025-10-24T22:00Z", "2025-10-27T01:15Z") == expected


@pytest.mark.parametrize("day", [SPRING, AUTUMN])
def test_every_hour_is_every_real_hour(day: str) -> None:
    begin = ms(f"{day}T00:00", BERLIN)
    seen = [following("0 * * * *", BERLIN, begin - 1)]
    while len(seen) < 30:
        seen.append(following("0 * * * *", BERLIN, seen[-1]))

    assert [b - a for a, b in pairwise(seen)] == [60 * MINUTE_MS] * 29


@pytest.mark.parametrize("schedule", ["30 2 * * *", "0,15,30,45 2 * * *", "30 2,3 * * *", "*/7 * * * *"])
@pytest.mark.parametrize("day", [SPRING, AUTUMN])
def test_from_wherever_one_looks_the_same_firings_are_seen(schedule: str, day: str) -> None:
    """What is planned next must not depend on when a node happened to look."""
    begin = ms(f"{day}T00:00", BERLIN)
    every, at = [], begin
    while (at := following(schedule, BERLIN, at)) < begin + 8 * 60 * MINUTE_MS:
        every.append(at)
    for minute in range(8 * 60):
        now = begin + minute * MINUTE_MS
        ahead = [one for one in every if one > now]
        if ahead:
            assert following(schedule, BERLIN, now) == ahead[0], minute
            assert following(schedule, BERLIN, now + 999) == ahead[0], minute
        behind = [one for one in every if one <= now]
        if behind:
            assert latest(schedule, BERLIN, every[0], now) == behind[-1], minute


def test_a_schedule_in_two_zones_fires_at_two_moments_under_two_keys() -> None:
    at = ms("2025-01-10T00:00Z")
    there, here = following("0 9 * * *", "America/New_York", at), following("0 9 * * *", BERLIN, at)

    assert there - here == 6 * 60 * MINUTE_MS
    assert key_of("0 9 * * *", BERLIN, here) != key_of("0 9 * * *", "America/New_York", here)
    assert key_of("0 9 * * *", BERLIN, here) == key_of("0 9 * * *", BERLIN, here + 59_999)


@pytest.mark.parametrize(
    ("schedule", "silence", "expected"),
    [
        ("* * * * *", timedelta(minutes=1), "2025-06-01T12:00Z"),
        ("* * * * *", timedelta(days=400), "2025-06-01T12:00Z"),
        ("0 * * * *", timedelta(hours=5), "2025-06-01T12:00Z"),
        ("30 8 * * MON", timedelta(days=90), "2025-05-26T08:30Z"),
        ("0 0 1 1 *", timedelta(days=800), "2025-01-01T00:00Z"),
    ],
)
def test_of_what_was_missed_the_last_fires(schedule: str, silence: timedelta, expected: str) -> None:
    now = ms("2025-06-01T12:00:20Z")
    due_at = following(schedule, "UTC", now - round(silence.total_seconds() * 1000) - 1)
    next_at = following(schedule, "UTC", now)

    assert fire(schedule, "UTC", due_at, now) == Fired(ms(expected), next_at)
    assert next_at > now


def test_nothing_fires_before_its_time() -> None:
    due_at = ms("2025-06-01T12:00Z")

    assert fire("0 12 * * *", "UTC", due_at, due_at - 1) is None
    assert fire("0 12 * * *", "UTC", due_at, due_at) == Fired(due_at, due_at + 24 * 60 * MINUTE_MS)


def test_what_this_machine_cannot_read_is_said_to_be_so() -> None:
    broken = (("0 0 * * *", "Mars/Olympus"), ("61 * * * *", "UTC"), ("", "UTC"), ("* * * * *", "/"))
    for schedule, zone in broken:
        with pytest.raises(Unreadable):
            following(schedule, zone, 0)


def test_a_schedule_without_any_day_never_fires() -> None:
    assert following("0 0 */31 2 MON#5", "UTC", 0) == NEVER


FIELD = st.sampled_from
SCHEDULES = st.builds(
    "{} {} {} {} {}".format,
    FIELD(["*", "0", "30", "*/15", "5,35", "10-20", "59"]),
    FIELD(["*", "0", "2", "2,3", "*/6", "1-4", "23"]),
    FIELD(["*", "1", "29", "31", "L", "*/10"]),
    FIELD(["*", "2", "3,10", "*/4"]),
    FIELD(["*", "0", "MON-FRI", "SUN#1", "5L"]),
)
ZONES = FIELD(["UTC", BERLIN, "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "America/Havana"])
MOMENTS = st.integers(ms("2024-01-01T00:00Z"), ms("2027-01-01T00:00Z"))


@settings(max_examples=examples(150), deadline=None)
@given(SCHEDULES, ZONES, MOMENTS)
def test_firings_lie_ahead_one_after_the_other_on_whole_minutes(schedule: str, zone: str, after: int) -> None:
    try:
        first = following(schedule, zone, after)
    except Unreadable:
        return
    assert first > after

    if first == NEVER:
        return
    assert first % MINUTE_MS == 0

    second = following(schedule, zone, first)
    assert second > first
    assert following(schedule, zone, first - 1) == first
    assert latest(schedule, zone, first, second - 1) == first

    if second != NEVER:
        assert latest(schedule, zone, first, second) == second
        assert datetime.fromtimestamp(second / 1000, UTC) > datetime.fromtimestamp(first / 1000, UTC)
