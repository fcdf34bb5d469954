"""Runs the units of work of the stores: reads, and transactions whose commit is never in doubt."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Generic, NamedTuple, Protocol, TypeVar, cast
from uuid import UUID

import asyncpg

from sexton_storage.attribution import current_entry
from sexton_storage.errors import RowRefused, StorageError, StorageUnavailable
from sexton_storage.portal import Portal
from sexton_storage.postgres.connections.audit_entries import ATTRIBUTE, entry_json
from sexton_storage.postgres.connections.bounds import BEGIN, CONNECT_S, begin_long, pool_session
from sexton_storage.postgres.connections.connection import (
    FAULTS,
    Connection,
    Failure,
    confirmed,
    failure_of,
    hang_up,
    is_gone,
)
from sexton_storage.postgres.connections.dial import BoundedConnection, connect
from sexton_storage.postgres.connections.outage import Outage, one_line
from sexton_storage.postgres.connections.settings import BACKOFF_FIRST_S, BACKOFF_MAX_S, PostgresSettings
from sexton_storage.spread import SHORT_BOUNDS, Spread

R = TypeVar("R")
Work = Callable[[Connection], Awaitable[R]]
Names = Mapping[str, type[StorageError]]
"""Constraint to the error that says what its violation means."""
NO_NAMES: Names = {}
DOUBT_S = 60.0
"""How long a transaction whose outcome is unknown waits for the database to say.

