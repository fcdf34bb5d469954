"""Seals the keys of a data folder to a public key, so that whoever holds a backup cannot read them.

HPKE (RFC 9180) with X25519, HKDF-SHA256 and AES-256-GCM. The backup's id is bound in: keys of one backup do
not open as those of another.
"""

import base64
import binascii
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite

from sexton_storage.backups.faults import BackupFault

PUBLIC: Final = "sexton-backup-public:"
PRIVATE: Final = "sexton-backup-private:"
_SUITE: Final = Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.AES_256_GCM)
_PURPOSE: Final = b"sexton backup keys 1:"
_MAKE: Final = "'sexton backup keygen --to FILE' makes a key pair and prints the public key"


def make_key(path: Path) -> str:
    """Write a new private key to a file that must not be there yet; gives the public key.

    Raises BackupFault.
    """
    key = X25519PrivateKey.generate()
    text = f"{PRIVATE}{base64.b64encode(key.private_bytes_raw()).decode()}\n"
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(text)
            file.flush()
            os.fsync(descriptor)
    except OSError as fault:
        raise BackupFault(
            f"{path} cannot be made: {fault.strerror}", "Give --to a file that is not there yet"
        ) from fault
    return public_text(key.public_key())


def read_recipient(text: str) -> X25519PublicKey:
    """Read a public key. Raises BackupFault."""
    try:
        raw = base64.b64decode(text.strip().removeprefix(PUBLIC), validate=True)
        return X25519PublicKey.from_public_bytes(raw)
    except (ValueError, binascii.Error):
        raise BackupFault("the recipient is no public key for backups", _MAKE) from None


def read_key(path: Path) -> X25519PrivateKey:
    """Read a private key. Raises BackupFault."""
    way_out = "Give --key the file that 'sexton backup keygen' wrote"
    try:
        text = path.read_text(encoding="ascii").strip()
        raw = base64.b64decode(text.removeprefix(PRIVATE), validate=True)
        return X25519PrivateKey.from_private_bytes(raw)
    except OSError as fault:
        raise BackupFault(f"{path} cannot be read: {fault.strerror}", way_out) from fault
    except (ValueError, binascii.Error):
        raise BackupFault(f"{path} holds no private key for backups", way_out) from None


def seal(files: Mapping[str, bytes], recipient: X25519PublicKey, backup_id: str) -> bytes:
    """Seal files by their names."""
    return _SUITE.encrypt(msgspec.json.encode(files), recipient, _PURPOSE + backup_id.encode())


def unseal(sealed: bytes, key: X25519PrivateKey, backup_id: str, recipient: str) -> Mapping[str, bytes]:
    """Open what was sealed to ``recipient``. Raises BackupFault."""
    ours = public_text(key.public_key())
    if ours != recipient:
        raise BackupFault(
            f"the key does not fit: the backup's keys are sealed to {recipient}, and it is that of {ours}",
            "Give --key the private key of that recipient",
        )
    try:
        opened = _SUITE.decrypt(sealed, key, _PURPOSE + backup_id.encode())
    except (InvalidTag, ValueError):
        raise BackupFault(
            "the sealed keys do not open: they were changed, or belong to another backup",
            "Use another backup",
        ) from None
    return msgspec.json.decode(opened, type=dict[str, bytes])


def public_text(key: X25519PublicKey) -> str:
    """Write a public key as ``keygen`` prints it."""
    return f"{PUBLIC}{base64.b64encode(key.public_bytes_raw()).decode()}"
