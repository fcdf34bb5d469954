"""When a schedule has to fire, counted minute by minute: nothing of it is shared with the product."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from tests.simulation.product.slow_agents import Planned

MINUTE_MS: Final = 60_000
MINUTE: Final = timedelta(minutes=1)
LEAST_MS: Final = 2 * 24 * 3_600_000
"""So far before the first moment the count begins, to know which times of the clock were shown before."""


def moments(planned: Planned, since_ms: int, until_ms: int) -> list[int]:
    """The moments after ``since_ms`` and up to ``until_ms``, in Unix ms.

    A time of the day that the clock skips is made up for right after the gap, and one that it shows twice
    counts once. Where the minute or the hour begins with a star, each minute of the clock counts as it comes.

    >>> october_31 = 1_824_940_800_000
    >>> day = moments(Planned("30 2 * * *", "Europe/Berlin"), october_31, october_31 + 24 * 3_600_000)
    >>> [(at - october_31) / 3_600_000 for at in day]
    [0.5]
    >>> hours = moments(Planned("30 * * * *", "Europe/Berlin"), october_31, october_31 + 2 * 3_600_000)
    >>> [(at - october_31) / 3_600_000 for at in hours]
    [0.5, 1.5]
    """
    fields = planned.schedule.split()
    zone = ZoneInfo(planned.timezone)
    by_clock = not (fields[0].startswith("*") or fields[1].startswith("*"))
    shown: set[datetime] = set()
    before: datetime | None = None
    found = []
    first_ms = (since_ms - LEAST_MS) // MINUTE_MS * MINUTE_MS
    for at_ms in range(first_ms, until_ms + 1, MINUTE_MS):
        local = datetime.fromtimestamp(at_ms / 1000, UTC).astimezone(zone).replace(tzinfo=None)
        meant = [local] if _is_meant(fields, local) else []
        if by_clock:
            meant += [one for one in _skipped(before, local) if _is_meant(fields, one)]
            meant = [one for one in meant if one not in shown]
            shown.update(meant)
            before = local
        if meant and at_ms > since_ms:
            found.append(at_ms)
    return found


def _skipped(before: datetime | None, local: datetime) -> Iterator[datetime]:
    if before is not None:
        one = before + MINUTE
        while one < local:
            yield one
            one += MINUTE


def _is_meant(fields: list[str], local: datetime) -> bool:
    week_day = (local.weekday() + 1) % 7
    values = (local.minute, local.hour, local.day, local.month, week_day)
    return all(_has(field, value) for field, value in zip(fields, values, strict=True))


def _has(field: str, value: int) -> bool:
    if field.startswith("*"):
        return value % int(field.partition("/")[2] or 1) == 0
    return value in map(int, field.split(","))
