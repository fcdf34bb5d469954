"""A disk of its own for a folder, which can be full."""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import trio

WHOLE_BYTES: Final = 4 << 30
"""It lies in memory, and takes as much of it as is on it."""
LEFT_BYTES: Final = 64 << 10
"""What is left of it when it is full."""


class SmallDisk:
    """A tmpfs; it is full when it has the size of what is on it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    async def fill(self) -> None:
        """Let nothing more fit on it from now on."""
        while True:
            used = shutil.disk_usage(self.folder).used
            # What is written meanwhile may make it larger than it is to be, which the kernel refuses.
            if await self._resize(used + LEFT_BYTES):
                return

    async def empty(self) -> None:
        """Let it be as large as it was."""
        assert await self._resize(WHOLE_BYTES)

    async def _resize(self, size: int) -> bool:
        words = ["mount", "-o", f"remount,size={size}", str(self.folder)]
        done = await trio.run_process(words, check=False, capture_stderr=True)
        return done.returncode == 0


@asynccontextmanager
async def open_small_disk(folder: Path) -> AsyncIterator[SmallDisk | str]:
    """A disk mounted on a new folder, or why this machine has none; then the folder is not made."""
    if os.geteuid() != 0:
        yield "a disk of its own can be mounted by root alone"
        return
    folder.mkdir(mode=0o700)
    words = ["mount", "-t", "tmpfs", "-o", f"size={WHOLE_BYTES},mode=0700", "nemesis", str(folder)]
    mounted = await trio.run_process(words, check=False, capture_stderr=True)
    if mounted.returncode:
        yield f"tmpfs cannot be mounted: {mounted.stderr.decode(errors='replace').strip()}"
        return
    try:
        yield SmallDisk(folder)
    finally:
        with trio.CancelScope(shield=True):
            await trio.run_process(["umount", "-l", str(folder)], check=False)
