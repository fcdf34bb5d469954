"""One lane of the journal: while a batch commits, the next collects."""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from contextlib import suppress
from typing import Any
from uuid import UUID

from sexton_storage.clock import NodeClock
from sexton_storage.errors import StorageUnavailable
from sexton_storage.portal import Portal
from sexton_storage.postgres.connections.connection import Connection
from sexton_storage.postgres.connections.outage import Part
from sexton_storage.postgres.connections.settings import PostgresSettings
from sexton_storage.postgres.journal.aside import WORTH_TELLING_S, Aside
from sexton_storage.postgres.journal.committer import Committed, Committer, RowsHeld
from sexton_storage.postgres.journal.frames import News
from sexton_storage.postgres.journal.selection import (
    FORGETTING,
    Done,
    Entry,
    UnitDone,
    Waiting,
    choose,
    fixed_part_s,
    gathering_s,
    one_by_one,
    share,
    size_of,
    unit_of,
    writes_of,
)
from sexton_storage.statistics import LaneStatistics
from sexton_storage.writes import RenewLease, Write

Deliver = Callable[[Sequence[Entry], Sequence[Any], News], None]
"""Tells the writers of a batch, in trio's thread."""
RETRY_LOCK_MS = 20
"""How long the batch of a tenant that was blocked waits for a row: longer than other nodes' batches last."""
FEW = 2
UNIT_MAX = 256
"""Renewals of one unit: a batch may be larger than it should by as many."""
HELD = "somebody holds rows of this tenant in the database"
log = logging.getLogger("sexton.storage")


