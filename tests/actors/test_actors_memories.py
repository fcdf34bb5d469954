"""What a run wants remembered is kept with its report: all or nothing, and once."""

import logging

import pytest
from msgspec.structs import replace
from trio.testing import MockClock

from sexton_actors.lease.handover.deliver import hand_over
from sexton_actors.protocol.lease import Report, Reported
from sexton_actors.protocol.queue import Grant
from sexton_actors.refusal import Refusal
from sexton_storage.records.memories import MemoryChange
from sexton_storage.writes import EndLease
from tests.actors.plant import Plant, crash_commit_once

LEARNT = (MemoryChange("a", "learnt", "core"), MemoryChange("b", "seen", "daily"))


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture, autojump_clock: MockClock) -> None:
    """Crashes are logged, and here they are ordered; what is waited for comes at once."""
    caplog.set_level(logging.CRITICAL, "sexton_engine")


async def working(plant: Plant) -> Grant:
    await plant.deliver(await plant.install())
    return await plant.grant(await plant.enrol())


def report_of(plant: Plant, grant: Grant) -> Report:
    return replace(plant.report_of(grant), memory=LEARNT)


def contents(plant: Plant, grant: Grant) -> dict[str, str]:
    kept = plant.storage.tables.memories.get(grant.lease.zombie_id, {})
    return {key: memory.content for key, memory in kept.items()}


@pytest.mark.parametrize("after", [False, True])
async def test_a_crash_around_the_commit_loses_nothing_and_keeps_nothing_twice(
    plant: Plant, *, after: bool
) -> None:
    grant = await working(plant)
    crashed = crash_commit_once(
        plant.storage.journal, after=after, when=lambda write: isinstance(write, EndLease)
    )
    first = await plant.system.ask("lease", grant.lease.id, report_of(plant, grant))
    assert crashed
    assert isinstance(first, Reported), first
    assert contents(plant, grant) == {"a": "learnt", "b": "seen"}
    again = await plant.system.ask("lease", grant.lease.id, report_of(plant, grant))
    assert isinstance(again, Reported)
    assert again.duplicate
    plant.everything_adds_up()


async def test_who_lost_the_lease_leaves_nothing_behind(plant: Plant) -> None:
    grant = await working(plant)
    await plant.release(grant)
    late = await plant.system.ask("lease", grant.lease.id, report_of(plant, grant))
    assert isinstance(late, Refusal)
    assert contents(plant, grant) == {}


async def test_a_report_that_lost_its_race_keeps_its_memory_with_the_one_that_won(plant: Plant) -> None:
    grant = await working(plant)
    plant.faults.lose(EndLease, 2)
    assert isinstance(await plant.system.ask("lease", grant.lease.id, report_of(plant, grant)), Reported)
    assert contents(plant, grant) == {"a": "learnt", "b": "seen"}


async def test_the_next_run_begins_with_what_the_last_one_learnt(plant: Plant) -> None:
    grant = await working(plant)
    await plant.system.ask("lease", grant.lease.id, report_of(plant, grant))
    await plant.deliver(grant.lease.zombie_id)
    following = await plant.grant(grant.lease.runner_id)
    [lease] = await hand_over([following], plant.system, plant.world)
    assert [(entry["key"], entry["category"]) for entry in lease["memory"]] == [("a", "core"), ("b", "daily")]
    assert lease["policy"]["integrations"] == {}
