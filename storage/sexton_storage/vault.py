"""Seals secrets so that only the master key, and only for the same row, opens them again.

Envelope encryption: each secret has a data key of its own (AES-256-GCM), which the newest master key seals. Both
layers bind the identity of the row as associated data, so a sealed value copied to another row does not open.
"""

import os
import re
import struct
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from sexton_storage.startup import StartupFailed

KEY_BYTES: Final = 32
NONCE_BYTES: Final = 12
TAG_BYTES: Final = 16
KEY_FILE: Final = "master.keys"
KEY_VARIABLE: Final = "SEXTON_MASTER_KEY"
_HEAD: Final = struct.Struct(">BI")
"""The format of what follows, and the version of the master key."""
_FORMAT: Final = 1
_LINE: Final = re.compile(r"(\d{1,9}):([0-9a-f]{64})")


class VaultFailed(StartupFailed):
    """The master keys cannot be read; without them no secret opens."""


class SealBroken(ValueError):
    """These bytes were not sealed here, or not for this row, or their master key is gone."""


class Vault:
    """Holds the master keys; makes and opens envelopes. ``random`` gives so many unguessable bytes."""

    def __init__(self, keys: Mapping[int, bytes], random: Callable[[int], bytes] = os.urandom) -> None:
        if not keys or any(len(key) != KEY_BYTES for key in keys.values()):
            raise VaultFailed(f"a master key is {KEY_BYTES} bytes, and there must be one at least")
        self._ciphers = {version: AESGCM(key) for version, key in keys.items()}
        self._newest = max(keys)
        self._random = random

    def __repr__(self) -> str:
        return f"<Vault seals with version {self._newest} of {len(self._ciphers)}>"

    @property
    def version(self) -> int:
        """Of the key that seals."""
        return self._newest

    def seal(self, plaintext: bytes, identity: bytes) -> bytes:
        """An envelope of 77 bytes more than ``plaintext``."""
        head = _HEAD.pack(_FORMAT, self._newest)
        data_key, outer, inner = self._random(KEY_BYTES), self._random(NONCE_BYTES), self._random(NONCE_BYTES)
        wrapped = self._ciphers[self._newest].encrypt(outer, data_key, head + identity)
        return head + outer + wrapped + inner + AESGCM(data_key).encrypt(inner, plaintext, head + identity)

    def open(self, sealed: bytes, identity: bytes) -> bytes:
        """The plain text. Raises SealBroken."""
        try:
            head = sealed[: _HEAD.size]
            form, version = _HEAD.unpack(head)
            if form != _FORMAT:
                raise SealBroken(f"envelope format {form} is not known")
            outer, wrapped, inner, body = _parts(sealed[_HEAD.size :])
            data_key = self._ciphers[version].decrypt(outer, wrapped, head + identity)
            return AESGCM(data_key).decrypt(inner, body, head + identity)
        except KeyError as fault:
            raise SealBroken(f"master key version {fault} is not here") from fault
        except (struct.error, InvalidTag, ValueError) as fault:
            raise SealBroken("the envelope does not open for this row") from fault

    def version_of(self, sealed: bytes) -> int:
        """The master key that ``sealed`` needs. Raises SealBroken."""
        try:
            return int(_HEAD.unpack(sealed[: _HEAD.size])[1])
        except struct.error as fault:
            raise SealBroken("this is no envelope") from fault


def _parts(rest: bytes) -> tuple[bytes, bytes, bytes, bytes]:
    wrapped_at = NONCE_BYTES
    inner_at = wrapped_at + KEY_BYTES + TAG_BYTES
    body_at = inner_at + NONCE_BYTES
    return rest[:wrapped_at], rest[wrapped_at:inner_at], rest[inner_at:body_at], rest[body_at:]


# --- where the keys are kept -----------------------------------------------------------------------------------------


def read_keys(text: str) -> dict[int, bytes]:
    """Keys by version, from ``version:hex`` separated by commas or lines; hex alone is version 1.

    >>> sorted(read_keys("1:" + "00" * 32 + ",2:" + "01" * 32))
    [1, 2]
    """
    keys: dict[int, bytes] = {}
    for word in re.split(r"[\s,]+", text.strip().lower()):
        match = _LINE.fullmatch(word if ":" in word else f"1:{word}")
        if match is None:
            raise VaultFailed("a master key is written as version:hex, with 64 hex digits")
        keys[int(match[1])] = bytes.fromhex(match[2])
    return keys


def open_vault(
    folder: Path, environ: Mapping[str, str], random: Callable[[int], bytes] = os.urandom
) -> Vault:
    """The vault whose keys are in SEXTON_MASTER_KEY, else in the folder's file, which is made when there is none.

    Raises VaultFailed. The file is its owner's alone (mode 0600) and on disk before it is used.
    """
    if given := environ.get(KEY_VARIABLE):
        return Vault(read_keys(given), random)
    path = folder / KEY_FILE
    try:
        if not path.exists():
            _make(path, f"1:{random(KEY_BYTES).hex()}\n")
        if path.stat().st_mode & 0o077:
            raise VaultFailed(f"{path} can be read by others: chmod 600 it")
        return Vault(read_keys(path.read_text(encoding="ascii")), random)
    except (OSError, UnicodeDecodeError) as fault:
        raise VaultFailed(f"{path} cannot be read or made: {fault}") from fault


def _make(path: Path, text: str) -> None:
    # Linked into place, so that of two starters one makes the keys and the other finds them, whole.
    part = path.with_name(f"{path.name}.{os.getpid()}")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        os.write(descriptor, text.encode("ascii"))
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    try:
        path.hardlink_to(part)
    except FileExistsError:
        pass
    finally:
        part.unlink()
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
