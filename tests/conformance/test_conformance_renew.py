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
from tests.conformance.house import HOUR_MS, RICH, House


async def test_a_renewal_moves_the_lease_and_meters_the_slice(house: House) -> None:
    lease = await house.lease()
    write = house.renewal(lease, 700)
    answer = await house.storage.journal.write(write)
    assert answer == Renewed(700, RICH - 700, 700, 700)
    assert await house.storage.leases.load(lease.id) == write.lease
    assert await house.storage.metering.list(house.tenant_id, lease.event_id) == [
        MeteringPeriod(lease.event_id, 1, 1, 10, 2, 5, 1_000, 700, 0, 700, write.now)
    ]
    assert await house.balance() == RICH - 700
    assert await house.storage.zombies.spend(lease.zombie_id, write.now) == (700, 700)


async def test_run_fee_and_tokens_are_charged_together(house: House) -> None:
    lease = await house.lease()
    part = Slice(1, 0, 0, 0, 0, 30, 12)
    answer = await house.storage.journal.write(replace(house.renewal(lease), slice=part))
    assert isinstance(answer, Renewed)
    assert answer.charged_nanos == 42


async def test_renewals_follow_one_another(house: House) -> None:
    lease = await house.lease()
    for number in range(1, 6):
        lease, renewed = await house.renew(lease, 10)
        assert renewed.spent_day_nanos == 10 * number
    rows = await house.storage.metering.list(house.tenant_id, lease.event_id)
    assert [row.slice_seq for row in rows] == [1, 2, 3, 4, 5]
    running = await house.storage.events.load(lease.event_id)
    assert running is not None
    assert running.charged_nanos == 50
    (listed,) = await house.storage.events.list(house.workspace_id, limit=5)
    assert listed.charged_nanos == 50


async def test_a_renewal_at_another_version_is_lost_and_changes_nothing(house: House) -> None:
    lease = await house.lease()
    stale = house.renewal(lease)
    lease, _ = await house.renew(lease)
    balance = await house.balance()
    assert isinstance(await house.storage.journal.write(stale), Lost)
    assert await house.storage.leases.load(lease.id) == lease
    assert await house.balance() == balance
    assert len(await house.storage.metering.list(house.tenant_id, lease.event_id)) == 1


async def test_of_two_renewals_at_one_version_one_wins(house: House) -> None:
    lease = await house.lease()
    answers: list[Renewed | Lost] = []

    async def renew(write: RenewLease) -> None:
        answers.append(await house.storage.journal.write(write))

    async with trio.open_nursery() as nursery:
        for _ in range(2):
            nursery.start_soon(renew, house.renewal(lease))
    assert sorted(type(a).__name__ for a in answers) == ["Lost", "Renewed"]
    assert len(await house.storage.metering.list(house.tenant_id, lease.event_id)) == 1


async def test_an_expired_lease_cannot_be_renewed(house: House) -> None:
    lease = await house.lease(term_ms=0)
    assert isinstance(await house.storage.journal.write(house.renewal(lease)), Lost)
    assert await house.storage.leases.load(lease.id) == lease


async def test_an_ended_lease_cannot_be_renewed(house: House) -> None:
    lease = await house.lease()
    await house.end(lease, EventEnd(EventStatus.PROCESSED))
    assert isinstance(await house.storage.journal.write(house.renewal(lease)), Lost)
    late = house.renewal(replace(lease, version=lease.version + 1))
    assert isinstance(await house.storage.journal.write(late), Lost)


async def test_an_unknown_lease_cannot_be_renewed(house: House) -> None:
    lease = await house.lease()
    await house.storage.zombies.delete(lease.zombie_id)
    assert isinstance(await house.storage.journal.write(house.renewal(lease)), Lost)