Longer than any other call.
"""
LONG_S = 300.0
"""How long the longest of all transactions may take before it is given up."""
HEALTHY_S = 1.0
MARK = "INSERT INTO commit_marks (id, at) VALUES ($1, sexton_now_ms())"
_CONFIRM = "UPDATE commit_marks SET at = at WHERE id = $1"


class Pool(Protocol):
    """The part of ``asyncpg.Pool`` that is used here."""

    def acquire(self, *, timeout: float | None = None) -> AbstractAsyncContextManager[Connection]: ...
    async def close(self) -> None: ...
    async def expire_connections(self) -> None: ...
    def terminate(self) -> None: ...


class _Fault(NamedTuple):
    """An attempt that failed, and what to do about it."""

    failure: Failure
    error: Exception


class _InDoubt(Exception):
    """The connection went away while a transaction was being committed."""


class Database:
    """The pool, seen from trio."""

    def __init__(
        self,
        portal: Portal,
        dsn: str,
        settings: PostgresSettings,
        new_id: Callable[[], UUID],
        outage: Outage,
    ) -> None:
        self._portal = portal
        self._dsn = dsn
        self._settings = settings
        self._new_id = new_id
        self._pool: Pool | None = None
        self._places = asyncio.Semaphore(settings.pool_size)
        self._outage = outage
        self._part = outage.part("pool")
        self._expiring: asyncio.Task[None] | None = None
        self.waits = Spread(SHORT_BOUNDS)
        """Seconds that units of work waited for a connection."""
        self.in_use = 0
        """Connections of the pool that somebody has now."""

    async def open(self) -> None:
        self._pool = await self._portal.run(self._make_pool)

    async def _make_pool(self) -> Pool:
        settings = self._settings
        session = pool_session(settings.read_s, settings.statement_s)

        async def opened(*_: object, **__: object) -> Connection:
            return await connect(self._dsn, session, timeout_s=min(CONNECT_S, settings.patience_s))

        pool = await asyncpg.create_pool(
            # Made when there is work: an idle pool need not nag a database that is away.
            min_size=0,
            max_size=settings.pool_size,
            max_inactive_connection_lifetime=0,
            connect=opened,
            connection_class=BoundedConnection,
            reset=_as_it_was,
        )
        self._outage.on_begin(self._expire)
        return cast("Pool", pool)

    def _expire(self) -> None:
        # One connection was lost, perhaps to a server that was demoted and stays up: the others lead there
        # too, and would go on reading what is out of date.
        if self._pool is not None:
            self._expiring = asyncio.get_running_loop().create_task(self._pool.expire_connections())

    async def close(self) -> None:
        pool = self._pool
        if pool is not None:
            self._pool = None
            await self._portal.run(lambda: _close(pool), shield=True)

    async def read(self, work: Work[R]) -> R:
        """Run statements that change nothing, again if need be, on one connection in one crossing."""
        settings = self._settings
        return await self._portal.run(
            lambda: self._patiently(work, settings.patience_s, within_s=settings.read_s)
        )

    async def change(self, work: Work[R], names: Names = NO_NAMES, *, long: bool = False) -> R:
        """Run a transaction once, whatever happens to the connection.

        ``work`` may be called again after a failure. It is given up as early as a read; a ``long`` one may
        take ``statement_s`` for each statement, so it must lock nothing that others wait for.

        Cancellation does not reach it. What the database refuses is raised by the name of the violated
        constraint, else as RowRefused. What changes is put down to whom the caller is attributed to.
        """
        within_s = LONG_S if long else self._settings.read_s
        begin = begin_long(self._settings.statement_s) if long else BEGIN
        entry = current_entry()
        asked = work if entry is None else _attributed(work, entry_json(entry))
        return await self._portal.run(lambda: self._settled(asked, names, within_s, begin), shield=True)

    async def healthy(self) -> bool:
        """Whether one round trip was made within a second, to a server that takes writes."""
        return await self._portal.run(self._ping)

    # --- in the asyncio thread ------------------------------------------------------------------------------

    async def _ping(self) -> bool:
        try:
            # Cut, not cancelled, as all work is: what asyncpg still does for a query that was cancelled would
            # meet the next one on this connection.
            answer = await self._once(_ask_for_writes, HEALTHY_S, wait_s=HEALTHY_S)
        except StorageUnavailable:
            return False
        if isinstance(answer, _Fault):
            self._note_outage(answer)
            return False
        self._part.end()
        return True

    @asynccontextmanager
    async def _acquired(self, wait_s: float) -> AsyncIterator[Connection]:
        if self._pool is None:
            raise StorageUnavailable("storage is closed")
        # Waited for here and not in the pool: that all connections are in use is no word about the database.
        began = time.monotonic()
        try:
            async with asyncio.timeout(wait_s):
                await self._places.acquire()
        except TimeoutError:
            raise StorageUnavailable("all connections to the database are in use") from None
        self.in_use += 1
        try:
            async with self._pool.acquire(timeout=wait_s) as connection:
                self.waits.note(time.monotonic() - began)
                yield connection
        finally:
            self.in_use -= 1
            self._places.release()

    async def _patiently(
        self, work: Work[R], patience_s: float, names: Names = NO_NAMES, *, within_s: float
    ) -> R:
        deadline = time.monotonic() + patience_s
        pause = BACKOFF_FIRST_S
        while True:
            answer = await self._once(work, within_s, wait_s=self._settings.patience_s)
            if not isinstance(answer, _Fault):
                self._part.end()
                return answer
            if answer.failure is Failure.REFUSED:
                raise _named(answer.error, names) from answer.error
            self._note_outage(answer)
            if time.monotonic() + pause > deadline:
                raise StorageUnavailable(_why(answer)) from answer.error
            await asyncio.sleep(pause)
            pause = min(2 * pause, BACKOFF_MAX_S)

    async def _once(self, work: Work[R], within_s: float, *, wait_s: float) -> "R | _Fault":
        done: list[R] = []
        try:
            async with self._acquired(wait_s) as connection:
                # Cut, not cancelled: a server that hangs would be asked to cancel, and waited for.
                cut = asyncio.get_running_loop().call_later(within_s, hang_up, connection)
                try:
                    done.append(await work(connection))
                except FAULTS as error:
                    # Looked at here: a connection that was given back to the pool says nothing any more.
                    failure = failure_of(error, connection)
                    if failure is Failure.LOST:
                        # It may look alive: a server that says goodbye hangs up a moment later, and one that
                        # was demoted does not. The pool would hand it to the next.
                        hang_up(connection)
                    return _Fault(failure, error)
                finally:
                    cut.cancel()
        except FAULTS as error:
            # A connection that breaks while it is given back does not undo what was done on it.
            return done[0] if done else _Fault(failure_of(error), error)
        return done[0]

    async def _settled(self, work: Work[R], names: Names, within_s: float, begin: str) -> R:
        while True:
            attempt = _Attempt(work, self._new_id(), begin)
            try:
                await self._patiently(attempt.run, self._settings.patience_s, names, within_s=within_s)
            except _InDoubt:
                if not await self._patiently(attempt.committed, DOUBT_S, within_s=self._settings.read_s):
                    continue
            return attempt.answer[0]

    def _note_outage(self, fault: "_Fault") -> None:
        if fault.failure is Failure.LOST:
            self._part.begin(fault.error)


async def _ask_for_writes(connection: Connection) -> None:
    if await connection.fetchval("SHOW transaction_read_only") != "off":
        raise asyncpg.ReadOnlySQLTransactionError("the server takes no writes")


def _why(fault: _Fault) -> str:
    if fault.failure is Failure.LOST:
        return f"the database cannot be reached: {one_line(fault.error)}"
    return f"others hold what this needs: {one_line(fault.error)}"


async def _as_it_was(_: object) -> None:
    """Give a connection back as it is.

    No work changes its session, and to ask the server for a reset costs as much as a read. A transaction left
    open is rolled back by asyncpg before this.
    """


async def _close(pool: Pool) -> None:
    try:
        async with asyncio.timeout(5):
            await pool.close()
    except TimeoutError:
        pool.terminate()


class _Attempt(Generic[R]):
    """A transaction that leaves a mark, so that one can ask whether it committed."""

    def __init__(self, work: Work[R], mark: UUID, begin: str) -> None:
        self._work = work
        self._mark = mark
        self._begin = begin
        self.answer: list[R] = []

    async def run(self, connection: Connection) -> None:
        self.answer.clear()
        await connection.execute(self._begin)
        try:
            self.answer.append(await self._work(connection))
            await connection.execute(MARK, self._mark)
        except BaseException:
            if not is_gone(connection):
                await connection.execute("ROLLBACK")
            raise
        try:
            await confirmed(connection, "COMMIT")
        except FAULTS as error:
            if failure_of(error, connection) is Failure.LOST:
                hang_up(connection)
                raise _InDoubt from error
            raise

    async def committed(self, connection: Connection) -> bool:
        # Inserting the same key waits for a transaction that is still committing it, then tells what became
        # of it. It is rolled back: were this look itself lost and made again, it must not find its own mark.
        await connection.execute("BEGIN")
        new = await connection.fetchval(f"{MARK} ON CONFLICT DO NOTHING RETURNING id", self._mark)
        await connection.execute("ROLLBACK")
        if new is not None:
            return False
        # It is visible here, which does not mean that a synchronous standby has it: the commit's wait may
        # have been cut off. The log of writes is sent in order: when a later write is there, so is this one.
        await confirmed(connection, _CONFIRM, self._mark)
        return True


def _attributed(work: Work[R], entry: str) -> Work[R]:
    async def attributed(connection: Connection) -> R:
        await connection.execute(ATTRIBUTE, entry)
        return await work(connection)

    return attributed


def _named(error: Exception, names: Names) -> StorageError:
    violated = getattr(error, "constraint_name", None)
    return names.get(violated or "", RowRefused)(str(error))
