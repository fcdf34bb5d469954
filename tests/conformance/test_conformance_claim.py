"""How an agent's oldest event comes to a runner."""

import pytest
import trio
from msgspec.structs import replace

from sexton_storage.records.events import Asked, EventStatus
from sexton_storage.records.leases import LeaseStatus
from sexton_storage.records.zombies import ZombieStatus
from sexton_storage.rules import BALANCE_EXHAUSTED
from sexton_storage.writes import Claimed, ClaimEvent, EventEnd, Exhausted, NothingToClaim
from tests.worlds.storage import HOUR_MS, StorageWorld, new_id


async def test_the_oldest_event_goes_first(world: StorageWorld) -> None:
    agent = await world.agent()
    events = [await world.append(agent) for _ in range(3)]
    claimed = await world.claim(agent)

    assert claimed.event.id == events[0].id
    assert claimed.event.status is EventStatus.RUNNING
    assert claimed.event.attempts == 1
    assert claimed.more
    assert await world.storage.events.load(events[0].id) == claimed.event


async def test_the_last_event_leaves_no_more(world: StorageWorld) -> None:
    agent = await world.agent()
    await world.append(agent)

    assert not (await world.claim(agent)).more


async def test_the_lease_is_what_was_asked_for(world: StorageWorld) -> None:
    agent = await world.agent()
    event = await world.append(agent)
    write = world.claim_of(agent, budget_daily_nanos=5, budget_monthly_nanos=7)
    claimed = await world.storage.journal.write(write)
    assert isinstance(claimed, Claimed)

    lease = claimed.lease
    assert (lease.id, lease.runner_id, lease.event_id) == (write.lease_id, write.runner_id, event.id)
    assert (lease.fencing_token, lease.attempt, lease.status, lease.version) == (1, 1, LeaseStatus.ACTIVE, 1)
    assert (lease.granted_at, lease.metered_at, lease.expires_at) == (
        write.now,
        write.now,
        write.now + 30_000,
    )
    assert lease.ceiling_at == write.now + 12 * HOUR_MS
    assert (lease.rates, lease.budget_daily_nanos, lease.budget_monthly_nanos) == (write.rates, 5, 7)
    assert await world.storage.leases.load(lease.id) == lease
    assert await world.storage.leases.live_of_zombie(agent.id) == lease


async def test_a_claim_made_before_the_last_lease_ended_begins_with_its_end(world: StorageWorld) -> None:
    agent = await world.agent()
    await world.append(agent)
    await world.append(agent)
    first = (await world.claim(agent)).lease
    # Another node made its claim before, and had to wait for the rows until this was committed.
    write = world.claim_of(agent)
    ended_at = write.now + 300
    await world.end(first, EventEnd(EventStatus.PROCESSED), now=ended_at)

    lease = (await world.claim(agent, now=write.now)).lease
    event = await world.storage.events.load(lease.event_id)

    assert (lease.granted_at, lease.metered_at, lease.expires_at) == (ended_at, ended_at, ended_at + 30_000)
    assert lease.ceiling_at == ended_at + 12 * HOUR_MS
    assert await world.storage.leases.load(lease.id) == lease
    assert event is not None
    assert (event.first_leased_at, event.updated_at) == (ended_at, ended_at)


async def test_a_claim_is_told_in_the_agents_stream(world: StorageWorld) -> None:
    agent = await world.agent()
    await world.append(agent)
    lease = (await world.claim(agent)).lease
    (frame,) = await world.storage.frames.read(agent.id, after=0, limit=9)

    assert (frame.kind, frame.event_id, frame.at_ms) == ("event_leased", lease.event_id, lease.granted_at)
    assert frame.data == {
        "runner_id": str(lease.runner_id),
        "lease_id": str(lease.id),
        "attempt": 1,
        "fencing_token": 1,
    }


async def test_an_agent_without_events_has_nothing_to_claim(world: StorageWorld) -> None:
    agent = await world.agent()
    assert await world.storage.journal.write(world.claim_of(agent)) == NothingToClaim("empty")


