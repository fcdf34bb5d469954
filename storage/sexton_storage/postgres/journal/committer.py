"""Commits batches, one after the other, and never guesses what became of one."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

import asyncpg

from sexton_storage.clock import NodeClock, monotonic_ms
from sexton_storage.errors import RowRefused, StorageUnavailable
from sexton_storage.postgres.connections.bounds import GIVE_UP_S
from sexton_storage.postgres.connections.connection import (
    CommitWarnings,
    Connection,
    Failure,
    failure_of,
)
from sexton_storage.postgres.connections.dial import FORGET_PLANS
from sexton_storage.postgres.connections.outage import Part, one_line
from sexton_storage.postgres.connections.settings import BACKOFF_FIRST_S, BACKOFF_MAX_S, PostgresSettings
from sexton_storage.postgres.journal.batch import FUNCTIONS, PREPARE, Batch, BatchMark
from sexton_storage.postgres.journal.frames import News
from sexton_storage.postgres.journal.held_rows import NOBODY, Place, held_tenants, places_of
from sexton_storage.spread import BATCH_BOUNDS, SHORT_BOUNDS, Spread
from sexton_storage.writes import Write

R = TypeVar("R")
REPLAN_BATCHES = 1024
CLOCK_EVERY_MS = 1000.0
"""How often a busy lane asks for the database's time; an idle one asks at its heartbeat."""
MAX_TRANSIENT = 8
"""Times a batch runs again after deadlocks and the like."""
# The old backend may still be at work on a transaction whose connection we lost: its lock on the lane's row
# is waited for, and then the row holds the number of the last batch that committed. (A transaction id would
# not do: after a crash the id of a transaction that was lost can be given to another, which commits.)
# That the row is visible does not mean that a synchronous standby has it: the commit's wait may have been cut
# off. So the look is a write, whose own commit waits for the standby: the log of writes is sent in order.
_SETTLE = "UPDATE journal_lanes SET at = at WHERE id = $1 RETURNING batch"
_CLOCK = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::float8"
log = logging.getLogger("sexton.storage")


@dataclass(slots=True)
class Tally:
    """What a lane has done since it was opened; see ``statistics.LaneStatistics``."""

    batches: int = 0
    writes: int = 0
    largest_batch: int = 0
    seconds: float = 0.0
    retries: int = 0
    refused: int = 0
    settled: int = 0
    outages: int = 0
    set_aside: int = 0
    sizes: Spread = field(default_factory=lambda: Spread(BATCH_BOUNDS))
    spans: Spread = field(default_factory=lambda: Spread(SHORT_BOUNDS))


def _replans(batches: int) -> bool:
    """Whether the plans are made again before this batch, for tables that have grown since.

    A kept plan is one for the tables as they were; while they are young they double within seconds.

    >>> [n for n in range(5000) if _replans(n)][:8], _replans(2048), _replans(2049)
    ([1, 2, 4, 8, 16, 32, 64, 128], True, False)
    """
    return batches > 0 and (batches & (batches - 1) == 0 or batches % REPLAN_BATCHES == 0)


async def _can_make(connection: Connection, functions: str) -> bool:
    """Make functions of the session; False where the role has no right to them (``TEMPORARY``)."""
    # They are rows of the catalogue, and their commit would wait for a synchronous standby. While that is
    # away, each attempt would leave a session behind that waits, until the server has no more.
    try:
        await connection.execute(f"BEGIN;SET LOCAL synchronous_commit = off;{functions};COMMIT")
    except asyncpg.InsufficientPrivilegeError:
        await connection.execute("ROLLBACK")
        return False
    return True


class RowsHeld(Exception):
    """Somebody holds a row that the batch needs, and does not let it go."""


class Committed(NamedTuple):
    answers: Sequence[Any]
    """One a write: its value, or the error that its writer gets."""
    news: News


