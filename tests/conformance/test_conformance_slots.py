"""A runner holds at most as many leases as it has slots, whoever claims for it."""

import trio

from sexton_storage.records.events import EventStatus
from sexton_storage.refusals import NO_SLOT, RUNNER_FULL
from sexton_storage.writes import Claimed, ClaimEvent, EventEnd, Exhausted, NothingToClaim
from tests.patience import PATIENCE_S
from tests.worlds.storage import StorageWorld


async def claims_for(world: StorageWorld, slots: int, agents: int) -> tuple[StorageWorld, list[ClaimEvent]]:
    runner = world.runner_record(slots=slots)
    assert await world.storage.runners.enrol(runner, enrolment_hash=None)
    claims = []
    for _ in range(agents):
        agent = await world.agent()
        await world.append(agent)
        claims.append(world.claim_of(agent, runner_id=runner.id))
    return world, claims


async def test_a_batch_of_claims_gets_as_many_leases_as_there_are_slots(world: StorageWorld) -> None:
    world, claims = await claims_for(world, 2, 5)
    answers: list[object] = []
    for claim in claims:
        world.storage.journal.submit(claim, answers.append)
    with trio.fail_after(PATIENCE_S):
        while len(answers) < len(claims):
            await trio.sleep(0.002)
    assert sum(isinstance(answer, Claimed) for answer in answers) == 2
    assert [a for a in answers if not isinstance(a, Claimed)] == [NothingToClaim(RUNNER_FULL)] * 3

    for claim, answer in zip(claims, answers, strict=True):
        waits = await world.storage.events.waits(claim.zombie_id)
        assert waits.received is not isinstance(answer, Claimed), "what was not given out waits as before"


async def test_a_slot_is_free_again_when_its_lease_ends_and_renewals_need_none(world: StorageWorld) -> None:
    world, (first, second, third) = await claims_for(world, 2, 3)
    one, two = [await world.storage.journal.write(claim) for claim in (first, second)]
    assert isinstance(one, Claimed)
    assert isinstance(two, Claimed)
    assert await world.storage.journal.write(third) == NothingToClaim(RUNNER_FULL)

    lease, _ = await world.renew(one.lease)
    await world.end(lease, EventEnd(EventStatus.PROCESSED), nanos=1)
    assert isinstance(await world.storage.journal.write(third), Claimed)


async def test_another_runner_has_its_own_slots(world: StorageWorld) -> None:
    world, (mine,) = await claims_for(world, 1, 1)
    other, (theirs,) = await claims_for(world, 1, 1)

    assert isinstance(await world.storage.journal.write(mine), Claimed)
    assert isinstance(await other.storage.journal.write(theirs), Claimed)


async def test_an_event_that_nobody_can_pay_for_is_set_aside_by_a_full_runner_too(
    world: StorageWorld,
) -> None:
    world, (mine,) = await claims_for(world, 1, 1)
    assert isinstance(await world.storage.journal.write(mine), Claimed)

    poor = await world.beside(balance=0)
    agent = await poor.agent()
    event = await poor.append(agent)
    claim = poor.claim_of(agent, runner_id=mine.runner_id)
    assert await poor.storage.journal.write(claim) == Exhausted(event.id)
    assert {RUNNER_FULL} <= NO_SLOT