async def test_an_unknown_agent_has_nothing_to_claim(world: StorageWorld) -> None:
    assert await world.storage.journal.write(world.claim_of(world.agent_record())) == NothingToClaim("gone")


@pytest.mark.parametrize("status", [ZombieStatus.STOPPED, ZombieStatus.PAUSED, ZombieStatus.KILLED])
async def test_an_agent_that_is_not_active_keeps_its_events(
    world: StorageWorld, status: ZombieStatus
) -> None:
    agent = await world.agent()
    await world.append(agent)
    await world.storage.zombies.save(replace(agent, status=status, version=2), ())

    assert await world.storage.journal.write(world.claim_of(agent)) == NothingToClaim("not_active")


async def test_a_claim_from_an_older_record_of_the_agent_claims_nothing(world: StorageWorld) -> None:
    agent = await world.agent()
    await world.append(agent)
    await world.storage.zombies.save(replace(agent, version=2), ())

    refused = await world.storage.journal.write(world.claim_of(agent, agent_version=1))
    claimed = await world.claim(agent, agent_version=2)
    ended = await world.end(claimed.lease, EventEnd(EventStatus.PROCESSED))

    assert refused == NothingToClaim("changed")
    assert ended.agent_version == 2


async def test_an_event_that_asks_for_a_version_goes_to_a_claim_of_that_version_only(
    world: StorageWorld,
) -> None:
    agent, trial_id = await world.agent(), new_id()
    await world.append(agent, asked_version=3, trial_id=trial_id)
    await world.append(agent, asked_version=4)
    await world.append(agent, trial_id=trial_id)

    refused = await world.storage.journal.write(world.claim_of(agent))
    pinned = await world.storage.journal.write(world.claim_of(agent, asked=Asked(3)))
    of_trial = await world.claim(agent, asked=Asked(3, trial_id), ran_version=3)
    await world.end(of_trial.lease, EventEnd(EventStatus.RECEIVED))
    again = await world.storage.journal.write(world.claim_of(agent))
    for_stable = await world.claim(agent, asked=Asked(3, trial_id), ran_version=2)
    await world.end(for_stable.lease, EventEnd(EventStatus.PROCESSED))
    behind = await world.storage.journal.write(world.claim_of(agent))
    second = await world.claim(agent, asked=Asked(4), ran_version=4)
    await world.end(second.lease, EventEnd(EventStatus.PROCESSED))
    third = await world.claim(agent, ran_version=2)

    assert refused == pinned == again == NothingToClaim("other_version", Asked(3, trial_id))
    assert behind == NothingToClaim("other_version", Asked(4))
    assert [claimed.event.ran_version for claimed in (of_trial, for_stable, second, third)] == [3, 2, 4, 2]
    assert (third.event.asked, third.event.trial_id) == (None, trial_id)


async def test_an_agent_has_one_live_lease_at_a_time(world: StorageWorld) -> None:
    agent = await world.agent()
    await world.append(agent)
    await world.append(agent)
    await world.claim(agent)

    assert await world.storage.journal.write(world.claim_of(agent)) == NothingToClaim("leased")


async def test_of_many_claims_at_once_one_gets_the_agent(world: StorageWorld) -> None:
    agent = await world.agent()
    for _ in range(10):
        await world.append(agent)
    answers: list[Claimed | NothingToClaim | Exhausted] = []

    async def claim(write: ClaimEvent) -> None:
        answers.append(await world.storage.journal.write(write))

    async with trio.open_nursery() as nursery:
        for _ in range(10):
            nursery.start_soon(claim, world.claim_of(agent))

    assert sum(isinstance(a, Claimed) for a in answers) == 1
    assert answers.count(NothingToClaim("leased")) == 9


