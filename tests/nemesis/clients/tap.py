"""Whether senders may begin another delivery: the run closes it while too much waits for the holders."""

from __future__ import annotations

import trio


class Tap:
    """Open at first."""

    def __init__(self) -> None:
        self._open = trio.Event()
        self._open.set()

    def close(self) -> None:
        if self._open.is_set():
            self._open = trio.Event()

    def open(self) -> None:
        self._open.set()

    async def until_open(self) -> None:
        await self._open.wait()
