"""A lease that another node writes too: its runner is never told that it lost what it holds."""

from msgspec.structs import replace
from trio.testing import MockClock

from sexton_actors.held.freshness import SHARED_FOR
from sexton_actors.held.races import RACED
from sexton_actors.protocol.lease import Renewal, Reported
from sexton_actors.protocol.queue import Grant
from sexton_actors.refusal import Refusal
from sexton_actors.terms import LEASE_TERM_MS, MAX_RACES
from sexton_storage.records.leases import Lease
from sexton_storage.writes import RenewLease
from tests.worlds.actors import ActorsWorld


def renewed_elsewhere(world: ActorsWorld, lease: Lease) -> None:
    """What another node's renewal leaves behind."""
    leases = world.storage.tables.leases
    leases[lease.id] = replace(leases[lease.id], version=leases[lease.id].version + 1)


async def _grant(world: ActorsWorld) -> Grant:
    await world.deliver(await world.install())
    return await world.grant(await world.enrol())


async def test_a_renewal_that_loses_its_races_is_made_again_until_it_is_kept(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    grant = await _grant(world)
    world.faults.lose(RenewLease, MAX_RACES - 1)

    renewed = await world.renew(grant)

    assert isinstance(renewed, Renewal)
    assert renewed.slice_seq == 1
    assert world.actors_world.meters.races["renew"] == MAX_RACES - 1


async def test_a_renewal_that_loses_all_its_races_is_told_to_come_again_not_that_its_lease_is_lost(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    grant = await _grant(world)
    world.faults.lose(RenewLease, MAX_RACES)

    refused = await world.renew(grant)

    assert isinstance(refused, Refusal)
    assert (refused.code, refused.retry_after_s) == (RACED, 1)
    assert world.actors_world.meters.late["renew"] == 0
    assert isinstance(await world.renew(grant), Renewal)


async def test_a_lease_that_two_nodes_renew_in_turn_loses_one_race_and_is_read_first_from_then_on(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    grant = await _grant(world)

    for _ in range(10):
        renewed_elsewhere(world, grant.lease)
        assert isinstance(await world.renew(grant), Renewal)

    assert world.actors_world.meters.races["renew"] == 1


async def test_a_lease_that_another_node_has_renewed_is_read_before_its_runner_is_told_that_it_is_lost(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    grant = await _grant(world)
    leases = world.storage.tables.leases
    renewed = leases[grant.lease.id]
    until = renewed.expires_at + LEASE_TERM_MS
    leases[grant.lease.id] = replace(renewed, version=renewed.version + 1, expires_at=until)
    autojump_clock.jump((LEASE_TERM_MS + 1) / 1000)  # This node's timer waits for a moment more.

    shown = await world.activity(grant)
    again = await world.renew(grant)

    assert not isinstance(shown, Refusal)
    assert isinstance(again, Renewal)
    assert again.lease_expires_at >= until


async def test_a_report_is_taken_where_another_node_has_renewed_the_lease(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    grant = await _grant(world)
    leases = world.storage.tables.leases
    renewed = leases[grant.lease.id]
    until = renewed.expires_at + LEASE_TERM_MS
    leases[grant.lease.id] = replace(renewed, version=renewed.version + 1, expires_at=until)
    autojump_clock.jump((LEASE_TERM_MS + 1) / 1000)

    reported = await world.report(grant)

    assert isinstance(reported, Reported)
    assert not reported.duplicate


async def test_a_lease_that_nobody_else_renews_any_more_is_not_read_before_each_renewal(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    grant = await _grant(world)
    renewed_elsewhere(world, grant.lease)
    for _ in range(SHARED_FOR + 1):
        assert isinstance(await world.renew(grant), Renewal)

    renewed_elsewhere(world, grant.lease)

    assert isinstance(await world.renew(grant), Renewal)

    assert world.actors_world.meters.races["renew"] == 2