async def test_a_paused_workspace_starts_nothing(world: StorageWorld) -> None:
    agent = await world.agent()
    await world.append(agent)
    workspace = await world.storage.workspaces.load(world.workspace_id)
    assert workspace is not None

    await world.storage.workspaces.save(replace(workspace, paused=True))
    assert await world.storage.journal.write(world.claim_of(agent)) == NothingToClaim("workspace_paused")

    await world.storage.workspaces.save(workspace)
    await world.claim(agent)


async def test_an_event_without_money_is_set_aside_until_credit_comes(world: StorageWorld) -> None:
    poor = await world.beside(balance=0)
    agent = await poor.agent()
    event = await poor.append(agent)
    assert await poor.storage.journal.write(poor.claim_of(agent)) == Exhausted(event.id)

    blocked = await poor.storage.events.load(event.id)
    assert blocked is not None
    assert (blocked.status, blocked.failure_label) == (EventStatus.GATE_BLOCKED, BALANCE_EXHAUSTED)
    assert (blocked.error_code, blocked.completed_at) == ("UZ-BILLING-005", None)
    assert await poor.storage.journal.write(poor.claim_of(agent)) == NothingToClaim("empty")

    credited = await poor.storage.tenants.credit(poor.tenant_id, 50, "gift", "user:1")
    assert credited is not None
    assert credited.balance_nanos == 50

    freed = (await poor.claim(agent)).event
    assert (freed.id, freed.failure_label, freed.error_code) == (event.id, None, None)


async def test_tokens_grow_with_every_lease_of_an_agent_and_attempts_of_an_event_are_never_used_twice(
    world: StorageWorld,
) -> None:
    agent = await world.agent()
    await world.append(agent)
    for number in (1, 2, 3):
        claimed = await world.claim(agent)
        assert (claimed.lease.fencing_token, claimed.lease.attempt) == (number, number)
        assert claimed.event.attempts == 1
        back = EventEnd(EventStatus.RECEIVED, give_attempt_back=True)
        ended = await world.end(claimed.lease, back, status=LeaseStatus.RELEASED)
        assert ended.event.attempts == 0
    await world.append(agent)
    await world.end((await world.claim(agent)).lease, EventEnd(EventStatus.PROCESSED))
    second = await world.claim(agent)

    assert (second.lease.fencing_token, second.lease.attempt) == (5, 1)


async def test_the_ceiling_counts_from_the_first_lease_over_reclaims(world: StorageWorld) -> None:
    agent = await world.agent()
    await world.append(agent)
    first = await world.claim(agent, now=world.now - HOUR_MS, term_ms=2 * HOUR_MS)
    await world.end(first.lease, EventEnd(EventStatus.RECEIVED), status=LeaseStatus.RECLAIMED)
    second = await world.claim(agent)

    assert second.event.attempts == 2
    assert second.event.first_leased_at == first.lease.granted_at
    assert second.lease.ceiling_at == first.lease.ceiling_at


async def test_a_lease_never_outlives_its_ceiling(world: StorageWorld) -> None:
    agent = await world.agent()
    await world.append(agent)
    now = world.now
    lease = (await world.claim(agent, now=now, ceiling_ms=10_000)).lease

    assert lease.expires_at == lease.ceiling_at == now + 10_000


async def test_time_parked_at_a_gate_moves_the_ceiling(world: StorageWorld) -> None:
    agent = await world.agent()
    event = await world.append(agent)
    now = world.now
    first = await world.claim(agent, now=now)
    parked = EventEnd(EventStatus.WAITING_APPROVAL, give_attempt_back=True)
    ended = await world.end(
        first.lease, parked, status=LeaseStatus.PARKED, now=now + 1_000, parked_gate_id=new_id()
    )
    assert (ended.event.status, ended.event.parked_at) == (EventStatus.RECEIVED, now + 1_000)

    again = await world.claim(agent, now=now + 61_000)
    assert again.event.id == event.id
    assert (again.event.parked_ms, again.event.parked_at) == (60_000, None)
    assert again.lease.ceiling_at == first.lease.ceiling_at + 60_000
