"""Runs the units of work of the stores: reads, and transactions whose commit is never in doubt."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Generic, NamedTuple, Protocol, TypeVar, cast
from uuid import UUID

import asyncpg

from sexton_storage.portal import Portal
from sexton_storage.postgres.connection import SESSION, Connection, Failure, failure_of
from sexton_storage.postgres.settings import BACKOFF_FIRST_S, BACKOFF_MAX_S, PostgresSettings
from sexton_storage.spread import SHORT_BOUNDS, Spread
from sexton_storage.stores import RowRefused, StorageError, StorageUnavailable

R = TypeVar("R")
Work = Callable[[Connection], Awaitable[R]]
Names = Mapping[str, type[StorageError]]
"""Constraint to the error that says what its violation means."""
NO_NAMES: Names = {}
DOUBT_S = 60.0
"""How long a transaction whose outcome is unknown waits for the database to say.

Longer than any other call.
"""
HEALTHY_S = 1.0
MARK = "INSERT INTO commit_marks (id, at) VALUES ($1, sexton_now_ms())"
log = logging.getLogger("sexton.storage")


class Pool(Protocol):
    """The part of ``asyncpg.Pool`` that is used here."""

    def acquire(self, *, timeout: float | None = None) -> AbstractAsyncContextManager[Connection]: ...
    async def close(self) -> None: ...
    def terminate(self) -> None: ...


_FAULTS = (
    OSError,
    TimeoutError,
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    ValueError,
    OverflowError,
)
"""What asyncpg raises; the last two when a value does not fit its column's type."""


class _Fault(NamedTuple):
    """An attempt that failed, and what to do about it."""

    failure: Failure
    error: Exception


class _InDoubt(Exception):
    """The connection went away while a transaction was being committed."""