async def test_a_lease_that_is_to_be_cancelled_is_renewed_and_stays_marked(house: House) -> None:
    lease = await house.lease()
    await house.storage.journal.write(CancelEvent(lease.zombie_id, lease.event_id, house.now, ()))
    assert isinstance(await house.storage.journal.write(house.renewal(lease)), Lost)
    marked = await house.storage.leases.load(lease.id)
    assert marked is not None
    assert marked.status is LeaseStatus.CANCELLING
    await house.renew(marked)
    renewed = await house.storage.leases.load(lease.id)
    assert renewed is not None
    assert renewed.status is LeaseStatus.CANCELLING


async def test_what_is_charged_ends_where_the_money_does(house: House) -> None:
    poor = await house.beside(balance=250)
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


async def test_slices_of_a_tenant_are_paid_in_the_order_they_came(house: House) -> None:
    poor = await house.beside(balance=1_000)
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


async def test_a_renewal_and_a_report_of_one_tenant_are_paid_in_the_order_they_came(house: House) -> None:
    poor = await house.beside(balance=100)
    first, second = await poor.lease(), await poor.lease()
    answers: list[object] = []
    poor.storage.journal.submit(poor.end_of(first, EventEnd(EventStatus.PROCESSED), nanos=80), answers.append)
    poor.storage.journal.submit(poor.renewal(second, 80), answers.append)
    while len(answers) < 2:
        await trio.sleep(0.001)
    assert [getattr(a, "charged_nanos", None) for a in answers] == [80, 20]


async def test_credit_lifts_exhaustion(house: House) -> None:
    poor = await house.beside(balance=10)
    lease = await poor.lease()
    lease, _ = await poor.renew(lease, 50)
    tenant = await poor.storage.tenants.credit(poor.tenant_id, 1_000, "top-up", "user:1")
    assert tenant is not None
    assert (tenant.balance_nanos, tenant.exhausted_at) == (1_000, None)
    _, renewed = await poor.renew(lease, 50)
    assert renewed.charged_nanos == 50


async def test_spend_is_counted_by_utc_day_and_month(house: House) -> None:
    last_of_month = int(datetime(2024, 11, 30, 23, 59, tzinfo=UTC).timestamp() * 1000)
    first_of_month = last_of_month + HOUR_MS
    second_of_month = first_of_month + 24 * HOUR_MS
    lease = await house.lease()
    spent = []
    for now in (last_of_month, first_of_month, second_of_month):
        write = replace(house.renewal(lease, 100), now=now)
        answer = await house.storage.journal.write(write)
        assert isinstance(answer, Renewed)
        spent.append((answer.spent_day_nanos, answer.spent_month_nanos))
        lease = write.lease
    assert spent == [(100, 100), (100, 100), (100, 200)]
    assert await house.storage.zombies.spend(lease.zombie_id, second_of_month) == (100, 200)
    assert await house.storage.zombies.spend(lease.zombie_id, last_of_month) == (100, 100)


async def test_a_slice_that_is_there_already_is_refused(house: House) -> None:
    lease = await house.lease()
    renewed, _ = await house.renew(lease)
    again = replace(house.renewal(renewed), slice=house.slice_of(lease, 5))
    assert isinstance(await _answer(house, again), RowRefused)
    assert await house.storage.leases.load(lease.id) == renewed


async def test_a_slice_out_of_range_hurts_only_its_own_writer(house: House) -> None:
    leases: list[Lease] = [await house.lease() for _ in range(6)]
    answers: dict[int, object] = {}
    for i, lease in enumerate(leases):
        write = house.renewal(lease, 2**70 if i == 2 else -5 if i == 4 else 10)

        def done(answer: object, i: int = i) -> None:
            answers[i] = answer

        house.storage.journal.submit(write, done)
    while len(answers) < len(leases):
        await trio.sleep(0.001)
    kinds = [type(answers[i]).__name__ for i in range(6)]
    assert kinds == ["Renewed", "Renewed", "RowRefused", "Renewed", "RowRefused", "Renewed"]
    assert await house.balance() == RICH - 40


async def _answer(house: House, write: RenewLease) -> object:
    try:
        return await house.storage.journal.write(write)
    except RowRefused as refused:
        return refused
