"""Keeps the vault's secrets under its newest master key, a page at a time, while all else goes on."""

import logging
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final, assert_never
from uuid import UUID

from sexton_actors.ports.vault import MasterKeys
from sexton_actors.protocol import vault as m
from sexton_actors.refusal import Refusal
from sexton_actors.rounds import Round, RoundsActor
from sexton_actors.secrets import credential_identity
from sexton_actors.terms import MORE_INTERVAL_S
from sexton_actors.world import World
from sexton_engine import Context, MailboxSpec
from sexton_storage.startup import StartupFailed
from sexton_storage.vault import VaultError, version_of

ROUND_S: Final = 60.0
PAGE: Final = 200
RETIRE_AFTER_MS: Final = 600_000
"""An older key is forgotten when nothing has used it for this long: no request lasts longer."""
SEALED_SETTINGS: Final = ("issuer_key", "auth_key")
"""What the installation itself keeps sealed."""

log = logging.getLogger("sexton.vault")


def setting_identity(name: str) -> bytes:
    """What a sealed setting is bound to."""
    return b"setting:" + name.encode()


class VaultKeeper(RoundsActor):
    """Harmless when run twice, and after a crash at any step: a secret is put under the newest key by a swap.

    The older key is forgotten last, and only when all of that is done and has stood for a while.
    """

    kind = "vault_keeper"
    mailbox = MailboxSpec(capacity=64)

    def __init__(self, context: Context, world: World) -> None:
        super().__init__(context, world)
        self._after: tuple[UUID, str] | None = None
        self._clean_since: int | None = None

    def rounds(self) -> Sequence[Round]:
        """At once: what an earlier life left is gone on with."""
        vault = self._world.vault
        return () if vault is None else (Round(m.Reseal(), ROUND_S, partial(self._reseal, vault)),)

    async def on_receive(self, message: m.ReadVault | m.Rotate | m.Reseal) -> Any:
        """Dispatch."""
        vault = self._world.vault
        if vault is None:
            return Refusal("UZ-REQ-003", "This server has no vault of its own.")
        match message:
            case m.ReadVault():
                return await self._state(vault)
            case m.Rotate():
                return await self._rotate(vault)
            case m.Reseal():
                return await self.come_round(message)
            case _:
                assert_never(message)

    async def _state(self, vault: MasterKeys) -> m.VaultState:
        counts = dict.fromkeys(vault.versions, 0) | dict(await self._world.storage.credentials.count_by_key())
        for version, _ in (await self._settings()).values():
            counts[version] = counts.get(version, 0) + 1
        return m.VaultState(vault.newest, dict(sorted(counts.items())), vault.keeps_its_keys)

    async def _rotate(self, vault: MasterKeys) -> m.VaultState | Refusal:
        state = await self._state(vault)
        if not state.stale:
            if not vault.keeps_its_keys:
                detail = "The master keys are given by the operator: add a newer one there, and start again."
                return Refusal("UZ-REQ-001", detail)
            try:
                version = vault.rotate()
            except (StartupFailed, OSError):
                log.exception("a master key cannot be made")
                return Refusal("UZ-INTERNAL-003", "The file of master keys cannot be written.")
            log.info("made master key %s", version)
        self._after = self._clean_since = None
        self.come_now(m.Reseal())
        return await self._state(vault)

    async def _reseal(self, vault: MasterKeys) -> float | None:
        credentials, newest = self._world.storage.credentials, vault.newest
        page = await credentials.sealed_before(newest, after=self._after, limit=PAGE)
        if page:
            # Somebody has used an older key until now, and may come once more.
            self._clean_since = None
        for row in page:
            identity = credential_identity(row.workspace_id, row.name)
            sealed = _resealed(vault, row.sealed, identity, row.name)
            if sealed is not None:
                await credentials.reseal(row, sealed)
        if len(page) == PAGE:
            self._after = (page[-1].workspace_id, page[-1].name)
            return MORE_INTERVAL_S
        self._after = None
        await self._reseal_settings(vault)
        await self._retire(vault)
        return None

    async def _settings(self) -> Mapping[str, tuple[int, bytes]]:
        found = {name: await self._world.storage.instance.setting(name) for name in SEALED_SETTINGS}
        return {
            name: (version, value)
            for name, value in found.items()
            if value is not None and (version := version_of(value)) is not None
        }

    async def _reseal_settings(self, vault: MasterKeys) -> None:
        for name, (version, value) in (await self._settings()).items():
            if version < vault.newest:
                sealed = _resealed(vault, value, setting_identity(name), name)
                if sealed is not None:
                    await self._world.storage.instance.swap_setting(name, value, sealed)

    async def _retire(self, vault: MasterKeys) -> None:
        if len(vault.versions) == 1 or not vault.keeps_its_keys:
            return
        now, state = self._world.now_ms(), await self._state(vault)
        if state.stale:
            self._clean_since = None
        elif self._clean_since is None:
            self._clean_since = now
        elif now - self._clean_since >= RETIRE_AFTER_MS:
            try:
                vault.retire()
            except (StartupFailed, OSError):
                log.exception("older master keys cannot be forgotten")
                return
            log.info("forgot the older master keys; left: %s", vault.versions)


def _resealed(vault: MasterKeys, sealed: bytes, identity: bytes, name: str) -> bytes | None:
    """None for one that does not open: it stays as it is, and so do the keys."""
    try:
        return vault.reseal(sealed, identity)
    except VaultError:
        log.exception("%s cannot be put under the newest master key", name)
        return None
