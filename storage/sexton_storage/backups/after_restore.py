"""What is done to a restored database before anybody may serve it."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, Protocol

import asyncpg

from sexton_storage.backups.faults import BackupFault
from sexton_storage.portal import open_portal

TOKENS_SKIPPED: Final = 1_000_000_000
"""More fencing tokens than an agent can have been given since the backup: ten a second for three years."""
_SKIP_TOKENS: Final = "UPDATE agent_heads SET fence = fence + $1"
# As if their runners had gone: the servers take them back by the ordinary rules.
_EXPIRE_LEASES: Final = """
UPDATE leases SET expires_at = least(expires_at, sexton_now_ms() - 1), version = version + 1
 WHERE status IN ('active', 'cancelling')
"""
# Their deadlines are earlier now, and whoever looks for them looks no sooner than this says.
_LOOK_AT_ONCE: Final = "UPDATE live_leases SET look_at = least(look_at, sexton_now_ms() - 1)"


class Connection(Protocol):
    """As much of ``asyncpg.Connection`` as a step needs."""

    async def execute(self, query: str, *args: Any) -> Any: ...
    async def fetchval(self, query: str, *args: Any) -> Any: ...


Step = Callable[[Connection], Awaitable[None]]
"""Runs in the asyncio thread and in the transaction of the restore; what it raises fails the restore."""


async def _outdate_runs(connection: Connection) -> None:
    """Let nothing that ran before the restore write again.

    Tokens that were given after the backup are forgotten, and may be in use still. The next ones are higher
    than all of them.
    """
    await connection.execute(_SKIP_TOKENS, TOKENS_SKIPPED)
    await connection.execute(_EXPIRE_LEASES)
    await connection.execute(_LOOK_AT_ONCE)


STEPS: Final[Sequence[Step]] = (_outdate_runs,)
"""In order. What has to stay erased is erased again by the server's start, from the list of erasures."""


async def finish_restore(dsn: str, last: Sequence[str] = ()) -> None:
    """Take all steps in one transaction, then ``last`` statements in it. Raises BackupFault."""

    async def work() -> None:
        connection = await asyncpg.connect(dsn)
        try:
            async with connection.transaction():
                for step in STEPS:
                    await step(connection)
                for statement in last:
                    await connection.execute(statement)
        finally:
            await connection.close()

    async with open_portal() as portal:
        try:
            await portal.run(work)
        except (asyncpg.PostgresError, OSError) as fault:
            raise BackupFault(
                f"the restored database could not be made ready: {fault}",
                "Run the restore again, or use another backup",
            ) from fault
