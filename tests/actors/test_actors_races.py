"""A lease that another node writes too: its runner is never told that it lost what it holds."""

from msgspec.structs import replace
from trio.testing import MockClock

from sexton_actors.lease.row import RACED, SHARED_FOR
from sexton_actors.protocol.lease import Renewal
from sexton_actors.protocol.queue import Grant
from sexton_actors.refusal import Refusal
from sexton_actors.terms import MAX_RENEWAL_RACES
from sexton_storage.records.leases import Lease
from sexton_storage.writes import RenewLease
from tests.actors.plant import Plant


def renewed_elsewhere(plant: Plant, lease: Lease) -> None:
    """What another node's renewal leaves behind."""
    leases = plant.storage.tables.leases
    leases[lease.id] = replace(leases[lease.id], version=leases[lease.id].version + 1)


async def _grant(plant: Plant) -> Grant:
    await plant.deliver(await plant.install())
    return await plant.grant(await plant.enrol())


async def test_a_renewal_that_loses_its_races_is_made_again_until_it_is_kept(
    plant: Plant, autojump_clock: MockClock
) -> None:
    grant = await _grant(plant)
    plant.faults.lose(RenewLease, MAX_RENEWAL_RACES - 1)

    renewed = await plant.renew(grant)

    assert isinstance(renewed, Renewal)
    assert renewed.slice_seq == 1
    assert plant.world.meters.races["renew"] == MAX_RENEWAL_RACES - 1


async def test_a_renewal_that_loses_all_its_races_is_told_to_come_again_not_that_its_lease_is_lost(
    plant: Plant, autojump_clock: MockClock
) -> None:
    grant = await _grant(plant)
    plant.faults.lose(RenewLease, MAX_RENEWAL_RACES)

    refused = await plant.renew(grant)

    assert isinstance(refused, Refusal)
    assert (refused.code, refused.retry_after_s) == (RACED, 1)
    assert plant.world.meters.late["renew"] == 0
    assert isinstance(await plant.renew(grant), Renewal)


async def test_a_lease_that_two_nodes_renew_in_turn_loses_one_race_and_is_read_first_from_then_on(
    plant: Plant, autojump_clock: MockClock
) -> None:
    grant = await _grant(plant)

    for _ in range(10):
        renewed_elsewhere(plant, grant.lease)
        assert isinstance(await plant.renew(grant), Renewal)

    assert plant.world.meters.races["renew"] == 1


async def test_a_lease_that_nobody_else_renews_any_more_is_not_read_before_each_renewal(
    plant: Plant, autojump_clock: MockClock
) -> None:
    grant = await _grant(plant)
    renewed_elsewhere(plant, grant.lease)
    for _ in range(SHARED_FOR + 1):
        assert isinstance(await plant.renew(grant), Renewal)

    renewed_elsewhere(plant, grant.lease)
    assert isinstance(await plant.renew(grant), Renewal)

    assert plant.world.meters.races["renew"] == 2
