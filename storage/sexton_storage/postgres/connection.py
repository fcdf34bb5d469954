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

    LOST = "the connection is gone, or the server is going: connect again"
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
    return Failure.TRANSIENT if isinstance(error, _TRANSIENT) else Failure.REFUSED


SESSION = {
    "application_name": "sexton",
    "jit": "off",
    # A node that hangs in a transaction must not hold its rows' locks against the others.
    "idle_in_transaction_session_timeout": "60s",
    "lock_timeout": "10s",
    "timezone": "UTC",
}
LANE_SESSION = SESSION | {
    # A lane's statements are all by key. Their plans are made once, maybe while the tables are empty, when scans look
    # cheap and would then stay.
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
}


async def connect(dsn: str, *, session: Mapping[str, str] = SESSION, timeout_s: float = 5.0) -> Connection:
    """Open one connection; statements are prepared once and kept for as long as it lives."""
    opened = await asyncpg.connect(
        dsn, timeout=timeout_s, server_settings=dict(session), max_cached_statement_lifetime=0
    )
    return cast("Connection", opened)
