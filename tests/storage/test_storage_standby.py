"""What was acknowledged with a synchronous standby outlives the primary, however its commit was cut off."""

import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import trio

from sexton_storage.errors import StorageUnavailable
from sexton_storage.postgres import PostgresSettings, PostgresStorage, open_postgres_storage
from sexton_storage.postgres.journal import committer
from sexton_storage.writes import AppendEvent
from tests.patience import PATIENCE_S
from tests.thorough import THOROUGH, amount
from tests.worlds.storage import StorageWorld, metered
from tests.worlds.synchronous_pair import SynchronousPair, open_synchronous_pair

PATIENT = PostgresSettings(patience_s=30, drain_s=1, heartbeat_s=600)
WRITERS = 4
BEFORE = AFTER = amount(50, 2_000, variable="SEXTON_FAIL_OVER_WRITES")
WAITING = """
SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND pid <> pg_backend_pid()
"""
CANCEL = "SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
TERMINATE = CANCEL.replace("cancel", "terminate")
SESSIONS = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
ATTEMPTS, BRIEF_S = 12, 0.5


@pytest.fixture
async def pair() -> AsyncIterator[SynchronousPair]:
    with tempfile.TemporaryDirectory(prefix="sx") as folder:
        async with open_synchronous_pair(Path(folder)) as pair:
            yield pair


@pytest.fixture
async def storage(pair: SynchronousPair) -> AsyncIterator[PostgresStorage]:
    async with open_postgres_storage(pair.dsn, settings=PATIENT) as storage:
        yield storage


async def test_a_commit_whose_wait_for_the_standby_is_cut_off_is_told_when_the_standby_has_it(
    pair: SynchronousPair, storage: PostgresStorage
) -> None:
    world = await StorageWorld(storage).found()
    lease = await world.lease()
    before = await world.balance()
    told: list[Any] = []

    async def renew() -> None:
        told.append((await world.renew(lease, 7))[1].charged_nanos)

    async def credit() -> None:
        credited = await storage.tenants.credit(world.tenant_id, 5, "gift", "user:1")
        told.append(None if credited is None else credited.balance_nanos)

    for cut, act in ((CANCEL, renew), (TERMINATE, credit)):
        pair.standby.freeze()
        known = len(told)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(act)
            await pair.primary.until(WAITING)
            assert await pair.primary.ask(cut) == 1
            # The look at what became of it is a write, and waits for the standby as well.
            await pair.primary.until(WAITING)
            assert len(told) == known
            pair.standby.thaw()

    assert told == [7, before - 7 + 5]
    assert await metered(world, [lease.event_id]) == 7


async def test_a_standby_that_stays_away_costs_no_session_for_each_attempt(
    pair: SynchronousPair, storage: PostgresStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = await StorageWorld(storage).found()
    lease = await world.lease()
    monkeypatch.setattr(committer, "GIVE_UP_S", BRIEF_S)
    pair.standby.freeze()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(world.renew, lease, 7)
        await pair.primary.until(WAITING)
        await trio.sleep(ATTEMPTS * BRIEF_S)
        waiting = await pair.primary.ask(SESSIONS)
        pair.standby.thaw()

    # The one whose commit waits, and the one that waits for it.
    assert waiting <= ATTEMPTS // 3


class Writers:
    """They append events and give credit until they are told to stop, and remember what was acknowledged."""

    def __init__(self, world: StorageWorld) -> None:
        self._world = world
        self.appended: list[Any] = []
        self.credited = 0
        self.errors: Counter[str] = Counter()
        self.longest_s = 0.0
        self.stop = False

    async def write(self) -> None:
        agent = await self._world.agent()
        storage = self._world.storage
        last = time.monotonic()
        while not self.stop:
            event = self._world.event_of(agent)
            try:
                await storage.journal.write(AppendEvent(event, None, None, None, ()))
                self.appended.append(event.id)
                await storage.tenants.credit(self._world.tenant_id, 1, "gift", "user:1")
                self.credited += 1
            except StorageUnavailable as error:
                self.errors[type(error).__name__] += 1
            else:
                self.longest_s = max(self.longest_s, time.monotonic() - last)
                last = time.monotonic()

    async def until_acknowledged(self, count: int) -> None:
        goal = len(self.appended) + count
        with trio.fail_after(PATIENCE_S):
            while len(self.appended) < goal:
                await trio.sleep(0.01)


FROZEN = pytest.param(
    "frozen",
    marks=pytest.mark.skipif(not THOROUGH, reason="in make test-thorough: it waits for the frozen primary"),
)


@pytest.mark.parametrize("how", ["killed", FROZEN])
async def test_nothing_acknowledged_is_lost_when_the_standby_takes_over(
    pair: SynchronousPair, storage: PostgresStorage, how: str
) -> None:
    world = await StorageWorld(storage).found()
    before = await world.balance()
    writers = Writers(world)

    async with trio.open_nursery() as nursery:
        for _ in range(WRITERS):
            nursery.start_soon(writers.write)
        await writers.until_acknowledged(BEFORE)
        (pair.primary.kill if how == "killed" else pair.primary.freeze)()
        await pair.standby.promote()
        await writers.until_acknowledged(AFTER)
        if how == "frozen":
            # It takes connections again, and would take writes; nobody who was on the new one goes back.
            pair.primary.thaw()
        await writers.until_acknowledged(AFTER)
        writers.stop = True

    kept = await pair.standby.ask("SELECT count(*) FROM events WHERE id = ANY($1::uuid[])", writers.appended)
    credited = await world.balance() - before
    sys.stdout.write(
        f"{how}: lost {len(writers.appended) - kept} of {len(writers.appended)} acknowledged events and"
        f" {max(0, writers.credited - credited)} of {writers.credited} credits, longest gap"
        f" {writers.longest_s:.1f} s, errors {dict(writers.errors)}\n"
    )

    assert kept == len(writers.appended)
    # One that was not acknowledged may have been kept.
    assert writers.credited <= credited <= writers.credited + sum(writers.errors.values())
