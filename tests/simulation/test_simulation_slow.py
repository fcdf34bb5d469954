"""Hours at the slow pace: schedules, budgets, keys that expire, rows that go by age, and their judges."""

import copy
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace as replace_fields
from pathlib import Path
from uuid import UUID

import pytest
from msgspec.structs import replace

from tests.simulation.drill.faults import fault_named
from tests.simulation.drill.planting import planted
from tests.simulation.product import judges_of_time
from tests.simulation.product.judges_of_time import OF_TIME, OF_TIME_HEALED, spending
from tests.simulation.product.kept_rows import DAY_MS
from tests.simulation.product.life import Outcome, lasting, live, unix_s
from tests.simulation.product.pace import SLOW
from tests.simulation.product.people import Presented
from tests.simulation.product.rare_looks import CONSTANTS, rare_looks
from tests.simulation.product.record import Broken, Judge, Record, hold
from tests.simulation.product.schedule_moments import moments
from tests.simulation.product.slow_agents import Planned
from tests.simulation.product.times import Times
from tests.simulation.shrink import failure_of
from tests.simulation.world.run import Life

ROOT = Path(__file__).parents[2]
SEED, MINUTES = 7, 90
DOUBLED = "2027-10-31 00:10"
"""In Berlin it is 02:30 twenty minutes later, and again an hour after that."""


@pytest.fixture(scope="module")
def life() -> Life[Outcome]:
    return live(SEED, lasting(MINUTES, "slow", unix_s(DOUBLED)))


def test_a_slow_life_is_the_same_in_another_process_with_other_hashes(life: Life[Outcome]) -> None:
    words = [f"--seed={SEED}", f"--minutes={MINUTES}", "--pace=slow", f"--begins={DOUBLED}"]
    environment = {"PATH": os.environ["PATH"], "PYTHONHASHSEED": "7"}

    told = subprocess.run(
        [sys.executable, "-m", "tests.simulation", *words],
        cwd=ROOT,
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    ).stdout

    assert told.splitlines()[0].rsplit(", ", 1)[1] == life.sha256


def test_a_schedule_that_fires_twice_in_the_doubled_hour_is_noticed(life: Life[Outcome]) -> None:
    nightly = [
        one for one in _times(life.value.record).due if one.planned == Planned("30 2 * * *", "Europe/Berlin")
    ]

    with planted(fault_named("doubled-hour")):
        failure = failure_of(SEED, lasting(MINUTES, "slow", unix_s(DOUBLED)))

    assert [len(one.moments) for one in nightly] == [1]
    assert failure is not None
    assert failure.judge == "schedules_fire_once"


def test_constants_of_the_product_are_rare_in_a_slow_life_and_as_they_were_after_it() -> None:
    def constants() -> list[float]:
        return [getattr(sys.modules[module], name) for module, name, _ in CONSTANTS]

    before = constants()
    with rare_looks():
        within = constants()

    assert within == [seconds for _, _, seconds in CONSTANTS]
    assert all(rare > usual for rare, usual in zip(within, before, strict=True))
    assert constants() == before


def test_the_weeks_of_a_year_have_a_leap_day_and_all_changes_of_the_clock() -> None:
    begins_ms = round(SLOW.start_s(0) * 1000)
    year_ms = 364 * DAY_MS
    planned = {planned for agent in SLOW.agents for planned in agent.planned}
    leap_day, berlin = Planned("45 23 29 2 *", "UTC"), Planned("30 2 * * *", "Europe/Berlin")

    fired = {one: moments(one, begins_ms, begins_ms + year_ms) for one in (leap_day, berlin)}
    hours_apart = {
        (after - before) // 3_600_000 for before, after in zip(fired[berlin], fired[berlin][1:], strict=False)
    }

    assert {leap_day, berlin} <= planned
    assert len(fired[leap_day]) == 1
    # At the gap of March it fires at three, half an hour late, and the next day half an hour sooner after.
    assert len(fired[berlin]) == 364
    assert hours_apart == {23, 24, 25}


# --- judges -------------------------------------------------------------------------------------------------


def _times(record: Record) -> Times:
    assert record.times is not None
    return record.times


def _fired_for_nothing(record: Record) -> None:
    event = next(event for event in record.tables.events.values() if event.event_type == "cron")
    again = UUID(int=1)
    record.tables.events[again] = replace(event, id=again)


def _never_fired(record: Record) -> None:
    times = _times(record)
    times.fired.pop(next(iter(times.fired)))
    times.settled.clear()


def _spent_too_much(record: Record) -> None:
    tables = record.tables
    agent = next(one.agent for one in _times(record).due if one.of.daily_nanos is not None)
    event_id, rows = next(iter(tables.metering.items()))
    tables.events[event_id] = replace(tables.events[event_id], zombie_id=agent)
    place, row = next(iter(rows.items()))
    tables.metering[event_id] = {**rows, place: replace(row, charged_nanos=2_000_000_000)}


def _an_old_key_works(record: Record) -> None:
    record.promises.presented.append(Presented("key 1", 100_000, 100_001, 10_000, 200))


def _a_good_key_is_refused(record: Record) -> None:
    record.promises.presented.append(Presented("key 1", 10_000, 10_001, 100_000, 401))


def _gone_too_early(record: Record) -> None:
    kept = _times(record).kept
    del kept._real.events[next(iter(kept._real.events))]
    kept.update()


def _never_gone(record: Record) -> None:
    real = _times(record).kept._real
    event = next(event for event in real.events.values() if event.completed_at is not None)
    real.events[event.id] = replace(event, created_at=0, completed_at=0)


PLANTED: tuple[tuple[Judge, Callable[[Record], None]], ...] = (
    (judges_of_time.schedules_fire_once, _fired_for_nothing),
    (judges_of_time.schedules_fire_once, _never_fired),
    (judges_of_time.budgets_hold, _spent_too_much),
    (judges_of_time.what_expires_ends, _an_old_key_works),
    (judges_of_time.what_expires_ends, _a_good_key_is_refused),
    (judges_of_time.nothing_goes_early, _gone_too_early),
    (judges_of_time.nothing_stays, _never_gone),
)


def _copy_of(record: Record) -> Record:
    kept = copy.copy(_times(record).kept)
    kept._real, kept.tables, kept.too_early = copy.copy(kept._real), copy.copy(kept.tables), []
    kept._there, kept._first_frame = set(kept._there), dict(kept._first_frame)
    for tables in (kept._real, kept.tables):
        for name in ("events", "metering", "frames"):
            setattr(tables, name, dict(getattr(tables, name)))
    times = replace_fields(
        _times(record),
        kept=kept,
        wrong=[],
        read=set(_times(record).read),
        fired=copy.copy(_times(record).fired),
        settled=dict(_times(record).settled),
    )
    promises = replace_fields(record.promises, presented=[])
    return replace_fields(record, tables=kept.tables, times=times, promises=promises)


def test_each_judge_of_time_notices_what_it_is_there_for(life: Life[Outcome]) -> None:
    assert {judge for judge, _ in PLANTED} == {*OF_TIME, *OF_TIME_HEALED}
    assert spending(life.value.record)

    for judge, plant in PLANTED:
        record = _copy_of(life.value.record)

        hold(record, judge)
        plant(record)

        with pytest.raises(Broken, match=f"^{judge.__name__}: "):
            hold(record, judge)
