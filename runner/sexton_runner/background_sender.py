"""Sends what a run puts, batch by batch, without delaying the run."""

from abc import ABC, abstractmethod
from typing import Any, Generic, TypeVar

import trio

from sexton_runner.timing import Timing

B = TypeVar("B", bound=list[Any])


class BackgroundSender(ABC, Generic[B]):
    """One per run; ``gather_s`` is how long it waits for more before a batch goes out."""

    def __init__(self, timing: Timing, gather_s: float) -> None:
        self._timing, self._gather_s = timing, gather_s
        self._wanted = trio.Event()
        self._hurry = trio.Event()
        self._idle = trio.Event()
        self._idle.set()

    @abstractmethod
    def _take(self) -> B:
        """Give the next batch, in order; empty when there is none."""

    @abstractmethod
    async def _send(self, batch: B) -> None:
        """Send it, and come back when it has been answered or given up."""

    @property
    def is_idle(self) -> bool:
        """Tell whether all that was put has been answered."""
        return self._idle.is_set()

    def _note(self) -> None:
        """Something was put."""
        self._idle = trio.Event() if self._idle.is_set() else self._idle
        self._wanted.set()

    async def flush(self) -> None:
        """Wait until all that was put has been answered, but no longer than ``flush_patience_s``."""
        self._hurry.set()
        with trio.move_on_after(self._timing.flush_patience_s):
            await self._idle.wait()

    async def run(self) -> None:
        """Send until cancelled."""
        while True:
            await self._wanted.wait()
            self._wanted = trio.Event()
            with trio.move_on_after(self._gather_s):
                await self._hurry.wait()
            while batch := self._take():
                await self._send(batch)
            self._hurry = trio.Event()
            self._idle.set()
