"""Says no in time for all workers of a server: one table of callers in memory that they share."""

import fcntl
import hashlib
import mmap
import os
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from sexton_http.gateway.limits import BURST_S, Quota, Verdict, judge

BUCKETS: Final = 8192
ENTRIES: Final = 8
"""Callers that one bucket holds: 65,536 in all, as one process remembers."""
TRIES: Final = 3
_SECRET_BYTES: Final = 16
_HEAD_BYTES: Final = 64
_ENTRY: Final = struct.Struct("=Qd")
_BUCKET: Final = struct.Struct("=" + "Qd" * ENTRIES)


class SharedGcra:
    """The same as ``Gcra``, in memory of a fixed size: a caller's mark, and when its bucket is empty again.

    A request costs no message and no wait: two calls of the kernel, to lock the few callers of a bucket.
    A worker that was stopped while it held a lock delays nobody, for others go on without it after three
    tries; then at most what one of them counted meanwhile is lost. The kernel releases the locks of the dead.
    """

    def __init__(self, file: int, monotonic: Callable[[], float] = time.monotonic) -> None:
        """``file``: the memory that ``make_table`` made; ``monotonic``: a clock that all workers share."""
        self._file = file
        self._monotonic = monotonic
        self._memory = mmap.mmap(file, _HEAD_BYTES + BUCKETS * _BUCKET.size)
        self._secret = bytes(self._memory[:_SECRET_BYTES])

    def __repr__(self) -> str:
        return f"<SharedGcra {BUCKETS * ENTRIES} callers>"

    def admit(self, key: object, rate: int) -> Verdict:
        return self.spend(key, Quota(rate * BURST_S, BURST_S))

    def spend(self, key: object, quota: Quota) -> Verdict:
        mark, at = self._place(key)
        with self._locked(at):
            now = self._monotonic()
            row = _BUCKET.unpack_from(self._memory, at)
            marks, times = row[::2], row[1::2]
            # Without an entry: that of whoever is nearest to an empty bucket, or has one.
            number = marks.index(mark) if mark in marks else times.index(min(times))
            verdict, after = judge(now, times[number] if marks[number] == mark else now, quota)
            if verdict.allowed:
                _ENTRY.pack_into(self._memory, at + number * _ENTRY.size, mark, after)
        return verdict

    def _place(self, key: object) -> tuple[int, int]:
        """The caller's mark, and where its bucket is. Nobody outside can choose with whom he shares one."""
        digest = hashlib.blake2b(repr(key).encode(), digest_size=16, key=self._secret).digest()
        bucket = int.from_bytes(digest[:8], "little") % BUCKETS
        return int.from_bytes(digest[8:], "little") | 1, _HEAD_BYTES + bucket * _BUCKET.size

    @contextmanager
    def _locked(self, at: int) -> Iterator[None]:
        held = False
        for _ in range(TRIES):
            try:
                fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, _BUCKET.size, at)
            except OSError:
                continue
            held = True
            break
        try:
            yield
        finally:
            if held:
                fcntl.lockf(self._file, fcntl.LOCK_UN, _BUCKET.size, at)


def make_table() -> int:
    """Memory for the callers of one server, by its descriptor."""
    file = os.memfd_create("sexton-limits")
    os.ftruncate(file, _HEAD_BYTES + BUCKETS * _BUCKET.size)
    os.pwrite(file, os.urandom(_SECRET_BYTES), 0)
    return file
