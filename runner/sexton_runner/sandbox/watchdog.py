"""Ends a sandbox that takes more memory than it may, where no control group does."""

import trio

from sexton_runner.sandbox.memory_use import Sight, look_into
from sexton_runner.sandbox.process import Child

TICK_S = 0.05
"""A command on two processors fills some hundred MiB in that time, which its host has to have to spare."""


class Watchdog:
    """Looks after one child until cancelled."""

    def __init__(self, child: Child, limit: int) -> None:
        self._child = child
        self._limit = limit
        self.has_seen = trio.Event()
        """Set once it has looked inside: from then on the bound holds."""
        self.has_bitten = False
        self.peak = 0

    async def run(self) -> None:
        """Look each tick; off the event loop, because the kernel may take its time to tell."""
        sight: Sight | None = None
        try:
            while not self.has_bitten:
                if sight is None:
                    sight = look_into(self._child)
                else:
                    await self._look(sight)
                await trio.sleep(TICK_S)
        finally:
            if sight is not None:
                sight.close()

    async def _look(self, sight: Sight) -> None:
        # Not abandoned when cancelled: it reads from descriptors that are closed then.
        try:
            used = await trio.to_thread.run_sync(sight.used, self._limit)
            if used > self._limit:
                # Processes that fork or end while they are counted may be counted twice.
                used = min(used, await trio.to_thread.run_sync(sight.used, self._limit))
        except OSError:
            return  # It is ending, or this kernel does not let us look: then it is never said to be bounded.
        self.peak = max(self.peak, used)
        self.has_seen.set()
        if used > self._limit:
            self.has_bitten = True
            self._child.kill()
