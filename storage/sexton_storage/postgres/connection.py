"""One connection to PostgreSQL, and what its errors mean."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from enum import Enum
from typing import Any, Protocol, cast

import asyncpg

Row = Mapping[Any, Any]
"""A row as asyncpg gives it: by position and by name."""


class Connection(Protocol):
    """The part of ``asyncpg.Connection`` that is used here."""

    async def fetch(self, query: str, *args: object) -> Sequence[Row]: ...
    async def fetchrow(self, query: str, *args: object) -> Row | None: ...
    async def fetchval(self, query: str, *args: object) -> Any: ...
    async def execute(self, query: str, *args: object) -> str: ...
    async def executemany(self, command: str, args: Sequence[Sequence[object]]) -> None: ...
    async def close(self, *, timeout: float | None = None) -> None: ...
    def transaction(self) -> AbstractAsyncContextManager[object]: ...
    def terminate(self) -> None: ...
    def is_closed(self) -> bool: ...
    def get_server_pid(self) -> int: ...


class Failure(Enum):
    """What to do about an error."""

    LOST = "the connection is gone or of no use, or the server is going: connect again"
    TRANSIENT = "the transaction met another: run it again"
    REFUSED = "the database does not take this: running it again would not help"


_LOST = (
    OSError,
    TimeoutError,
    asyncpg.PostgresConnectionError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.CannotConnectNowError,
    asyncpg.InsufficientResourcesError,
    asyncpg.IdleInTransactionSessionTimeoutError,
    asyncpg.QueryCanceledError,
)
_TRANSIENT = (
    asyncpg.DeadlockDetectedError,
    asyncpg.SerializationError,
    asyncpg.LockNotAvailableError,
)


def failure_of(error: BaseException, connection: Connection | None = None) -> Failure:
    """Tell by class; whatever happened on a connection that is closed now is a loss."""
    if isinstance(error, _LOST) or (connection is not None and connection.is_closed()):
        return Failure.LOST
    if isinstance(error, _TRANSIENT):
        return Failure.TRANSIENT
    # A complaint of asyncpg's about the state that it is in itself: that connection is of no use any more.
    strange = isinstance(error, asyncpg.InterfaceError | asyncpg.InternalClientError)
    return Failure.LOST if strange and not isinstance(error, ValueError) else Failure.REFUSED


SESSION = {
    "application_name": "sexton",
    "jit": "off",
    # A node that hangs in a transaction must not hold its rows' locks against the others.
    "idle_in_transaction_session_timeout": "60s",
    "lock_timeout": "10s",
    "timezone": "UTC",
}
# A lane's statements go from a batch's few rows to their keys, in pages that are in memory. Their plans are
# kept, so none may be of the kind that only suits tables that are still small: no hash of a whole table.
# (That is also why no statement of a lane joins two batches' worth of rows that have no index.)
_LANE_PLANS = """
SET plan_cache_mode = force_generic_plan; SET random_page_cost = 0.1; SET seq_page_cost = 0.1;
SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off
"""
FORGET_PLANS = "DISCARD PLANS"
_LANE_TYPES = "SELECT $1::int[], $2::bigint[], $3::uuid[], $4::text[], $5::bytea[], $6::bool[]"


async def connect(dsn: str, *, session: Mapping[str, str] = SESSION, timeout_s: float = 5.0) -> Connection:
    """Open one connection; statements are prepared once and kept for as long as it lives."""
    # As a mapping, for asyncpg's default of 60 makes a type checker take every timeout for a whole number.
    options: dict[str, Any] = {"timeout": timeout_s, "max_cached_statement_lifetime": 0}
    opened = await asyncpg.connect(dsn, server_settings=dict(session), **options)
    return cast("Connection", opened)


async def connect_lane(dsn: str, *, timeout_s: float = 5.0) -> Connection:
    """Open a connection for a lane of the journal."""
    connection = await connect(dsn, timeout_s=timeout_s)
    # asyncpg looks every array type up in the catalogue when it first meets it: before the lookup's own joins
    # are forbidden their hashes, for it would take seconds then.
    await connection.fetchrow(_LANE_TYPES, [], [], [], [], [], [])
    await connection.execute(_LANE_PLANS)
    return connection
