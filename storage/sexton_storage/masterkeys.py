"""Keeps the vault's master keys in a file that only its owner can read."""

import base64
import binascii
import os
import stat
from collections.abc import Callable, Mapping
from pathlib import Path

from sexton_storage.startup import StartupFailed

MasterKeys = Mapping[int, bytes]
"""Version (from 1) to 32 bytes; the highest version seals."""
KEY_BYTES = 32
MAX_VERSION = 2**32 - 1


def keys_from_text(text: str, source: str) -> MasterKeys:
    """Read ``version:base64`` entries, one a line or comma-separated; a bare one has version 1.

    ``source`` is what a complaint names. Raises StartupFailed.
    """
    keys: dict[int, bytes] = {}
    for entry in text.replace(",", "\n").split():
        version, key = _entry(entry, source)
        if version in keys:
            raise StartupFailed(f"{source} has master key {version} twice")
        keys[version] = key
    if not keys:
        raise StartupFailed(f"{source} holds no master key")
    return keys


def _entry(entry: str, source: str) -> tuple[int, bytes]:
    number, _, encoded = entry.rpartition(":")
    try:
        version, key = int(number or "1"), base64.b64decode(encoded, validate=True)
    except (ValueError, binascii.Error):
        raise StartupFailed(f"{source} has an entry that is not `version:base64`") from None
    if len(key) != KEY_BYTES or not 1 <= version <= MAX_VERSION:
        raise StartupFailed(f"{source} has a master key that is not {KEY_BYTES} bytes with a version from 1")
    return version, key


def load_or_make_keys(path: Path, *, random_bytes: Callable[[int], bytes] = os.urandom) -> MasterKeys:
    """Read the file; make it, with one key, when there is none. Raises StartupFailed."""
    try:
        if not path.exists():
            _write(path, {1: random_bytes(KEY_BYTES)}, replace=False)
        if stat.S_IMODE(path.stat().st_mode) & 0o077:
            raise StartupFailed(f"{path} can be read by others: give it mode 0600, and rotate the key")
        return keys_from_text(path.read_text(encoding="ascii"), str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise StartupFailed(f"{path} cannot be used: {error}") from error


def add_key(path: Path, *, random_bytes: Callable[[int], bytes] = os.urandom) -> int:
    """Add a newer key to the file, which seals from the next start on.

    Gives its version. Raises StartupFailed.
    """
    keys = load_or_make_keys(path, random_bytes=random_bytes)
    version = max(keys) + 1
    _write(path, {**keys, version: random_bytes(KEY_BYTES)}, replace=True)
    return version


def drop_keys_before(path: Path, version: int) -> None:
    """Forget older keys, once nothing is sealed by them any more. Raises StartupFailed."""
    kept = {number: key for number, key in load_or_make_keys(path).items() if number >= version}
    if not kept:
        raise StartupFailed(f"{path} has no master key {version} or newer")
    _write(path, kept, replace=True)


def _write(path: Path, keys: MasterKeys, *, replace: bool) -> None:
    """Write beside and move into place, both kept on disk before this returns.

    A lost key loses every secret.
    """
    draft = path.with_name(f"{path.name}.{os.getpid()}.new")
    lines = "".join(f"{version}:{base64.b64encode(key).decode()}\n" for version, key in sorted(keys.items()))
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        os.write(descriptor, lines.encode())
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    try:
        if replace:
            draft.replace(path)
        else:
            # Another process that starts here at the same moment may have been first: its key is the key.
            _link_once(draft, path)
    finally:
        draft.unlink(missing_ok=True)
    _sync(path.parent)


def _link_once(draft: Path, path: Path) -> None:
    try:
        path.hardlink_to(draft)
    except FileExistsError:
        return


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
