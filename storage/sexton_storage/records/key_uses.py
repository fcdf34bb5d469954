"""What was done under an Idempotency-Key: the first request's answer, or that it has none yet."""

from typing import Protocol
from uuid import UUID

import msgspec

from sexton_storage.terms import KEY_STALE_MS


class KeyUse(msgspec.Struct, frozen=True, gc=False):
    """One key of one caller, and the request that came first with it."""

    scope: UUID
    """The tenant that the keys belong to."""
    key_hash: bytes
    digest: bytes
    """The digest of the whole request; another digest is another request."""
    claim: UUID
    """The attempt that works on it; only that one settles it."""
    created_at: int
    running_since: int
    resumable: bool
    """Doing it again changes nothing more, so what a dead server began may be finished by another."""
    sealed: bytes
    """While it runs, the seed of what it makes; then its answer."""
    status: int | None = None
    """The status of the answer; None while there is none."""


class KeyUseStore(Protocol):
    async def begin(self, use: KeyUse, *, stale_ms: int = KEY_STALE_MS) -> KeyUse:
        """Keep it, unless the key is in use; give what is kept then, in one commit.

        It is the caller's turn where what comes back has its claim. So it is with a new key, with one that
        is past keeping, and with one whose first request died ``stale_ms`` ago, is the same, and may be done
        again: that one keeps its seed and its beginning. One that may not starts over after ``KEY_OPEN_MS``.
        """
        ...

    async def settle(self, use: KeyUse) -> bool:
        """Keep status and answer; False when another attempt has taken over."""
        ...

    async def release(self, use: KeyUse) -> None:
        """Let the next attempt take over at once, where it may at all."""
        ...

    async def forget(self, use: KeyUse) -> None:
        """Nothing was done: the key is free."""
        ...
