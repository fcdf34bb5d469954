"""Sees to it that a data directory has one owner at a time."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sexton_storage.startup import AlreadyOwned, ConnectFailed


@contextmanager
def owned(base: Path) -> Iterator[None]:
    """Hold the directory's lock; it goes with the process, however that ends. Raises AlreadyOwned."""
    try:
        base.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(base / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise ConnectFailed(f"the data directory {base} cannot be used: {error.strerror}") from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(descriptor, 32, 0).decode(errors="replace").strip()
            raise AlreadyOwned(f"{base} is in use by process {holder or 'unknown'}") from None
        os.truncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(descriptor)
