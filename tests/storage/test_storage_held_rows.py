"""What the journal does when somebody holds the rows of one tenant: nobody else waits for it."""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from time import monotonic
from typing import Any
from uuid import UUID

import asyncpg
import pytest
import trio
from msgspec.structs import replace

from sexton_storage.errors import StorageUnavailable
from sexton_storage.portal import Portal, open_portal
from sexton_storage.postgres import PostgresSettings, PostgresStorage, open_postgres_storage
from sexton_storage.postgres.journal.lane import UNIT_MAX
from sexton_storage.records.leases import Lease
from sexton_storage.refusals import RUNNER_BUSY, Lost
from sexton_storage.writes import AppendEvent, Claimed, NothingToClaim, Renewed
from tests.worlds.storage import StorageWorld, metered, new_id

OTHERS = 8
ROUNDS = 25
HANGS_S = 60
COUNTS_SLOTS = "SELECT pg_advisory_xact_lock(hashtextextended('slots of ' || $1, 0))"
"""What a node does before it claims for a runner."""
ROWS: dict[str, tuple[str, Callable[[StorageWorld, Lease], UUID]]] = {
    "tenant": ("SELECT FROM tenants WHERE id = $1 FOR UPDATE", lambda world, _: world.tenant_id),
    "agent": ("SELECT FROM agent_heads WHERE zombie_id = $1 FOR UPDATE", lambda _, lease: lease.zombie_id),
    "lease": ("SELECT FROM leases WHERE id = $1 FOR UPDATE", lambda _, lease: lease.id),
}


@pytest.fixture
async def storage(postgres_dsn: str) -> AsyncIterator[PostgresStorage]:
    async with open_postgres_storage(postgres_dsn, settings=PostgresSettings(patience_s=60)) as storage:
        yield storage


@asynccontextmanager
async def held(portal: Portal, dsn: str, query: str, *args: object) -> AsyncIterator[None]:
    """A third party's transaction that has locked rows and does not end."""
    opened: list[asyncpg.Connection] = []

    async def begin() -> None:
        connection = await asyncpg.connect(dsn)
        opened.append(connection)
        await connection.execute("BEGIN")
        await connection.fetch(query, *args)

    await portal.run(begin)
    try:
        yield
    finally:
        await portal.run(lambda: asyncio.wait_for(opened[0].close(), 5), shield=True)


