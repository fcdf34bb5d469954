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

from sexton_storage.masterkeys import MasterKeys, keys_from_text, load_or_make_keys
from sexton_storage.stores import StorageError

KEY_VARIABLE = "SEXTON_MASTER_KEY"
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
    """Seals with the newest master key, opens with any that it has."""

    def __init__(self, keys: MasterKeys, *, random_bytes: Callable[[int], bytes] = os.urandom) -> None:
        self._ciphers = {version: AESGCM(key) for version, key in keys.items()}
        self._random = random_bytes
        self.newest = max(keys)

    def __repr__(self) -> str:
        return f"<Vault with master keys {sorted(self._ciphers)}>"

    def seal(self, plaintext: bytes, identity: bytes) -> bytes:
        """Seal for one place: only the same ``identity`` opens it."""
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
        if len(sealed) < _SECRET_AT + 16 or sealed[0] != _FORMAT:
            raise VaultError("these bytes are not a sealed secret")
        version: int = _HEAD.unpack_from(sealed)[1]
        return version


def open_vault(folder: Path, environ: Mapping[str, str]) -> Vault:
    """Open with the keys of ``SEXTON_MASTER_KEY``, else of the folder's key file, which is made at first.

    Raises StartupFailed when the keys cannot be read, or are there for others to read.
    """
    if text := environ.get(KEY_VARIABLE):
        return Vault(keys_from_text(text, KEY_VARIABLE))
    return Vault(load_or_make_keys(folder / KEY_FILE))
