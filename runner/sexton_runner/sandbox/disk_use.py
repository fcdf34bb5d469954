"""Ends a run whose files take more of the host's disk than they may, where its folder is not in memory."""

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import trio

from sexton_runner.sandbox.process import Child

TICK_S = 0.25
REST = 4
"""How long it rests at least, in times of what a look took: many files must not cost a processor."""
BLOCK_BYTES = 512
INODE_BYTES = 4096
"""What a file takes beside its contents, near enough."""


def used(folder: Path, keeper: int, enough: int) -> int:
    """Give the bytes that a run has on disk, in its folder and in deleted files that it keeps open.

    Stops counting once it is more than ``enough``.
    """
    total = 0
    for size in _sizes(folder, keeper):
        total += size
        if total > enough:
            break
    return total


def _sizes(folder: Path, keeper: int) -> Iterator[int]:
    waiting = [str(folder)]
    while waiting:
        # What goes away meanwhile is not there any more, which is well.
        with suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                with suppress(OSError):
                    yield _size(entry.stat(follow_symlinks=False))
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
    counted: set[tuple[int, int]] = set()
    for pid in _below(keeper):
        with suppress(OSError), os.scandir(f"/proc/{pid}/fd") as descriptors:
            for descriptor in descriptors:
                with suppress(OSError):
                    told = os.stat(descriptor.path)  # noqa: PTH116 - of a descriptor
                    is_lost = stat.S_ISREG(told.st_mode) and told.st_nlink == 0
                    if is_lost and (told.st_dev, told.st_ino) not in counted:
                        counted.add((told.st_dev, told.st_ino))
                        yield _size(told)


def _size(told: os.stat_result) -> int:
    return told.st_blocks * BLOCK_BYTES + INODE_BYTES


def _below(keeper: int) -> Iterator[int]:
    """Give all processes of the run: the keeper adopts those whose parents have ended."""
    waiting = [keeper]
    while waiting:
        pid = waiting.pop()
        with suppress(OSError):
            for task in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208 - names only
                with suppress(OSError):
                    text = Path(f"/proc/{pid}/task/{task}/children").read_text(encoding="ascii")
                    found = [int(word) for word in text.split()]
                    waiting += found
                    yield from found


class DiskWatch:
    """Looks after one child's folder until cancelled."""

    def __init__(self, child: Child, folder: Path, limit: int) -> None:
        self._child, self._folder, self._limit = child, folder, limit
        self.has_bitten = False

    async def run(self) -> None:
        """Look each tick, off the event loop: a disk may take its time."""
        while not self.has_bitten:
            began = trio.current_time()
            if await trio.to_thread.run_sync(used, self._folder, self._child.pid, self._limit) > self._limit:
                self.has_bitten = True
                self._child.kill()
            await trio.sleep(max(TICK_S, REST * (trio.current_time() - began)))
