"""What a run wants remembered is kept with its report: all or nothing, and once."""

import logging

import pytest
from msgspec.structs import replace
from trio.testing import MockClock

from sexton_actors.lease.handover.deliver import deliver
from sexton_actors.protocol.lease import Report, Reported
from sexton_actors.protocol.queue import Grant
from sexton_actors.refusal import Refusal
from sexton_storage.records.memories import MemoryChange
from sexton_storage.writes import EndLease
from tests.worlds.actors import ActorsWorld, crash_commit_once

LEARNT = (MemoryChange("a", "learnt", "core"), MemoryChange("b", "seen", "daily"))


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture, autojump_clock: MockClock) -> None:
    """Crashes are logged, and here they are ordered; what is waited for comes at once."""
    caplog.set_level(logging.CRITICAL, "sexton_engine")


async def working(world: ActorsWorld) -> Grant:
    await world.deliver(await world.install())
    return await world.grant(await world.enrol())


def report_of(world: ActorsWorld, grant: Grant) -> Report:
    return replace(world.report_of(grant), memory=LEARNT)


def contents(world: ActorsWorld, grant: Grant) -> dict[str, str]:
    kept = world.storage.tables.memories.get(grant.lease.zombie_id, {})
    return {key: memory.content for key, memory in kept.items()}


@pytest.mark.parametrize("after", [False, True])
async def test_a_crash_around_the_commit_loses_nothing_and_keeps_nothing_twice(
    world: ActorsWorld, *, after: bool
) -> None:
    grant = await working(world)
    crashed = crash_commit_once(
        world.storage.journal, after=after, when=lambda write: isinstance(write, EndLease)
    )
    first = await world.system.ask("lease", grant.lease.id, report_of(world, grant))
    assert crashed
    assert isinstance(first, Reported), first
    assert contents(world, grant) == {"a": "learnt", "b": "seen"}

    again = await world.system.ask("lease", grant.lease.id, report_of(world, grant))
    assert isinstance(again, Reported)
    assert again.duplicate

    world.everything_adds_up()


async def test_who_lost_the_lease_leaves_nothing_behind(world: ActorsWorld) -> None:
    grant = await working(world)
    await world.release(grant)
    late = await world.system.ask("lease", grant.lease.id, report_of(world, grant))

    assert isinstance(late, Refusal)
    assert contents(world, grant) == {}


async def test_a_report_that_lost_its_race_keeps_its_memory_with_the_one_that_won(world: ActorsWorld) -> None:
    grant = await working(world)
    world.faults.lose(EndLease, 2)

    assert isinstance(await world.system.ask("lease", grant.lease.id, report_of(world, grant)), Reported)
    assert contents(world, grant) == {"a": "learnt", "b": "seen"}


async def test_the_next_run_begins_with_what_the_last_one_learnt(world: ActorsWorld) -> None:
    grant = await working(world)
    await world.system.ask("lease", grant.lease.id, report_of(world, grant))
    await world.deliver(grant.lease.zombie_id)
    following = await world.grant(grant.lease.runner_id)
    [lease] = await deliver([following], world.system, world.actors_world)

    assert [(entry["key"], entry["category"]) for entry in lease["memory"]] == [("a", "core"), ("b", "daily")]
    assert lease["policy"]["integrations"] == {}
