"""Idempotency keys, in PostgreSQL."""

from sexton_storage.postgres.connections.connection import Connection
from sexton_storage.postgres.sql.rows import Rows
from sexton_storage.postgres.stores.base import PostgresStore
from sexton_storage.records.key_uses import KeyUse
from sexton_storage.terms import KEY_KEEP_MS, KEY_OPEN_MS, KEY_STALE_MS

USES = Rows(KeyUse)
_AFTER = len(USES.names)
# One past keeping, or left open long enough, starts over; one that died goes on from its own beginning.
_IS_PAST = f"(k.created_at <= ${_AFTER + 1})"
_IS_OPEN = "(k.status IS NULL AND k.digest = excluded.digest)"
_IS_FREE = f"({_IS_PAST} OR ({_IS_OPEN} AND NOT k.resumable AND k.created_at <= ${_AFTER + 3}))"
_BEGIN = f"""
{USES.insert("key_uses AS k")}
ON CONFLICT (scope, key_hash) DO UPDATE SET
  digest = excluded.digest, claim = excluded.claim, running_since = excluded.running_since,
  resumable = excluded.resumable, status = NULL,
  created_at = CASE WHEN {_IS_FREE} THEN excluded.created_at ELSE k.created_at END,
  sealed = CASE WHEN {_IS_FREE} THEN excluded.sealed ELSE k.sealed END
WHERE {_IS_FREE} OR ({_IS_OPEN} AND k.resumable AND k.running_since <= ${_AFTER + 2})
RETURNING {USES.columns()}
"""
_KEPT = f"SELECT {USES.columns()} FROM key_uses WHERE scope = $1 AND key_hash = $2"
_MINE = "scope = $1 AND key_hash = $2 AND claim = $3 AND status IS NULL"
_SETTLE = f"UPDATE key_uses SET status = $4, sealed = $5 WHERE {_MINE} RETURNING true"
_RELEASE = f"UPDATE key_uses SET running_since = 0 WHERE {_MINE}"
_FORGET = f"DELETE FROM key_uses WHERE {_MINE}"


class PostgresKeyUses(PostgresStore):
    async def begin(self, use: KeyUse, *, stale_ms: int = KEY_STALE_MS) -> KeyUse:
        now = use.created_at
        args = (*USES.values(use), now - KEY_KEEP_MS, use.running_since - stale_ms, now - KEY_OPEN_MS)

        async def work(connection: Connection) -> KeyUse:
            while True:
                row = await connection.fetchrow(_BEGIN, *args)
                if row is None:
                    # In use; and if it is swept between the two statements, the first finds room again.
                    row = await connection.fetchrow(_KEPT, use.scope, use.key_hash)
                if row is not None:
                    return USES.record(row)

        return await self._database.change(work)

    async def settle(self, use: KeyUse) -> bool:
        args = (use.scope, use.key_hash, use.claim, use.status, use.sealed)
        return bool(await self._database.change(lambda c: c.fetchval(_SETTLE, *args)))

    async def release(self, use: KeyUse) -> None:
        await self._database.change(lambda c: c.execute(_RELEASE, use.scope, use.key_hash, use.claim))

    async def forget(self, use: KeyUse) -> None:
        await self._database.change(lambda c: c.execute(_FORGET, use.scope, use.key_hash, use.claim))


async def sweep_key_uses(connection: Connection, now: int) -> int:
    """Delete what is past keeping; how many rows."""
    done = await connection.execute("DELETE FROM key_uses WHERE created_at <= $1", now - KEY_KEEP_MS)
    return int(done.split()[-1])
