"""Idempotency keys, in memory."""

from uuid import UUID

from msgspec.structs import replace

from sexton_storage.memory.base import MemoryStore
from sexton_storage.memory.tables import Tables
from sexton_storage.records.key_uses import KeyUse
from sexton_storage.terms import KEY_KEEP_MS, KEY_OPEN_MS, KEY_STALE_MS


class MemoryKeyUses(MemoryStore):
    async def begin(self, use: KeyUse, *, stale_ms: int = KEY_STALE_MS) -> KeyUse:
        await self._round_trip()
        old = self._tables.key_uses.get((use.scope, use.key_hash))
        if old is None or old.created_at <= use.created_at - KEY_KEEP_MS or _is_free_again(old, use):
            kept = use
        elif _may_take_over(old, use, stale_ms):
            kept = replace(use, created_at=old.created_at, sealed=old.sealed)
        else:
            return old
        self._tables.key_uses[use.scope, use.key_hash] = kept
        return kept

    async def settle(self, use: KeyUse) -> bool:
        await self._round_trip()
        old = self._mine(use)
        if old is None:
            return False
        self._tables.key_uses[use.scope, use.key_hash] = replace(old, status=use.status, sealed=use.sealed)
        return True

    async def release(self, use: KeyUse) -> None:
        await self._round_trip()
        old = self._mine(use)
        if old is not None:
            self._tables.key_uses[use.scope, use.key_hash] = replace(old, running_since=0)

    async def forget(self, use: KeyUse) -> None:
        await self._round_trip()
        if self._mine(use) is not None:
            del self._tables.key_uses[use.scope, use.key_hash]

    def _mine(self, use: KeyUse) -> KeyUse | None:
        old = self._tables.key_uses.get((use.scope, use.key_hash))
        return old if old is not None and old.claim == use.claim and old.status is None else None


def _is_free_again(old: KeyUse, use: KeyUse) -> bool:
    open_ = old.status is None and not old.resumable and old.digest == use.digest
    return open_ and old.created_at <= use.created_at - KEY_OPEN_MS


def _may_take_over(old: KeyUse, use: KeyUse, stale_ms: int) -> bool:
    dead = old.status is None and old.running_since <= use.running_since - stale_ms
    return dead and old.resumable and old.digest == use.digest


def sweep_key_uses(tables: Tables, now: int) -> int:
    """Delete what is past keeping; how many rows."""
    kept: dict[tuple[UUID, bytes], KeyUse] = {
        key: row for key, row in tables.key_uses.items() if row.created_at > now - KEY_KEEP_MS
    }
    swept = len(tables.key_uses) - len(kept)
    tables.key_uses = kept
    return swept
