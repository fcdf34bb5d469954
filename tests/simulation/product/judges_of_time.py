"""What must hold over days and weeks: schedules, budgets, keys that expire, rows that go by their age."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from itertools import pairwise
from typing import Final
from uuid import UUID

from tests.simulation.product.kept_rows import DAY_MS
from tests.simulation.product.people import Presented
from tests.simulation.product.record import Judge, Record
from tests.simulation.product.slow_agents import Planned
from tests.simulation.product.times import Due, Times

ABLE_LOOKS: Final = 6
"""When a server could reach its database at this number of looks in a row, what was due has been done."""
EXPIRY_SLACK_MS: Final = 36_000
"""A user token holds 30 s longer, for clocks that differ; a key is remembered for one second."""
OVERSHOOT_NANOS: Final = 6_200_000
"""A budget is overshot by the slice that reaches it, and by what its runner uses until it has stopped."""
DELETED_MS: Final = 30 * 60_000
"""Three rounds of those who delete by age."""


def schedules_fire_once(record: Record) -> Iterator[str]:
    """A schedule fires once at each of its moments in its zone, and at no other."""
    times = record.times
    assert times is not None
    known = {(one.agent, one.planned): set(one.moments) for one in times.due}
    for event in record.tables.events.values():
        if event.id in times.read or event.event_type != "cron" or event.resumes_event_id is not None:
            continue
        times.read.add(event.id)
        asked = json.loads(event.request_json)
        planned, at = Planned(asked["schedule"], asked["timezone"]), asked["scheduled_at"]
        times.fired[event.zombie_id, planned, at] += 1
        if times.fired[event.zombie_id, planned, at] > 1:
            times.wrong.append(f"{planned} of agent {event.zombie_id} fired twice for {at}")
        elif at not in known[event.zombie_id, planned]:
            times.wrong.append(f"{planned} of agent {event.zombie_id} fired for {at}, which it does not mean")
        elif event.created_at < at:
            times.wrong.append(f"{planned} of agent {event.zombie_id} fired at {event.created_at} for {at}")
    yield from times.wrong
    yield from _missing(record, times)


def _missing(record: Record, times: Times) -> Iterator[str]:
    now, spent = record.tables.now(), None
    for one in times.due:
        place = times.settled.get((one.agent, one.planned), 0)
        while place < len(one.moments):
            at = one.moments[place]
            following = one.moments[place + 1] if place + 1 < len(one.moments) else at + DAY_MS
            if (one.agent, one.planned, at) not in times.fired:
                if not _could_be_done(times.able, at, min(following, now)):
                    if now < following:
                        break
                else:
                    spent = spending(record) if spent is None else spent
                    if not _is_spent(spent, one, at):
                        yield f"{one.planned} of agent {one.agent} did not fire for {at}"
                        return
            place += 1
        times.settled[one.agent, one.planned] = place


def _could_be_done(able: Sequence[int], since: int, until: int) -> bool:
    """Whether a server could work for long enough in between."""
    found = able[bisect_left(able, since) : bisect_left(able, until)]
    looks_ms = 90_000
    row = 1
    for before, after in pairwise(found):
        row = row + 1 if after - before < looks_ms else 1
        if row >= ABLE_LOOKS:
            return True
    return False


def spending(record: Record) -> Counter[tuple[UUID, str]]:
    """What each agent was charged in each UTC day and month, by the metering rows alone."""
    tables, found = record.tables, Counter[tuple[UUID, str]]()
    for event_id, rows in tables.metering.items():
        if (event := tables.events.get(event_id)) is not None:
            for row in rows.values():
                day = _date(row.created_at // DAY_MS)
                found[event.zombie_id, day] += row.charged_nanos
                found[event.zombie_id, day[:7]] += row.charged_nanos
    return found


@lru_cache(maxsize=1024)
def _date(day: int) -> str:
    return datetime.fromtimestamp(day * 86_400, UTC).date().isoformat()


def _is_spent(spent: Counter[tuple[UUID, str]], one: Due, at: int) -> bool:
    day = _date(at // DAY_MS)
    daily, monthly = one.of.daily_nanos, one.of.monthly_nanos
    if daily is not None and spent[one.agent, day] >= daily:
        return True
    return monthly is not None and spent[one.agent, day[:7]] >= monthly


def resting(record: Record) -> set[UUID]:
    """Agents whose budget of today or of this month is spent."""
    times, now = record.times, record.tables.now()
    assert times is not None
    spent = spending(record)
    return {one.agent for one in times.due if _is_spent(spent, one, now)}


def budgets_hold(record: Record) -> Iterator[str]:
    """No agent is charged much more in a UTC day or month than its budget allows."""
    times = record.times
    assert times is not None
    budgets = {one.agent: one.of for one in times.due if one.of.daily_nanos is not None}
    for (agent, period), nanos in spending(record).items():
        of = budgets.get(agent)
        if of is None:
            continue
        budget = of.monthly_nanos if len(period) == len("2027-09") else of.daily_nanos
        if budget is not None and nanos > budget + OVERSHOOT_NANOS:
            yield f"agent {agent} has spent {nanos} in {period}"


def what_expires_ends(record: Record) -> Iterator[str]:
    """A key or token lets its holder in until it expires, and not after that."""
    presented, record.promises.presented = record.promises.presented, []
    for one in presented:
        if (wrong := _wrongly_answered(one)) is not None:
            yield f"{one.what} was {wrong} at {one.asked_ms} and expires at {one.expires_ms}"


def _wrongly_answered(one: Presented) -> str | None:
    if one.status == 200 and one.asked_ms > one.expires_ms + EXPIRY_SLACK_MS:
        return "taken"
    if one.status == 401 and one.answered_ms < one.expires_ms - EXPIRY_SLACK_MS:
        return "refused"
    return None


def nothing_goes_early(record: Record) -> Iterator[str]:
    """Events and frames are deleted by their age, and never before."""
    assert record.times is not None
    yield from record.times.kept.too_early


def nothing_stays(record: Record) -> Iterator[str]:
    """Once faults have healed, what is past keeping is deleted, and old metering is one row a run."""
    assert record.times is not None
    yield from record.times.kept.too_late(DELETED_MS)


OF_TIME: Final[Sequence[Judge]] = (
    schedules_fire_once,
    budgets_hold,
    what_expires_ends,
    nothing_goes_early,
)
OF_TIME_HEALED: Final[Sequence[Judge]] = (nothing_stays,)
"""An hour after the last fault."""
