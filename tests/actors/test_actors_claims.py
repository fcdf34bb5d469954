"""Claims wait for their batch without a worker, and come to the same whatever happens meanwhile."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from sexton_storage.records.leases import LeaseStatus
from sexton_storage.writes import ClaimEvent
from tests.worlds.actors import ActorsWorld, Later

AGENTS = 8


def on_claim(world: ActorsWorld, monkeypatch: pytest.MonkeyPatch, hear: Callable[[], None]) -> None:
    """Call ``hear`` when a claim has been given to the journal, once its actor has let go of it."""
    token, submit = trio.lowlevel.current_trio_token(), world.storage.journal.submit

    def submitted(write: Any, done: Any) -> None:
        submit(write, done)
        if isinstance(write, ClaimEvent):
            token.run_sync_soon(hear)

    monkeypatch.setattr(world.storage.journal, "submit", submitted)


async def test_claims_whose_batch_commits_hold_no_worker(
    world: ActorsWorld, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(AGENTS):
        await world.deliver(await world.install(f"agent-{number}"))
    runners = [await world.enrol(f"r{number}") for number in range(AGENTS)]
    await trio.sleep(0.1)  # between two rounds of those who look at the tables
    busy: list[int] = []

    def look() -> None:
        statistics = world.system.statistics()
        busy.append(statistics.workers - statistics.workers_idle)

    on_claim(world, monkeypatch, look)
    world.faults.latency_s = 0.01
    async with trio.open_nursery() as nursery:
        polls = [Later(nursery, partial(world.grant, runner_id)) for runner_id in runners]
        grants = [await poll.value() for poll in polls]

    assert len({grant.event.id for grant in grants}) == AGENTS
    assert len(busy) >= AGENTS
    assert min(busy) == 0


async def test_a_queue_that_is_killed_while_its_claim_commits_gives_the_lease_back(
    world: ActorsWorld, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    zombie_id, runner_id = await world.install(), await world.enrol()
    await world.deliver(zombie_id)
    killed: list[bool] = []

    def kill() -> None:
        if not killed:
            killed.append(world.system.kill("queue", zombie_id))

    on_claim(world, monkeypatch, kill)
    world.faults.latency_s = 0.01
    grant = await world.grant(runner_id)

    leases = sorted(world.storage.tables.leases.values(), key=lambda lease: lease.fencing_token)
    assert killed == [True]
    assert leases[-1].id == grant.lease.id
    assert [lease.status for lease in leases] == [LeaseStatus.RELEASED, LeaseStatus.ACTIVE]

    world.everything_adds_up()
