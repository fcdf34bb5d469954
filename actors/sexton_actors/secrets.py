"""Seals and opens a workspace's credentials, and keeps the opened ones for a second."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol
from uuid import UUID

import msgspec

from sexton_storage.records.credentials import Credential, CredentialStore
from sexton_storage.stores import DatabaseClock

OPENED_KEEP_MS = 1000
"""How long another node may go on with a credential that was replaced on this one."""
OPENED_KEEP_COUNT = 4096


class Sealer(Protocol):
    """The vault: bytes that open only with the master key and for the same identity."""

    def seal(self, plaintext: bytes, identity: bytes) -> bytes: ...
    def open(self, sealed: bytes, identity: bytes) -> bytes: ...


class _Opened(msgspec.Struct, frozen=True):
    data: Mapping[str, Any] | None
    hosts: tuple[str, ...]
    uses: tuple[str, ...]
    at: int


def credential_identity(workspace_id: UUID, name: str) -> bytes:
    """What a sealed credential is bound to, so that a row copied over another does not open."""
    return b"credential:" + workspace_id.bytes + b":" + name.encode()


class Secrets:
    """The only way to a credential's plain text; callers never keep it."""

    def __init__(self, store: CredentialStore, sealer: Sealer, clock: DatabaseClock) -> None:
        self._store = store
        self._sealer = sealer
        self._clock = clock
        self._opened: dict[tuple[UUID, str], _Opened] = {}

    def __repr__(self) -> str:
        return f"<Secrets {len(self._opened)} opened>"

    async def put(
        self,
        workspace_id: UUID,
        name: str,
        data: Mapping[str, Any],
        hosts: Sequence[str] = (),
        uses: Sequence[str] = (),
    ) -> None:
        """Seal and keep, replacing one of that name; holds at once on this node."""
        now = self._clock.now_ms()
        sealed = self._sealer.seal(msgspec.json.encode(data), credential_identity(workspace_id, name))
        await self._store.put(Credential(workspace_id, name, sealed, now, now, tuple(hosts), tuple(uses)))
        self._opened.pop((workspace_id, name), None)

    async def open(self, workspace_id: UUID, name: str) -> Mapping[str, Any] | None:
        """The credential's data, None when there is none of that name."""
        return (await self._open(workspace_id, name)).data

    async def hosts(self, workspace_id: UUID, name: str) -> tuple[str, ...]:
        """To which hosts it may go, as its owner named them; none were: empty."""
        return (await self._open(workspace_id, name)).hosts

    async def uses(self, workspace_id: UUID, name: str) -> tuple[str, ...]:
        """Where in a request it stands, as its owner said; nobody did: empty."""
        return (await self._open(workspace_id, name)).uses

    async def _open(self, workspace_id: UUID, name: str) -> _Opened:
        now = self._clock.now_ms()
        kept = self._opened.get((workspace_id, name))
        if kept is not None and 0 <= now - kept.at < OPENED_KEEP_MS:
            return kept
        row = await self._store.load(workspace_id, name)
        data = None
        if row is not None:
            plain = self._sealer.open(row.sealed, credential_identity(workspace_id, name))
            data = msgspec.json.decode(plain, type=dict[str, Any])
        if len(self._opened) >= OPENED_KEEP_COUNT:
            self._opened.clear()
        opened = _Opened(data, *(((), ()) if row is None else (row.hosts, row.uses)), now)
        self._opened[workspace_id, name] = opened
        return opened

    async def missing(self, workspace_id: UUID, names: Sequence[str]) -> Sequence[str]:
        """The ``names`` that the workspace's vault does not hold, in their order."""
        return [name for name in names if await self.open(workspace_id, name) is None]

    async def list(self, workspace_id: UUID, *, limit: int, after: str | None = None) -> Sequence[Credential]:
        """Names, hosts and times only, of those that people gave, by name; those behind ``after``."""
        return await self._store.list(workspace_id, limit=limit, after=after)

    async def delete(self, workspace_id: UUID, name: str) -> bool:
        """False when there was none."""
        self._opened.pop((workspace_id, name), None)
        deleted = await self._store.delete(workspace_id, name)
        self._opened.pop((workspace_id, name), None)
        return deleted
