"""One lane of the journal: while a batch commits, the next collects."""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple
from uuid import UUID

from sexton_storage.clock import NodeClock
from sexton_storage.portal import Portal
from sexton_storage.postgres.batch import TOUCHED
from sexton_storage.postgres.committer import Committed, Committer
from sexton_storage.postgres.connection import Connection
from sexton_storage.postgres.hot_frames import News
from sexton_storage.postgres.outage import Part
from sexton_storage.postgres.settings import PostgresSettings
from sexton_storage.statistics import LaneStatistics
from sexton_storage.stores import StorageUnavailable
from sexton_storage.writes import Write

Done = Callable[[Any], None]
Deliver = Callable[[Sequence[Done], Sequence[Any], News], None]
"""Tells the writers of a batch, in trio's thread."""
LOOK_AHEAD = 4
"""Batches' worth of queue that is searched for writes which do not stand in each other's way."""
GATHER_S = 0.001
"""How long a lane that has been busy waits for the writes that the last commit set free to come."""
CROWD = 8
"""From so many writes a batch on it pays: a batch costs as much as eight or so of its writes do."""
FORGETTING = 0.9
"""What is left of a crowd with each batch that is smaller."""
log = logging.getLogger("sexton.storage")


def gathering_s(queued: int, crowd: float) -> float:
    """Tell how long to wait for more writes before a batch begins, in seconds.

    Those who were told of a commit come back within the next moments, if they come back. A batch that takes
    the first of them alone makes all others wait for it. Who is alone is never kept waiting; the idea is that
    of PostgreSQL's ``commit_delay`` and ``commit_siblings``.

    >>> (
    ...     gathering_s(queued=1, crowd=1.0),
    ...     gathering_s(queued=2, crowd=32.0),
    ...     gathering_s(queued=20, crowd=32.0),
    ... )
    (0.0, 0.001, 0.0)
    """
    return GATHER_S if crowd >= CROWD and queued < crowd / 2 else 0.0


class Waiting(NamedTuple):
    """A write in the queue, who is to be told, and when it came (monotonic seconds)."""

    write: Write[Any]
    done: Done
    since: float


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
        self._queue: deque[Waiting] = deque()
        self._held_back: list[Waiting] = []
        self._under_way: Sequence[Waiting] = ()
        self._crowd = 0.0
        """How many write at once: the largest batch of late, which is forgotten bit by bit."""
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
        return len(self._queue) >= self._settings.queue_limit

    @property
    def is_closed(self) -> bool:
        return self._closing or self._task is None or self._task.done()

    def put(self, write: Write[Any], done: Done) -> None:
        """Queue a write; the lane must be neither full nor closed."""
        self._queue.append(Waiting(write, done, time.monotonic()))
        # The task says that it sleeps before it looks at the queue for the last time, so one of the two sees
        # the other.
        if self._asleep:
            self._asleep = False
            self._portal.send(self._wake.set)

    def statistics(self) -> LaneStatistics:
        tally = self._committer.tally
        return LaneStatistics(
            depth=len(self._queue) + len(self._held_back) + len(self._under_way),
            batches=tally.batches,
            writes=tally.writes,
            largest_batch=tally.largest_batch,
            seconds=tally.seconds,
            retries=tally.retries,
            refused=tally.refused,
            settled=tally.settled,
            outages=tally.outages,
            sizes=tally.sizes.statistics(),
            spans=tally.spans.statistics(),
            oldest_s=self._oldest_s(),
        )

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
            while not (self._closing and not self._queue and not self._held_back):
                if self._queue or self._held_back:
                    if pause_s := gathering_s(len(self._queue) + len(self._held_back), self._crowd):
                        await asyncio.sleep(pause_s)
                    await self._commit(self._take())
                else:
                    await self._sleep()
        finally:
            rest = [*self._under_way, *self._held_back, *self._queue]
            self._refuse(rest, StorageUnavailable("storage was closed before this was settled"))

    async def _sleep(self) -> None:
        self._wake.clear()
        self._asleep = True
        if self._queue or self._closing:
            self._asleep = False
            return
        try:
            async with asyncio.timeout(self._settings.heartbeat_s):
                await self._wake.wait()
        except TimeoutError:
            self._asleep = False
            await self._committer.look()

    def _take(self) -> list[Waiting]:
        """Take a batch in which no two writes are about the same thing.

        The later of those two waits for the next.
        """
        taken: list[Waiting] = []
        alone: set[Hashable] = set()
        shared: set[Hashable] = set()
        back: list[Waiting] = []
        earlier, self._held_back = deque(self._held_back), back
        while len(taken) < self._batch_limit and len(back) < LOOK_AHEAD * self._batch_limit:
            if not (earlier or self._queue):
                break
            waiting = earlier.popleft() if earlier else self._queue.popleft()
            touched = TOUCHED[type(waiting.write)](waiting.write)
            if alone.isdisjoint(touched.alone + touched.shared) and shared.isdisjoint(touched.alone):
                taken.append(waiting)
            else:
                back.append(waiting)
            alone.update(touched.alone)
            shared.update(touched.shared)
        back.extend(earlier)
        return taken

    async def _commit(self, batch: Sequence[Waiting]) -> None:
        self._under_way = batch
        self._crowd = max(len(batch), FORGETTING * self._crowd)
        try:
            committed = await self._committer.commit([w.write for w in batch])
        except StorageUnavailable as away:
            committed = Committed([away] * len(batch), ())
        self._under_way = ()
        self._tell([w.done for w in batch], committed.answers, committed.news)

    def _give_up_the_oldest(self) -> None:
        # Called while the database is away: whoever has waited long enough in the queue is not kept waiting
        # for it.
        oldest = time.monotonic() - self._settings.patience_s
        late = []
        while self._queue and self._queue[0].since < oldest:
            late.append(self._queue.popleft())
        self._refuse(late, StorageUnavailable("the database is away"))

    def _refuse(self, writes: Sequence[Waiting], error: StorageUnavailable) -> None:
        if writes:
            self._tell([w.done for w in writes], [error] * len(writes), ())

    def _tell(self, dones: Sequence[Done], answers: Sequence[Any], news: News) -> None:
        self._portal.post(lambda: self._deliver(dones, answers, news))
