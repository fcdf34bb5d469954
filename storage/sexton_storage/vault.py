"""Seals secrets so that a stolen database, or a row moved to another's place, opens nothing.

Envelope encryption by AES-256-GCM: each secret has a data key of its own, which is sealed by the newest
master key. What it belongs to (its identity) is bound in as associated data. A sealed secret is::

    1 byte   format, 1                12 bytes  nonce of the data key     12 bytes  nonce of the secret
    4 bytes  master key's version     48 bytes  sealed data key           n + 16    sealed secret
"""

import os
import struct
from collections.abc import Callable, Mapping
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from sexton_storage.errors import StorageError
from sexton_storage.masterkeys import (
    MasterKeys,
    add_key,
    drop_keys_before,
    keys_from_text,
    load_or_make_keys,
)
from sexton_storage.startup import StartupFailed

KEY_VARIABLE = "SEXTON_MASTER_KEY"
SEALING_VARIABLE = "SEXTON_MASTER_KEY_SEALS"
"""The version of ``SEXTON_MASTER_KEY`` that seals, until all servers know a newer one."""
KEY_FILE = "master.keys"
KEY_BYTES = 32
NONCE_BYTES = 12
_HEAD = struct.Struct(">BI")
_FORMAT = 1
_WRAPPED_AT = _HEAD.size + NONCE_BYTES
_NONCE_AT = _WRAPPED_AT + KEY_BYTES + 16
_SECRET_AT = _NONCE_AT + NONCE_BYTES


class VaultError(StorageError):
    """A sealed secret does not open.

    Damaged, of another place, or sealed by a master key that is not here.
    """


class Vault:
    """Seals with the newest master key, opens with any that it has.

    ``path``: the file that the keys are from. It is looked at again before anything is sealed, and when a
    key is missing, so that all servers that share it seal with the same key. ``sealing``: seals with this
    version in place of the newest.
    """

    def __init__(
        self,
        keys: MasterKeys,
        *,
        random_bytes: Callable[[int], bytes] = os.urandom,
        path: Path | None = None,
        sealing: int | None = None,
    ) -> None:
        self._random = random_bytes
        self._path = path
        self._pinned = sealing
        self._seen: tuple[int, int] | None = None
        self._take(keys)

    def _take(self, keys: MasterKeys) -> None:
        self._ciphers = {version: AESGCM(key) for version, key in keys.items()}
        self.newest = max(keys) if self._pinned is None else self._pinned

    def __repr__(self) -> str:
        return f"<Vault with master keys {sorted(self._ciphers)}>"

    @property
    def versions(self) -> tuple[int, ...]:
        """The versions of all master keys, oldest first."""
        return tuple(sorted(self._ciphers))

    @property
    def keeps_its_keys(self) -> bool:
        """They are in a file of ours, and not given by the operator."""
        return self._path is not None

    def rotate(self) -> int:
        """Make a newer master key, which seals from now on; gives its version. Raises StartupFailed."""
        if self._path is None:
            raise StartupFailed("the master keys are given by the operator")
        version = add_key(self._path, random_bytes=self._random)
        self._refresh()
        return version

    def retire(self) -> None:
        """Forget all keys but the newest, by which everything is sealed. Raises StartupFailed."""
        if self._path is not None:
            drop_keys_before(self._path, self.newest)
            self._refresh()

    def _refresh(self) -> None:
        """Take over what another process, or this one, has written."""
        if self._path is None:
            return
        status = self._path.stat()
        seen = (status.st_ino, status.st_mtime_ns)
        if seen != self._seen:
            self._take(load_or_make_keys(self._path))
            self._seen = seen

    def seal(self, plaintext: bytes, identity: bytes) -> bytes:
        """Seal for one place: only the same ``identity`` opens it."""
        self._refresh()
        data_key, nonce = self._random(KEY_BYTES), self._random(NONCE_BYTES)
        secret = AESGCM(data_key).encrypt(nonce, plaintext, identity)
        return self._wrap(data_key, identity) + nonce + secret

    def open(self, sealed: bytes, identity: bytes) -> bytes:
        """Give the plain text. Raises VaultError."""
        data_key = self._unwrap(sealed, identity)
        try:
            return AESGCM(data_key).decrypt(sealed[_NONCE_AT:_SECRET_AT], sealed[_SECRET_AT:], identity)
        except InvalidTag:
            raise VaultError("a sealed secret was changed") from None

    def is_current(self, sealed: bytes) -> bool:
        """Whether the newest master key sealed it."""
        return self._version(sealed) == self.newest

    def reseal(self, sealed: bytes, identity: bytes) -> bytes:
        """Put the data key under the newest master key.

        The secret itself is not touched. Raises VaultError.
        """
        return self._wrap(self._unwrap(sealed, identity), identity) + sealed[_NONCE_AT:]

    def _wrap(self, data_key: bytes, identity: bytes) -> bytes:
        head, nonce = _HEAD.pack(_FORMAT, self.newest), self._random(NONCE_BYTES)
        return head + nonce + self._ciphers[self.newest].encrypt(nonce, data_key, head + identity)

    def _unwrap(self, sealed: bytes, identity: bytes) -> bytes:
        version = self._version(sealed)
        if version not in self._ciphers:
            self._refresh()
        cipher = self._ciphers.get(version)
        if cipher is None:
            raise VaultError(f"master key {version} sealed this, and there are only {sorted(self._ciphers)}")
        head = sealed[: _HEAD.size]
        try:
            return cipher.decrypt(
                sealed[_HEAD.size : _WRAPPED_AT], sealed[_WRAPPED_AT:_NONCE_AT], head + identity
            )
        except InvalidTag:
            raise VaultError(
                "a sealed secret was changed, or belongs elsewhere, or its master key is another"
            ) from None

    def _version(self, sealed: bytes) -> int:
        version = version_of(sealed)
        if version is None:
            raise VaultError("these bytes are not a sealed secret")
        return version


def version_of(sealed: bytes) -> int | None:
    """The version of the master key that sealed it; None for bytes that are not a sealed secret."""
    if len(sealed) < _SECRET_AT + 16 or sealed[0] != _FORMAT:
        return None
    version: int = _HEAD.unpack_from(sealed)[1]
    return version


def open_vault(folder: Path, environ: Mapping[str, str]) -> Vault:
    """Open with the keys of ``SEXTON_MASTER_KEY``, else of the folder's key file, which is made at first.

    Raises StartupFailed when the keys cannot be read, or are there for others to read.
    """
    if text := environ.get(KEY_VARIABLE):
        keys = keys_from_text(text, KEY_VARIABLE)
        return Vault(keys, sealing=_pinned(keys, environ.get(SEALING_VARIABLE)))
    path = folder / KEY_FILE
    return Vault(load_or_make_keys(path), path=path)


def _pinned(keys: MasterKeys, given: str | None) -> int | None:
    if not given:
        return None
    if not given.isdecimal() or int(given) not in keys:
        raise StartupFailed(f"{SEALING_VARIABLE} is no version of a key in {KEY_VARIABLE}")
    return int(given)