class Database:
    """The pool, seen from trio."""

    def __init__(
        self, portal: Portal, dsn: str, settings: PostgresSettings, new_id: Callable[[], UUID]
    ) -> None:
        self._portal = portal
        self._dsn = dsn
        self._settings = settings
        self._new_id = new_id
        self._pool: Pool | None = None
        self._places = asyncio.Semaphore(settings.pool_size)
        self._away = False
        self.waits = Spread(SHORT_BOUNDS)
        """Seconds that units of work waited for a connection."""
        self.in_use = 0
        """Connections of the pool that somebody has now."""

    async def open(self) -> None:
        self._pool = await self._portal.run(self._make_pool)

    async def _make_pool(self) -> Pool:
        session = SESSION | {"statement_timeout": f"{self._settings.statement_s}s"}
        pool = await asyncpg.create_pool(
            self._dsn,
            # Made when there is work: an idle pool need not nag a database that is away.
            min_size=0,
            max_size=self._settings.pool_size,
            max_inactive_connection_lifetime=0,
            server_settings=session,
            timeout=self._settings.patience_s,
            reset=_as_it_was,
        )
        return cast("Pool", pool)

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

    async def change(self, work: Work[R], names: Names = NO_NAMES, *, short: bool = False) -> R:
        """Run a transaction once, whatever happens to the connection.

        ``work`` may be called again after a failure. A ``short`` one is given up as early as a read.

        Cancellation does not reach it. What the database refuses is raised by the name of the violated
        constraint, else as RowRefused.
        """
        within_s = self._settings.read_s if short else None
        return await self._portal.run(lambda: self._settled(work, names, within_s), shield=True)

    async def healthy(self) -> bool:
        """Whether one round trip was made within a second."""
        try:
            return await self._portal.run(self._ping)
        except StorageUnavailable:
            return False

    # --- in the asyncio thread ------------------------------------------------------------------------------

    async def _ping(self) -> bool:
        try:
            async with asyncio.timeout(HEALTHY_S), self._acquired() as connection:
                try:
                    return bool(await connection.fetchval("SELECT true"))
                except BaseException:
                    # To give it back in order would mean to wait for the server once more.
                    connection.terminate()
                    raise
        except (TimeoutError, OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
            return False

    @asynccontextmanager
    async def _acquired(self) -> AsyncIterator[Connection]:
        if self._pool is None:
            raise StorageUnavailable("storage is closed")
        # Waited for here and not in the pool: that all connections are in use is no word about the database.
        began = time.monotonic()
        try:
            async with asyncio.timeout(self._settings.patience_s):
                await self._places.acquire()
        except TimeoutError:
            raise StorageUnavailable("all connections to the database are in use") from None
        self.in_use += 1
        try:
            async with self._pool.acquire(timeout=self._settings.patience_s) as connection:
                self.waits.note(time.monotonic() - began)
                yield connection
        finally:
            self.in_use -= 1
            self._places.release()

    async def _patiently(
        self, work: Work[R], patience_s: float, names: Names = NO_NAMES, *, within_s: float | None = None
    ) -> R:
        deadline = time.monotonic() + patience_s
        pause = BACKOFF_FIRST_S
        while True:
            answer = await self._once(work, within_s)
            if not isinstance(answer, _Fault):
                self._note_back()
                return answer
            if answer.failure is Failure.REFUSED:
                raise _named(answer.error, names) from answer.error
            self._note_outage(answer)
            if time.monotonic() + pause > deadline:
                raise StorageUnavailable(
                    f"the database cannot be reached: {answer.error!r}"
                ) from answer.error
            await asyncio.sleep(pause)
            pause = min(2 * pause, BACKOFF_MAX_S)

    async def _once(self, work: Work[R], within_s: float | None) -> "R | _Fault":
        try:
            async with self._acquired() as connection:
                # Cut, not cancelled: a server that hangs would be asked to cancel, and waited for.
                cut: asyncio.TimerHandle | None = None
                if within_s is not None:
                    cut = asyncio.get_running_loop().call_later(within_s, connection.terminate)
                try:
                    return await work(connection)
                except _FAULTS as error:
                    # Looked at here: a connection that was given back to the pool says nothing any more.
                    return _Fault(failure_of(error, connection), error)
                finally:
                    if cut is not None:
                        cut.cancel()
        except _FAULTS as error:
            return _Fault(failure_of(error), error)

    async def _settled(self, work: Work[R], names: Names, within_s: float | None) -> R:
        while True:
            attempt = _Attempt(work, self._new_id())
            try:
                await self._patiently(attempt.run, self._settings.patience_s, names, within_s=within_s)
            except _InDoubt:
                if not await self._patiently(attempt.committed, DOUBT_S):
                    continue
            return attempt.answer[0]

    def _note_outage(self, fault: "_Fault") -> None:
        if fault.failure is Failure.LOST and not self._away:
            self._away = True
            log.warning("the database went away: %r", fault.error)

    def _note_back(self) -> None:
        if self._away:
            self._away = False
            log.warning("the database is back")


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

    def __init__(self, work: Work[R], mark: UUID) -> None:
        self._work = work
        self._mark = mark
        self.answer: list[R] = []

    async def run(self, connection: Connection) -> None:
        self.answer.clear()
        await connection.execute("BEGIN")
        try:
            self.answer.append(await self._work(connection))
            await connection.execute(MARK, self._mark)
        except BaseException:
            if not connection.is_closed():
                await connection.execute("ROLLBACK")
            raise
        try:
            await connection.execute("COMMIT")
        except _FAULTS as error:
            if failure_of(error, connection) is Failure.LOST:
                raise _InDoubt from error
            raise

    async def committed(self, connection: Connection) -> bool:
        # Inserting the same key waits for a transaction that is still committing it, then tells what became
        # of it. It is rolled back: were this look itself lost and made again, it must not find its own mark.
        await connection.execute("BEGIN")
        new = await connection.fetchval(f"{MARK} ON CONFLICT DO NOTHING RETURNING id", self._mark)
        await connection.execute("ROLLBACK")
        return new is None


def _named(error: Exception, names: Names) -> StorageError:
    violated = getattr(error, "constraint_name", None)
    return names.get(violated or "", RowRefused)(str(error))
