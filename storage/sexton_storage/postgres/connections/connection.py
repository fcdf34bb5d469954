"""One connection to PostgreSQL, and what its errors mean."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from enum import Enum
from typing import Any, Protocol

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
    def transaction(
        self, *, isolation: Any = None, readonly: bool = False
    ) -> AbstractAsyncContextManager[object]: ...
    def terminate(self) -> None: ...
    def is_closed(self) -> bool: ...
    def get_server_pid(self) -> int: ...
    def get_server_version(self) -> Any: ...
    def add_log_listener(self, callback: Callable[[Any, Any], None]) -> None: ...
    def remove_log_listener(self, callback: Callable[[Any, Any], None]) -> None: ...


class NotConfirmed(asyncpg.InterfaceError):  # type: ignore[misc] # asyncpg is not typed
    """The server said that a commit succeeded, and warned that its standby may not have it."""


class CommitWarnings:
    """Hears what a server adds to its word that a commit succeeded.

    A commit that waits for a synchronous standby and is cancelled meanwhile succeeds: the server only warns
    that the standby may not have it, and a fail-over may lose it.
    """

    def __init__(self) -> None:
        self._heard: str | None = None

    def listen(self, connection: Connection) -> None:
        connection.add_log_listener(self._hear)

    def leave(self, connection: Connection) -> None:
        with suppress(asyncpg.InterfaceError):
            connection.remove_log_listener(self._hear)

    def forget(self) -> None:
        self._heard = None

    def check(self) -> None:
        """Raise NotConfirmed if there was a warning since the last ``forget``."""
        if self._heard is not None:
            raise NotConfirmed(self._heard)

    def _hear(self, _: object, message: Any) -> None:
        # The words of the message depend on the server's language; that it is a warning does not.
        if (message.severity_en or message.severity) == "WARNING":
            self._heard = str(message.message)


async def confirmed(connection: Connection, query: str, *args: object) -> None:
    """Run a statement that commits. Raises NotConfirmed if the server warned."""
    warnings = CommitWarnings()
    warnings.listen(connection)
    try:
        await connection.execute(query, *args)
        warnings.check()
    finally:
        warnings.leave(connection)


class Failure(Enum):
    """What to do about an error."""

    LOST = "the connection is gone or of no use, or the server is going: connect again"
    TRANSIENT = "the transaction met another: run it again"
    BLOCKED = "somebody holds a row for long: set aside what needs it"
    REFUSED = "the database does not take this: running it again would not help"


FAULTS = (
    OSError,
    TimeoutError,
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    ValueError,
    OverflowError,
)
"""What asyncpg raises; the last two when a value does not fit its column's type."""
_LOST = (
    OSError,
    TimeoutError,
    NotConfirmed,
    asyncpg.PostgresConnectionError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.CannotConnectNowError,
    asyncpg.InsufficientResourcesError,
    asyncpg.IdleInTransactionSessionTimeoutError,
    asyncpg.IdleSessionTimeoutError,
    asyncpg.TransactionTimeoutError,
    asyncpg.QueryCanceledError,
    # The server was demoted, or we came to a standby: another of the hosts takes writes now, or soon will.
    asyncpg.ReadOnlySQLTransactionError,
)
_TRANSIENT = (asyncpg.DeadlockDetectedError, asyncpg.SerializationError)


def is_gone(connection: Connection) -> bool:
    """Whether it is closed; the pool takes one that was closed back at once, and then it answers nothing."""
    try:
        return connection.is_closed()
    except asyncpg.InterfaceError:
        return True


def hang_up(connection: Connection) -> None:
    """Close without a word to the server, whatever the connection is doing."""
    with suppress(asyncpg.InterfaceError):
        connection.terminate()


def failure_of(error: BaseException, connection: Connection | None = None) -> Failure:
    """Tell by class; whatever happened on a connection that is closed now is a loss."""
    if isinstance(error, _LOST) or (connection is not None and is_gone(connection)):
        return Failure.LOST
    if isinstance(error, asyncpg.LockNotAvailableError):
        return Failure.BLOCKED
    if isinstance(error, _TRANSIENT):
        return Failure.TRANSIENT
    # A complaint of asyncpg's about the state that it is in itself: that connection is of no use any more.
    strange = isinstance(error, asyncpg.InterfaceError | asyncpg.InternalClientError)
    return Failure.LOST if strange and not isinstance(error, ValueError) else Failure.REFUSED
