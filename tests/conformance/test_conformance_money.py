"""However renewals of many leases interleave, the metering rows add up to the money that is gone."""

import time
from collections.abc import Sequence

import pytest
import trio
from hypothesis import HealthCheck, given, settings, strategies as st

from sexton_storage.memory import open_memory_storage
from sexton_storage.postgres import open_postgres_storage
from sexton_storage.records.events import EventStatus
from sexton_storage.records.leases import Lease, LeaseStatus
from sexton_storage.refusals import Lost
from sexton_storage.stores import Storage
from sexton_storage.writes import Ended, EventEnd, Renewed
from tests.thorough import examples
from tests.worlds.storage import StorageWorld, metered

TENANTS = 3
LEASES = 4
"""Of each tenant."""
Step = tuple[int, int, str]
"""Which lease, how many nanos, and what is done with it."""

steps = st.lists(
    st.tuples(
        st.integers(0, TENANTS * LEASES - 1),
        st.one_of(st.just(0), st.integers(0, 50), st.integers(0, 2_000)),
        st.sampled_from(["renew", "renew", "renew", "renew stale", "end", "reclaim"]),
    ),
    max_size=80,
)
balances = st.lists(st.sampled_from([0, 1, 100, 1_000, 10**9]), min_size=TENANTS, max_size=TENANTS)


class Ledger:
    """Leases of a few tenants, with writes submitted one after another and answered by batches."""

    def __init__(
        self, houses: Sequence[StorageWorld], leases: Sequence[Lease], starts: Sequence[int]
    ) -> None:
        self._houses = houses
        self._leases = list(leases)
        self._starts = starts
        self._charged = [0] * len(houses)
        self._pending = 0

    def _house_of(self, index: int) -> StorageWorld:
        return self._houses[index // LEASES]

    def submit(self, step: Step) -> None:
        index, nanos, what = step
        world, lease = self._house_of(index), self._leases[index]
        journal = world.storage.journal
        self._pending += 1
        if what in {"renew", "renew stale"}:
            write = world.renewal(lease, nanos)
            if what == "renew":
                # Submitted in a row, before the last is answered: each builds on the one before.
                self._leases[index] = write.lease
            journal.submit(write, lambda answer: self._hear(index, answer))
            return
        reclaim = what == "reclaim"
        end = EventEnd(EventStatus.RECEIVED if reclaim else EventStatus.PROCESSED)
        status = LeaseStatus.RECLAIMED if reclaim else LeaseStatus.REPORTED
        write_end = world.end_of(lease, end, status=status, nanos=None if reclaim else nanos)
        journal.submit(write_end, lambda answer: self._hear(index, answer))

    def _hear(self, index: int, answer: Renewed | Ended | Lost | Exception) -> None:
        self._pending -= 1
        if isinstance(answer, Renewed | Ended):
            self._charged[index // LEASES] += answer.charged_nanos

    async def settle(self) -> None:
        while self._pending:
            await trio.sleep(0.001)

    async def check(self) -> None:
        for number, world in enumerate(self._houses):
            mine = self._leases[number * LEASES : (number + 1) * LEASES]
            gone = self._starts[number] - await world.balance()
            assert await metered(world, [lease.event_id for lease in mine]) == gone
            assert self._charged[number] == gone
            spends = [await world.storage.zombies.spend(lease.zombie_id, world.now) for lease in mine]
            assert sum(month for _, month in spends) == gone


async def _run(storage: Storage, starts: Sequence[int], todo: Sequence[Step]) -> None:
    houses = [await StorageWorld(storage).found(1) for _ in starts]
    leases = [await world.lease() for world in houses for _ in range(LEASES)]
    for world, start in zip(houses, starts, strict=True):
        # A lease cannot be claimed without money, and a tenant may well run out under way.
        await world.storage.tenants.credit(world.tenant_id, start, "start", "test")
    ledger = Ledger(houses, leases, [start + 1 for start in starts])
    for step in todo:
        ledger.submit(step)
        if step[1] % 7 == 0:
            await trio.lowlevel.checkpoint()
    await ledger.settle()
    await ledger.check()


@given(balances, steps)
def test_rows_and_money_agree_in_memory(starts: list[int], todo: list[Step]) -> None:
    async def run() -> None:
        async with open_memory_storage(clock=lambda: int(time.time() * 1000)) as storage:
            await _run(storage, starts, todo)

    trio.run(run)


@settings(
    max_examples=examples(15), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(balances, steps)
def test_rows_and_money_agree_in_postgresql(postgres_dsn: str, starts: list[int], todo: list[Step]) -> None:
    async def run() -> None:
        # One database for all examples: each brings tenants of its own.
        async with open_postgres_storage(postgres_dsn) as storage:
            await _run(storage, starts, todo)

    trio.run(run)


@pytest.mark.parametrize("storage_dsn", ["postgres"], indirect=True)
async def test_two_nodes_on_one_database_agree_about_the_money(storage_dsn: str, storage: Storage) -> None:
    async with open_postgres_storage(storage_dsn) as other:
        here = await StorageWorld(storage).found(50_000)
        there = StorageWorld(other)
        there.tenant_id, there.workspace_id = here.tenant_id, here.workspace_id
        leases = [await here.lease() for _ in range(12)]
        gone = 0

        async def renew(world: StorageWorld, lease: Lease, times: int) -> None:
            nonlocal gone
            for _ in range(times):
                lease, renewed = await world.renew(lease, 700)
                gone += renewed.charged_nanos

        async with trio.open_nursery() as nursery:
            for number, lease in enumerate(leases):
                nursery.start_soon(renew, (here, there)[number % 2], lease, 8)

        assert gone == 50_000
        assert await metered(here, [lease.event_id for lease in leases]) == 50_000
        assert await there.balance() == 0