class _Patience:
    """Pauses that grow, until a time that was set at the first."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._until: float | None = None
        self._pause = BACKOFF_FIRST_S

    async def pause(self) -> bool:
        """Wait a little; False when there is no time left."""
        now = asyncio.get_running_loop().time()
        if self._until is None:
            self._until = now + self._seconds
        if now >= self._until:
            return False
        await asyncio.sleep(min(self._pause, self._until - now))
        self._pause = min(2 * self._pause, BACKOFF_MAX_S)
        return True


class Committer:
    """One connection, kept open, opened again when it is lost. Lives in the asyncio thread."""

    def __init__(
        self,
        lane_id: UUID,
        *,
        connect: Callable[[], Awaitable[Connection]],
        clock: NodeClock,
        settings: PostgresSettings,
        outage: Part,
        on_pause: Callable[[], None],
    ) -> None:
        self.tally = Tally()
        self._id = lane_id
        self._connect = connect
        self._clock = clock
        self._settings = settings
        self._on_pause = on_pause
        self._connection: Connection | None = None
        self._warnings = CommitWarnings()
        self._numbers = count(1)
        self._committing = False
        self._has_functions = False
        """Whether the session has the functions that commit a batch in one message."""
        self._asked_time = 0.0
        self._outage = outage

    async def open(self) -> None:
        """Connect and ask for the time; raises what asyncpg raises."""
        await self._ask_time(await self._ready())

    async def close(self) -> None:
        """Take the lane's row away and hang up, if the database is there."""
        try:
            async with asyncio.timeout(2):
                connection = await self._ready()
                await connection.execute("DELETE FROM journal_lanes WHERE id = $1", self._id)
                await connection.close()
        except Exception:  # noqa: BLE001 - a row too many does no harm, and is swept
            self._drop()

    async def look(self) -> None:
        """Find out in an idle moment whether the connection lives, and what time it is."""
        try:
            async with asyncio.timeout(GIVE_UP_S):
                await self._ask_time(await self._ready())
            self._outage.end()
        except Exception as error:  # noqa: BLE001 - the next batch or look tries again
            self._drop()
            self._note_outage(error)

    async def commit(self, writes: Sequence[Write[Any]], lock_ms: int | None = None) -> Committed:
        """Run the writes as one transaction until it is known to have committed.

        A batch that the database refuses is run singly, so that the refusal falls on the write that earned
        it. Raises StorageUnavailable when the database stays away, and RowsHeld when somebody holds a row for
        longer than ``lock_ms``; then nothing was kept.
        """
        patience, met = _Patience(self._settings.patience_s), 0
        while True:
            mark = BatchMark(self._id, next(self._numbers))
            batch = Batch(writes)
            try:
                await self._attempt(mark, batch, lock_ms)
            except Exception as error:
                failure = failure_of(error, self._connection)
                if failure is Failure.LOST:
                    if await self._committed_after_all(mark, batch, error):
                        return Committed(batch.answers, batch.news)
                    await self._wait(patience, error)
                elif failure is Failure.BLOCKED:
                    await self._roll_back()
                    self.tally.retries += 1
                    raise RowsHeld from error
                elif failure is Failure.TRANSIENT and met < MAX_TRANSIENT:
                    met += 1
                    await self._roll_back()
                else:
                    await self._roll_back()
                    return await self._refused(writes, error)
                self.tally.retries += 1
            else:
                self._outage.end()
                return Committed(batch.answers, batch.news)

    async def places_of(self, writes: Sequence[Write[Any]]) -> Sequence[Place]:
        """Where writes belong; all of them nowhere when that cannot be asked now."""
        nowhere = [Place(NOBODY, None)] * len(writes)
        return await self._ask(lambda connection: places_of(connection, writes), nowhere)

    async def held_tenants(self, places: Collection[Place]) -> Collection[UUID]:
        """The places' tenants whose rows somebody holds at this moment."""
        return await self._ask(lambda connection: held_tenants(connection, places), ())

    async def _ask(self, work: Callable[[Connection], Awaitable[R]], otherwise: R) -> R:
        try:
            async with asyncio.timeout(GIVE_UP_S):
                return await work(await self._ready())
        except Exception as error:  # noqa: BLE001 - the next batch finds out, and knows what to do
            self._drop()
            self._note_outage(error)
            return otherwise

    # --- one attempt ----------------------------------------------------------------------------------------

    async def _attempt(self, mark: BatchMark, batch: Batch, lock_ms: int | None) -> None:
        self._committing = False
        self._warnings.forget()
        started = monotonic_ms()
        async with asyncio.timeout(GIVE_UP_S):
            connection = await self._ready()
            if _replans(self.tally.batches):
                await connection.execute(FORGET_PLANS)
            if started - self._asked_time > CLOCK_EVERY_MS:
                await self._ask_time(connection)
            if self._has_functions and lock_ms is None and batch.is_of_one_message:
                self._committing = True
                await batch.commit_at_once(connection, mark)
            else:
                await batch.begin(connection, mark, lock_ms)
                await batch.run(connection)
                self._committing = True
                await batch.commit(connection)
            self._warnings.check()
        self.tally.batches += 1
        self.tally.writes += len(batch.answers)
        self.tally.largest_batch = max(self.tally.largest_batch, len(batch.answers))
        took_s = (monotonic_ms() - started) / 1000
        self.tally.seconds += took_s
        self.tally.sizes.note(len(batch.answers))
        self.tally.spans.note(took_s)

    async def _ready(self) -> Connection:
        if self._connection is None or self._connection.is_closed():
            self._connection = await self._connect()
            self._warnings.listen(self._connection)
            await self._connection.execute(PREPARE)
            self._has_functions = await _can_make(self._connection, ";".join(FUNCTIONS))
        return self._connection

    async def _ask_time(self, connection: Connection) -> None:
        self._asked_time = sent = monotonic_ms()
        database_ms = await connection.fetchval(_CLOCK)
        self._clock.observe(float(database_ms), sent, monotonic_ms())

    # --- what went wrong ------------------------------------------------------------------------------------

    async def _committed_after_all(self, mark: BatchMark, batch: Batch, error: BaseException) -> bool:
        in_doubt, self._committing = self._committing, False
        self._drop()
        self._note_outage(error)
        if not in_doubt:
            return False
        self.tally.settled += 1
        committed = await self._settle(mark, batch)
        log.warning("a batch whose outcome was unknown had %s", "committed" if committed else "not committed")
        return committed

    async def _settle(self, mark: BatchMark, batch: Batch) -> bool:
        # No patience here: its writers are told nothing until it is known.
        pause = BACKOFF_FIRST_S
        while True:
            try:
                async with asyncio.timeout(GIVE_UP_S):
                    connection = await self._ready()
                    self._warnings.forget()
                    committed = bool(await connection.fetchval(_SETTLE, mark.lane_id) == mark.number)
                    self._warnings.check()
                    if committed:
                        await batch.recall(connection)
            except Exception as error:  # noqa: BLE001 - asked until there is an answer
                if failure_of(error, self._connection) is not Failure.BLOCKED:
                    self._drop()
                self._on_pause()
                await asyncio.sleep(pause)
                pause = min(2 * pause, BACKOFF_MAX_S)
            else:
                return committed

    async def _wait(self, patience: _Patience, error: BaseException) -> None:
        self._on_pause()
        if not await patience.pause():
            raise StorageUnavailable(f"the database cannot be reached: {one_line(error)}") from error

    async def _refused(self, writes: Sequence[Write[Any]], error: Exception) -> Committed:
        if len(writes) == 1:
            self.tally.refused += 1
            return Committed((RowRefused(f"{type(error).__name__}: {error}"),), ())
        self.tally.retries += 1
        answers: list[Any] = []
        news: list[tuple[UUID, int]] = []
        for write in writes:
            try:
                one = await self.commit((write,))
            except StorageUnavailable as away:
                answers.append(away)
            except RowsHeld:
                answers.append(StorageUnavailable("somebody holds what this needs"))
            else:
                answers += one.answers
                news += one.news
        return Committed(answers, news)

    async def _roll_back(self) -> None:
        connection = self._connection
        if connection is None:
            return
        try:
            async with asyncio.timeout(GIVE_UP_S):
                await connection.execute("ROLLBACK")
        except Exception:  # noqa: BLE001 - a connection that cannot even roll back is of no use
            self._drop()

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.terminate()

    def _note_outage(self, error: BaseException) -> None:
        if self._outage.begin(error):
            self.tally.outages += 1