class Lane:
    """A queue that trio fills and a task of the asyncio thread empties, over a connection of its own."""

    def __init__(
        self,
        lane_id: UUID,
        *,
        portal: Portal,
        connect: Callable[[], Awaitable[Connection]],
        clock: NodeClock,
        settings: PostgresSettings,
        batch_limit: int,
        outage: Part,
        deliver: Deliver,
    ) -> None:
        self._portal = portal
        self._settings = settings
        self._batch_limit = batch_limit
        self._deliver = deliver
        self._queue: deque[Entry] = deque()
        self._came = 0
        """Writes that were put into the queue, and below those that were taken out: one for each thread."""
        self._went = 0
        self._held_back: list[Entry] = []
        self._under_way: Sequence[Entry] = ()
        self._parts: list[Sequence[Entry]] = []
        """What is still to be tried of a batch that met a row which somebody holds."""
        self._aside = Aside()
        self._largest = 0.0
        """The largest batch of late, which is forgotten bit by bit."""
        self._crowd = 0.0
        """How many write at once, of late: those of a batch and those who wait behind it."""
        self._fixed_s = 0.0
        """What a commit takes of late, however small it is."""
        self._asleep = False
        self._wake = asyncio.Event()
        self._closing = False
        self._task: asyncio.Task[None] | None = None
        self._committer = Committer(
            lane_id,
            connect=connect,
            clock=clock,
            settings=settings,
            outage=outage,
            on_pause=self._give_up_the_oldest,
        )

    # --- in trio's thread -----------------------------------------------------------------------------------

    @property
    def is_full(self) -> bool:
        return self._came - self._went >= self._settings.queue_limit

    @property
    def is_closed(self) -> bool:
        return self._closing or self._task is None or self._task.done()

    def put(self, write: Write[Any], done: Done) -> None:
        """Queue a write; the lane must be neither full nor closed."""
        self.put_all(((write, done),))

    def put_all(self, writes: Iterable[tuple[Write[Any], Done]]) -> None:
        """The same for writes that came together: the task finds all of them, or none yet."""
        now = time.monotonic()
        waiting = [Waiting(write, done, now) for write, done in writes]
        self._queue.extend(waiting)
        self._came += len(waiting)
        self._wake_up()

    def put_together(self, writes: Sequence[RenewLease], done: UnitDone) -> None:
        """Queue renewals that came together; the lane must be neither full nor closed."""
        now = time.monotonic()
        for begin in range(0, len(writes), UNIT_MAX):
            places = range(len(writes))[begin : begin + UNIT_MAX]
            self._queue.extend(unit_of(writes[begin : begin + UNIT_MAX], places, done, now))
        self._came += len(writes)
        self._wake_up()

    def _wake_up(self) -> None:
        # The task says that it sleeps before it looks at the queue for the last time, so one of the two sees
        # the other.
        if self._asleep:
            self._asleep = False
            self._portal.send(self._wake.set)

    def statistics(self) -> LaneStatistics:
        tally = self._committer.tally
        return LaneStatistics(
            depth=self._came - self._went + self._behind() + self._aside.count,
            batches=tally.batches,
            writes=tally.writes,
            largest_batch=tally.largest_batch,
            seconds=tally.seconds,
            retries=tally.retries,
            refused=tally.refused,
            settled=tally.settled,
            outages=tally.outages,
            set_aside=tally.set_aside,
            sizes=tally.sizes.statistics(),
            spans=tally.spans.statistics(),
            oldest_s=self._oldest_s(),
        )

    def _behind(self) -> int:
        # Each is copied at once: the other thread may empty it meanwhile.
        return size_of((*self._held_back, *self._under_way))

    def _oldest_s(self) -> float:
        # Each is looked at once: the other thread may empty it meanwhile.
        fronts = [next(iter(tuple(those)), None) for those in (self._under_way, self._held_back)]
        with suppress(IndexError):
            fronts.append(self._queue[0])
        now = time.monotonic()
        return max((now - front.since for front in fronts if front is not None), default=0.0)

    # --- in the asyncio thread ------------------------------------------------------------------------------

    async def open(self) -> None:
        await self._committer.open()
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def close(self) -> None:
        """Take nothing more and finish what is queued, for a bounded time.

        The rest hears StorageUnavailable.
        """
        task = self._task
        if task is None:
            return
        self._closing = True
        self._wake.set()
        await asyncio.wait({task}, timeout=self._settings.drain_s)
        task.cancel()
        await asyncio.wait({task})
        await self._committer.close()

    async def _run(self) -> None:
        try:
            while not (self._closing and not self._queue and not self._held_back and not self._aside):
                if self._aside:
                    await self._try_again()
                if self._queue or self._held_back:
                    if pause_s := gathering_s(self._waiting(), self._largest):
                        await asyncio.sleep(pause_s)
                    await self._commit(self._take())
                else:
                    await self._sleep()
        finally:
            parts = [entry for part in self._parts for entry in part]
            rest = [*self._under_way, *parts, *self._aside.everything(), *self._held_back, *self._queue]
            self._refuse(rest, StorageUnavailable("storage was closed before this was settled"))

    async def _sleep(self) -> None:
        self._wake.clear()
        self._asleep = True
        if self._queue or (self._closing and not self._aside):
            self._asleep = False
            return
        pause_s = min(self._settings.heartbeat_s, self._aside.next_try() - time.monotonic())
        try:
            async with asyncio.timeout(max(0.0, pause_s)):
                await self._wake.wait()
        except TimeoutError:
            self._asleep = False
            if not self._aside:
                await self._committer.look()

    def _waiting(self) -> int:
        return self._came - self._went + size_of(self._held_back)

    def _take(self) -> list[Entry]:
        before = size_of(self._held_back)
        limit = share(max(self._crowd, self._waiting()), self._fixed_s, self._batch_limit)
        taken, self._held_back = choose(deque(self._held_back), self._queue, limit)
        self._went += size_of(taken) + size_of(self._held_back) - before
        return taken

    async def _commit(self, batch: Sequence[Entry]) -> None:
        self._largest = max(size_of(batch), FORGETTING * self._largest)
        self._under_way = batch
        if self._aside:
            batch = await self._divert(one_by_one(batch))
        self._parts.append(batch)
        while self._parts:
            self._under_way = part = self._parts.pop()
            if part and not await self._commit_part(part, None if part is batch else RETRY_LOCK_MS):
                self._parts += await self._split(one_by_one(part))
        self._under_way = ()

    async def _commit_part(self, part: Sequence[Entry], lock_ms: int | None = None) -> bool:
        """Commit and tell; False when somebody holds a row that it needs."""
        writes = writes_of(part)
        began = time.monotonic()
        try:
            committed = await self._committer.commit(writes, lock_ms)
        except RowsHeld:
            return False
        except StorageUnavailable as away:
            committed = Committed([away] * len(writes), ())
        else:
            self._learn(len(writes), time.monotonic() - began)
        self._under_way = ()
        self._tell(part, committed.answers, committed.news)
        return True

    def _learn(self, size: int, took_s: float) -> None:
        self._crowd = max(size + self._waiting(), FORGETTING * self._crowd)
        self._fixed_s += (1 - FORGETTING) * (fixed_part_s(took_s, size) - self._fixed_s)

    # --- writes whose rows somebody else holds --------------------------------------------------------------

    async def _divert(self, batch: Sequence[Waiting]) -> Sequence[Waiting]:
        """Put the writes of tenants that are set aside behind those that wait there; gives the others."""
        places = await self._committer.places_of([w.write for w in batch])
        tenants = [place.tenant_id for place in places]
        self._set_aside([(t, w) for t, w in zip(tenants, batch, strict=True) if t in self._aside])
        return [w for t, w in zip(tenants, batch, strict=True) if t not in self._aside]

    async def _split(self, part: Sequence[Waiting]) -> Sequence[Sequence[Waiting]]:
        """Set the tenants aside whose rows are held, and give the rest; by halves, where none is seen.

        A lock may be on any row that a statement needs: then the halves show whose it is.
        """
        places = await self._committer.places_of([w.write for w in part])
        held = set(await self._committer.held_tenants(places))
        tenants = sorted({place.tenant_id for place in places})
        if not held and len(tenants) == 1:
            held = set(tenants)
        placed = [(place.tenant_id, w) for place, w in zip(places, part, strict=True)]
        self._set_aside([(tenant, w) for tenant, w in placed if tenant in held])
        if held:
            return [[w for tenant, w in placed if tenant not in held]]
        half = set(tenants[: len(tenants) // 2])
        return [[w for tenant, w in placed if (tenant in half) is first] for first in (True, False)]

    def _set_aside(self, placed: Sequence[tuple[UUID, Waiting]]) -> None:
        now = time.monotonic()
        self._committer.tally.set_aside += len(placed)
        for tenant_id, waiting in placed:
            if self._aside.count >= self._settings.queue_limit:
                self._refuse([waiting], StorageUnavailable(HELD))
            else:
                self._aside.add(tenant_id, [waiting], now)

    async def _try_again(self) -> None:
        """Try the writes that were set aside, tenant by tenant, where their time has come."""
        self._refuse(
            self._aside.since_before(time.monotonic() - self._settings.patience_s), StorageUnavailable(HELD)
        )
        due = self._aside.due(time.monotonic())
        held: Collection[UUID] = ()
        if len(due) > FEW:
            # One look at all of them costs less than waiting for each.
            places = await self._committer.places_of([self._aside.peek(t).write for t in due])
            held = await self._committer.held_tenants(places)
        for tenant_id in due:
            self._under_way = part = self._aside.take(tenant_id, self._batch_limit)
            if tenant_id in held or not await self._commit_part(part, RETRY_LOCK_MS):
                if self._aside.blocked(tenant_id, part, time.monotonic()):
                    log.warning(
                        "somebody holds rows of tenant %s: its writes wait, all others go on", tenant_id
                    )
            elif (blocked_s := self._aside.let_go(tenant_id, time.monotonic())) >= WORTH_TELLING_S:
                log.warning("the rows of tenant %s are free again after %.1f s", tenant_id, blocked_s)
            self._under_way = ()

    def _give_up_the_oldest(self) -> None:
        # Called while the database is away: whoever has waited long enough in the queue is not kept waiting
        # for it.
        oldest = time.monotonic() - self._settings.patience_s
        late = []
        while self._queue and self._queue[0].since < oldest:
            late.append(self._queue.popleft())
        self._went += size_of(late)
        self._refuse(late, StorageUnavailable("the database is away"))

    def _refuse(self, entries: Sequence[Entry], error: StorageUnavailable) -> None:
        if entries:
            self._tell(entries, [error] * size_of(entries), ())

    def _tell(self, entries: Sequence[Entry], answers: Sequence[Any], news: News) -> None:
        self._portal.post(lambda: self._deliver(entries, answers, news))
