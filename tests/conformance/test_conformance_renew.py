"""How a lease is renewed and paid for."""

from datetime import UTC, datetime

import trio
from msgspec.structs import replace

from sexton_storage.errors import RowRefused
from sexton_storage.records.events import EventStatus
from sexton_storage.records.leases import Lease, LeaseStatus
from sexton_storage.records.metering import MeteringPeriod, Slice
from sexton_storage.refusals import Lost
from sexton_storage.writes import CancelEvent, EventEnd, Renewed, RenewLease
from tests.worlds.storage import HOUR_MS, RICH, StorageWorld


async def test_a_renewal_moves_the_lease_and_meters_the_slice(world: StorageWorld) -> None:
    lease = await world.lease()
    write = world.renewal(lease, 700)
    answer = await world.storage.journal.write(write)

    assert answer == Renewed(700, RICH - 700, 700, 700)
    assert await world.storage.leases.load(lease.id) == write.lease
    assert await world.storage.metering.list(world.tenant_id, lease.event_id) == [
        MeteringPeriod(lease.event_id, 1, 1, 10, 2, 5, 1_000, 700, 0, 700, write.now)
    ]
    assert await world.balance() == RICH - 700
    assert await world.storage.zombies.spend(lease.zombie_id, write.now) == (700, 700)


async def test_run_fee_and_tokens_are_charged_together(world: StorageWorld) -> None:
    lease = await world.lease()
    part = Slice(1, 0, 0, 0, 0, 30, 12)
    answer = await world.storage.journal.write(replace(world.renewal(lease), slice=part))

    assert isinstance(answer, Renewed)
    assert answer.charged_nanos == 42


async def test_renewals_follow_one_another(world: StorageWorld) -> None:
    lease = await world.lease()
    for number in range(1, 6):
        lease, renewed = await world.renew(lease, 10)
        assert renewed.spent_day_nanos == 10 * number
    rows = await world.storage.metering.list(world.tenant_id, lease.event_id)
    assert [row.slice_seq for row in rows] == [1, 2, 3, 4, 5]

    running = await world.storage.events.load(lease.event_id)
    assert running is not None
    assert running.charged_nanos == 50

    (listed,) = await world.storage.events.list(world.workspace_id, limit=5)
    assert listed.charged_nanos == 50


async def test_a_renewal_at_another_version_is_lost_and_changes_nothing(world: StorageWorld) -> None:
    lease = await world.lease()
    stale = world.renewal(lease)
    lease, _ = await world.renew(lease)
    balance = await world.balance()

    assert isinstance(await world.storage.journal.write(stale), Lost)
    assert await world.storage.leases.load(lease.id) == lease
    assert await world.balance() == balance
    assert len(await world.storage.metering.list(world.tenant_id, lease.event_id)) == 1


async def test_of_two_renewals_at_one_version_one_wins(world: StorageWorld) -> None:
    lease = await world.lease()
    answers: list[Renewed | Lost] = []

    async def renew(write: RenewLease) -> None:
        answers.append(await world.storage.journal.write(write))

    async with trio.open_nursery() as nursery:
        for _ in range(2):
            nursery.start_soon(renew, world.renewal(lease))

    assert sorted(type(a).__name__ for a in answers) == ["Lost", "Renewed"]
    assert len(await world.storage.metering.list(world.tenant_id, lease.event_id)) == 1


async def test_an_expired_lease_cannot_be_renewed(world: StorageWorld) -> None:
    lease = await world.lease(term_ms=0)

    assert isinstance(await world.storage.journal.write(world.renewal(lease)), Lost)
    assert await world.storage.leases.load(lease.id) == lease


async def test_an_ended_lease_cannot_be_renewed(world: StorageWorld) -> None:
    lease = await world.lease()
    await world.end(lease, EventEnd(EventStatus.PROCESSED))
    assert isinstance(await world.storage.journal.write(world.renewal(lease)), Lost)

    late = world.renewal(replace(lease, version=lease.version + 1))
    assert isinstance(await world.storage.journal.write(late), Lost)


async def test_an_unknown_lease_cannot_be_renewed(world: StorageWorld) -> None:
    lease = await world.lease()
    await world.storage.zombies.delete(lease.zombie_id)

    assert isinstance(await world.storage.journal.write(world.renewal(lease)), Lost)


async def test_a_lease_that_is_to_be_cancelled_is_renewed_and_stays_marked(world: StorageWorld) -> None:
    lease = await world.lease()
    await world.storage.journal.write(CancelEvent(lease.zombie_id, lease.event_id, world.now, ()))
    assert isinstance(await world.storage.journal.write(world.renewal(lease)), Lost)

    marked = await world.storage.leases.load(lease.id)
    assert marked is not None
    assert marked.status is LeaseStatus.CANCELLING

    await world.renew(marked)
    renewed = await world.storage.leases.load(lease.id)
    assert renewed is not None
    assert renewed.status is LeaseStatus.CANCELLING


