"""A tenant without a limit is charged to the last nano, and never stopped."""

from sexton_storage.records.events import EventStatus, EventWaits
from sexton_storage.refusals import Lost
from sexton_storage.writes import Claimed, EventEnd, Exhausted, Renewed
from tests.worlds.storage import StorageWorld, metered, new_id


async def test_a_tenant_without_a_limit_is_charged_below_zero_and_never_blocked(world: StorageWorld) -> None:
    owner = await world.beside(balance=150)
    tenant = await owner.storage.tenants.set_unlimited(owner.tenant_id, unlimited=True)
    assert tenant is not None
    assert (tenant.unlimited, tenant.exhausted_at, tenant.has_credit) == (True, None, True)

    lease = await owner.lease()
    answers = []
    for nanos in (100, 50, 0, 1_000):
        lease, renewed = await owner.renew(lease, nanos)
        answers.append((renewed.charged_nanos, renewed.balance_nanos, renewed.unlimited))
    assert answers == [(100, 50, True), (50, 0, True), (0, 0, True), (1_000, -1_000, True)]

    agent = await owner.agent()
    await owner.append(agent)
    claimed = await owner.storage.journal.write(owner.claim_of(agent))
    assert isinstance(claimed, Claimed)

    ended = await owner.end(lease, EventEnd(EventStatus.PROCESSED), nanos=7)
    assert (ended.charged_nanos, ended.balance_nanos) == (7, -1_007)
    assert 150 - await owner.balance() == await metered(owner, [lease.event_id]) == 1_157

    kept = await owner.storage.tenants.load(owner.tenant_id)
    assert kept is not None
    assert (kept.balance_nanos, kept.exhausted_at) == (-1_007, None)


async def test_slices_of_one_batch_are_each_charged_whole_to_a_tenant_without_a_limit(
    world: StorageWorld,
) -> None:
    owner = await world.beside(balance=10)
    await owner.storage.tenants.set_unlimited(owner.tenant_id, unlimited=True)
    leases = [await owner.lease() for _ in range(4)]
    answers: list[Renewed | Lost | Exception] = []
    for lease in leases:
        owner.storage.journal.submit(owner.renewal(lease, 100), answers.append)
    await owner.renew(await owner.lease(), 1)

    assert [answer.charged_nanos for answer in answers if isinstance(answer, Renewed)] == [100] * 4
    assert await owner.balance() == 10 - 401


async def test_a_limit_that_is_set_holds_at_once_and_one_that_is_lifted_frees_what_waits(
    world: StorageWorld,
) -> None:
    owner = await world.beside(balance=0)
    tenants, agent = owner.storage.tenants, await owner.agent()
    event = await owner.append(agent)
    assert await owner.storage.journal.write(owner.claim_of(agent)) == Exhausted(event.id)
    assert await owner.storage.events.waits(agent.id) == EventWaits(blocked=True)

    census = await owner.storage.fleet.census()
    assert census.blocked == 1

    await tenants.set_unlimited(owner.tenant_id, unlimited=True)
    assert await owner.storage.events.waits(agent.id) == EventWaits(received=True)

    lease = (await owner.claim(agent)).lease
    assert await owner.storage.events.waits(agent.id) == EventWaits(running=True)

    lease, _ = await owner.renew(lease, 500)
    limited = await tenants.set_unlimited(owner.tenant_id, unlimited=False)
    assert limited is not None
    assert (limited.balance_nanos, limited.has_credit) == (-500, False)
    assert limited.exhausted_at is not None

    census = await owner.storage.fleet.census()
    assert (census.blocked, census.exhausted) == (0, 1)

    _, renewed = await owner.renew(lease, 500)
    assert (renewed.charged_nanos, renewed.balance_nanos, renewed.unlimited) == (0, -500, False)

    credited = await tenants.credit(owner.tenant_id, 501, "paid", "user:1")
    assert credited is not None
    assert (credited.balance_nanos, credited.exhausted_at) == (1, None)
    assert await tenants.set_unlimited(new_id(), unlimited=True) is None
    assert await owner.storage.events.waits(new_id()) == EventWaits()


async def test_a_schedule_that_is_due_is_late_until_it_is_planned_again(world: StorageWorld) -> None:
    trigger = {"type": "cron", "schedule": "* * * * *", "timezone": "UTC"}
    agent = await world.agent(compiled={"triggers": [trigger]})
    crons, due = world.storage.crons, world.now - 90_000
    entry = await crons.load(agent.id, "* * * * *", "UTC")
    assert entry is not None
    assert (await world.storage.fleet.census()).overdue_cron_at is None
    assert await crons.plan(entry, due)
    assert (await world.storage.fleet.census()).overdue_cron_at == due

    entry = await crons.load(agent.id, "* * * * *", "UTC")
    assert entry is not None
    assert await crons.plan(entry, world.now + 60_000)
    assert (await world.storage.fleet.census()).overdue_cron_at is None