@pytest.mark.parametrize("row", list(ROWS))
async def test_a_row_that_a_third_party_holds_stops_only_its_tenant(
    storage: PostgresStorage, postgres_dsn: str, row: str
) -> None:
    mine = await StorageWorld(storage).found()
    lease = await mine.lease()
    others = [await mine.beside() for _ in range(OTHERS)]
    leases = [await other.lease() for other in others]
    query, key = ROWS[row]
    took: list[float] = []
    renewed: list[Lease] = []

    async def renew_mine() -> None:
        renewed.append((await mine.renew(lease))[0])

    async def go_on(number: int) -> None:
        for _ in range(ROUNDS):
            began = monotonic()
            leases[number], _ = await others[number].renew(leases[number])
            await others[number].append(await others[number].agent())
            took.append(monotonic() - began)

    with trio.fail_after(HANGS_S):
        async with (
            trio.open_nursery() as nursery,
            held(storage._portal, postgres_dsn, query, key(mine, lease)),
        ):
            nursery.start_soon(renew_mine)
            async with trio.open_nursery() as of_others:
                for number in range(OTHERS):
                    of_others.start_soon(go_on, number)

            # The agent's head is not needed for a renewal.
            assert (renewed == []) is (row != "agent")
    assert [r.version for r in renewed] == [lease.version + 1]
    assert await metered(mine, [lease.event_id]) == 100

    took.sort()
    sys.stdout.write(f"{row}: p50 {took[len(took) // 2]:.3f} s, p99 {took[len(took) * 99 // 100]:.3f} s\n")
    assert took[len(took) * 99 // 100] < 2


async def test_the_writes_of_a_tenant_that_was_blocked_are_kept_in_their_order(
    storage: PostgresStorage, postgres_dsn: str
) -> None:
    mine = await StorageWorld(storage).found(250)
    leases = [await mine.lease() for _ in range(4)]
    agent = await mine.agent()
    charged: list[object] = []
    outcomes: list[object] = []
    async with held(storage._portal, postgres_dsn, ROWS["tenant"][0], mine.tenant_id):
        for lease in leases:
            storage.journal.submit(mine.renewal(lease), charged.append)
        other = await mine.beside()
        await other.lease()
        for _ in range(3):
            event = AppendEvent(mine.event_of(agent), b"the same", None, None, ())
            storage.journal.submit(event, outcomes.append)
        await other.lease()

        assert (charged, outcomes) == ([], [])
    while len(outcomes) < 3 or len(charged) < 4:
        await trio.sleep(0.001)

    assert [done.charged_nanos for done in charged if isinstance(done, Renewed)] == [100, 100, 50, 0]
    assert [type(outcome).__name__ for outcome in outcomes] == ["Appended", "Duplicate", "Duplicate"]
    assert storage.journal.statistics().hot.set_aside >= 4


async def test_a_unit_of_many_tenants_waits_for_none_but_the_one_whose_rows_are_held(
    storage: PostgresStorage, postgres_dsn: str
) -> None:
    mine = await StorageWorld(storage).found(150)
    leases = [await mine.lease() for _ in range(2)]
    other = await mine.beside()
    others = [await other.lease() for _ in range(3)]
    names, writes = [], []
    for place in range(3):
        for world, name, its in ((mine, "mine", leases), (other, "other", others)):
            if place < len(its):
                names.append(name)
                writes.append(world.renewal(its[place]))
    heard: list[tuple[int, object]] = []
    before = storage.journal.statistics().hot
    async with held(storage._portal, postgres_dsn, ROWS["tenant"][0], mine.tenant_id):
        storage.journal.submit_unit(
            writes, lambda places, answers: heard.extend(zip(places, answers, strict=True))
        )
        with trio.fail_after(HANGS_S):
            while len(heard) < 3:
                await trio.sleep(0.001)

        assert [names[place] for place, _ in heard] == ["other"] * 3
    with trio.fail_after(HANGS_S):
        while len(heard) < 5:
            await trio.sleep(0.001)

    assert sorted(place for place, _ in heard) == list(range(5))
    assert [done.charged_nanos for _, done in heard if isinstance(done, Renewed)] == [100, 100, 100, 100, 50]

    after = storage.journal.statistics().hot
    assert (after.depth, after.writes - before.writes) == (0, 5)


async def test_a_lease_that_comes_twice_in_a_unit_is_renewed_once(storage: PostgresStorage) -> None:
    mine = await StorageWorld(storage).found()
    lease, other = await mine.lease(), await mine.lease()
    heard: list[tuple[int, object]] = []
    before = storage.journal.statistics().hot.batches
    writes = [mine.renewal(one) for one in (lease, other, lease)]
    storage.journal.submit_unit(
        writes, lambda places, answers: heard.extend(zip(places, answers, strict=True))
    )
    with trio.fail_after(HANGS_S):
        while len(heard) < 3:
            await trio.sleep(0.001)

    assert [(place, type(answer)) for place, answer in heard] == [(0, Renewed), (1, Renewed), (2, Lost)]
    assert storage.journal.statistics().hot.batches == before + 2


async def test_a_unit_is_answered_by_one_call_unless_it_is_very_large(storage: PostgresStorage) -> None:
    mine = await StorageWorld(storage).found(10_000)
    leases = [await mine.lease() for _ in range(3)]
    calls: list[tuple[list[int], list[type]]] = []

    def hear(places: Sequence[int], answers: Sequence[object]) -> None:
        calls.append((list(places), [type(answer) for answer in answers]))

    stale = mine.renewal(replace(leases[1], version=9))
    storage.journal.submit_unit([mine.renewal(leases[0]), stale, mine.renewal(leases[2])], hear)
    # Nobody has these leases, and a request may name as many as it likes of them.
    unknown = [mine.renewal(replace(leases[0], id=new_id())) for _ in range(UNIT_MAX + 1)]
    storage.journal.submit_unit(unknown, hear)
    with trio.fail_after(HANGS_S):
        while len(calls) < 3:
            await trio.sleep(0.001)

    assert calls[0] == ([0, 1, 2], [Renewed, Lost, Renewed])
    assert [places for places, _ in calls[1:]] == [list(range(UNIT_MAX)), [UNIT_MAX]]
    assert {answer for _, answers in calls[1:] for answer in answers} == {Lost}
    assert storage.journal.statistics().hot.depth == 0


async def test_a_journal_that_is_closed_refuses_a_unit_as_a_whole(postgres_dsn: str) -> None:
    async with open_postgres_storage(postgres_dsn) as storage:
        mine = await StorageWorld(storage).found()
        writes = [mine.renewal(await mine.lease()) for _ in range(2)]
    heard: list[tuple[int, object]] = []
    storage.journal.submit_unit(
        writes, lambda places, answers: heard.extend(zip(places, answers, strict=True))
    )
    while not heard:
        await trio.sleep(0.001)

    assert [(place, type(answer)) for place, answer in heard] == [
        (0, StorageUnavailable),
        (1, StorageUnavailable),
    ]


async def test_writes_that_are_blocked_for_too_long_are_refused_and_not_kept(postgres_dsn: str) -> None:
    settings = PostgresSettings(patience_s=0.3, drain_s=1)
    async with open_postgres_storage(postgres_dsn, settings=settings) as storage:
        mine = await StorageWorld(storage).found()
        lease = await mine.lease()
        async with held(storage._portal, postgres_dsn, ROWS["tenant"][0], mine.tenant_id):
            for _ in range(3):
                with pytest.raises(StorageUnavailable, match="somebody holds"):
                    await mine.renew(lease)
        await mine.renew(lease)

        assert await metered(mine, [lease.event_id]) == 100


async def test_many_tenants_that_are_blocked_at_once_are_let_go_at_once(
    storage: PostgresStorage, postgres_dsn: str
) -> None:
    houses = [await StorageWorld(storage).found() for _ in range(40)]
    leases = [await world.lease() for world in houses]
    answers: list[object] = []
    every = "SELECT FROM tenants WHERE id = ANY($1) FOR UPDATE"
    free = await StorageWorld(storage).found()
    async with held(storage._portal, postgres_dsn, every, [world.tenant_id for world in houses]):
        for world, lease in zip(houses, leases, strict=True):
            storage.journal.submit(world.renewal(lease), answers.append)
        for _ in range(10):
            await free.lease()

        assert answers == []
    while len(answers) < len(houses):
        await trio.sleep(0.001)

    assert {type(answer) for answer in answers} == {Renewed}


async def test_closing_tells_the_writers_of_a_blocked_tenant(postgres_dsn: str) -> None:
    answers: list[object] = []
    async with open_portal() as portal:
        async with open_postgres_storage(
            postgres_dsn, settings=PostgresSettings(patience_s=60, drain_s=0.3)
        ) as storage:
            mine = await StorageWorld(storage).found()
            leases = [await mine.lease() for _ in range(3)]
            async with held(portal, postgres_dsn, ROWS["tenant"][0], mine.tenant_id):
                for lease in leases:
                    storage.journal.submit(mine.renewal(lease), answers.append)
                await storage.journal.close()
        assert [type(answer) for answer in answers] == [StorageUnavailable] * 3


async def test_a_runner_whose_slots_another_node_counts_is_left_alone(
    storage: PostgresStorage, postgres_dsn: str
) -> None:
    """Its claims are to be made again; that for another runner holds, though all are of one batch."""
    world = await StorageWorld(storage).found()
    busy, free = world.runner_record(slots=3), world.runner_record(slots=3)
    for runner in (busy, free):
        assert await storage.runners.enrol(runner, enrolment_hash=None)
    agents = [await world.agent() for _ in range(3)]
    for agent in agents:
        await world.append(agent)
    runners = (busy, free, busy)
    claims = [world.claim_of(a, runner_id=r.id) for a, r in zip(agents, runners, strict=True)]

    answers: list[Any] = []
    batches = storage.journal.statistics().hot.batches
    async with held(storage._portal, postgres_dsn, COUNTS_SLOTS, str(busy.id)):
        storage.journal.submit_all([(claim, answers.append) for claim in claims])
        with trio.fail_after(HANGS_S):
            while len(answers) < len(claims):
                await trio.sleep(0.001)
        alone = await storage.journal.write(claims[0])
    again = [await storage.journal.write(claim) for claim in claims[::2]]

    # One batch of three, one of one, and two afterwards.
    assert storage.journal.statistics().hot.batches == batches + 4
    assert [type(answer) for answer in answers] == [NothingToClaim, Claimed, NothingToClaim]
    assert answers[0] == answers[2] == alone == NothingToClaim(RUNNER_BUSY)
    assert [type(answer) for answer in again] == [Claimed, Claimed]