async def test_what_is_charged_ends_where_the_money_does(world: StorageWorld) -> None:
    poor = await world.beside(balance=250)
    lease = await poor.lease()
    lease, first = await poor.renew(lease, 100)
    lease, second = await poor.renew(lease, 200)
    lease, third = await poor.renew(lease, 200)
    assert [r.charged_nanos for r in (first, second, third)] == [100, 150, 0]
    assert [r.balance_nanos for r in (first, second, third)] == [150, 0, 0]
    assert third.spent_day_nanos == 250

    tenant = await poor.storage.tenants.load(poor.tenant_id)
    assert tenant is not None
    assert tenant.exhausted_at is not None


async def test_slices_of_a_tenant_are_paid_in_the_order_they_came(world: StorageWorld) -> None:
    poor = await world.beside(balance=1_000)
    leases = [await poor.lease() for _ in range(8)]
    answers: dict[int, object] = {}
    for i, lease in enumerate(leases):
        write = poor.renewal(lease, 150 + i)

        def done(answer: object, i: int = i) -> None:
            answers[i] = answer

        poor.storage.journal.submit(write, done)
    while len(answers) < len(leases):
        await trio.sleep(0.001)
    charged, left = [], 1_000
    for i in range(len(leases)):
        charged.append(min(150 + i, left))
        left -= charged[-1]
        answer = answers[i]
        assert isinstance(answer, Renewed)
        assert (answer.charged_nanos, answer.balance_nanos) == (charged[i], left)

    assert await poor.balance() == 0
    assert charged[-1] == 0


async def test_a_renewal_and_a_report_of_one_tenant_are_paid_in_the_order_they_came(
    world: StorageWorld,
) -> None:
    poor = await world.beside(balance=100)
    first, second = await poor.lease(), await poor.lease()
    answers: list[object] = []
    poor.storage.journal.submit(poor.end_of(first, EventEnd(EventStatus.PROCESSED), nanos=80), answers.append)
    poor.storage.journal.submit(poor.renewal(second, 80), answers.append)
    while len(answers) < 2:
        await trio.sleep(0.001)

    assert [getattr(a, "charged_nanos", None) for a in answers] == [80, 20]


async def test_credit_lifts_exhaustion(world: StorageWorld) -> None:
    poor = await world.beside(balance=10)
    lease = await poor.lease()
    lease, _ = await poor.renew(lease, 50)
    tenant = await poor.storage.tenants.credit(poor.tenant_id, 1_000, "top-up", "user:1")
    assert tenant is not None
    assert (tenant.balance_nanos, tenant.exhausted_at) == (1_000, None)

    _, renewed = await poor.renew(lease, 50)
    assert renewed.charged_nanos == 50


async def test_spend_is_counted_by_utc_day_and_month(world: StorageWorld) -> None:
    last_of_month = int(datetime(2024, 11, 30, 23, 59, tzinfo=UTC).timestamp() * 1000)
    first_of_month = last_of_month + HOUR_MS
    second_of_month = first_of_month + 24 * HOUR_MS
    lease = await world.lease()
    spent = []
    for now in (last_of_month, first_of_month, second_of_month):
        write = replace(world.renewal(lease, 100), now=now)
        answer = await world.storage.journal.write(write)
        assert isinstance(answer, Renewed)
        spent.append((answer.spent_day_nanos, answer.spent_month_nanos))
        lease = write.lease

    assert spent == [(100, 100), (100, 100), (100, 200)]
    assert await world.storage.zombies.spend(lease.zombie_id, second_of_month) == (100, 200)
    assert await world.storage.zombies.spend(lease.zombie_id, last_of_month) == (100, 100)


async def test_a_slice_that_is_there_already_is_refused(world: StorageWorld) -> None:
    lease = await world.lease()
    renewed, _ = await world.renew(lease)
    again = replace(world.renewal(renewed), slice=world.slice_of(lease, 5))

    assert isinstance(await _answer(world, again), RowRefused)
    assert await world.storage.leases.load(lease.id) == renewed


async def test_a_slice_out_of_range_hurts_only_its_own_writer(world: StorageWorld) -> None:
    leases: list[Lease] = [await world.lease() for _ in range(6)]
    answers: dict[int, object] = {}
    for i, lease in enumerate(leases):
        write = world.renewal(lease, 2**70 if i == 2 else -5 if i == 4 else 10)

        def done(answer: object, i: int = i) -> None:
            answers[i] = answer

        world.storage.journal.submit(write, done)
    while len(answers) < len(leases):
        await trio.sleep(0.001)
    kinds = [type(answers[i]).__name__ for i in range(6)]

    assert kinds == ["Renewed", "Renewed", "RowRefused", "Renewed", "RowRefused", "Renewed"]
    assert await world.balance() == RICH - 40


async def _answer(world: StorageWorld, write: RenewLease) -> object:
    try:
        return await world.storage.journal.write(write)
    except RowRefused as refused:
        return refused
