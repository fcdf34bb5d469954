"""How much is accepted and not reported yet, as clients know it, so that senders do not run away."""

from __future__ import annotations

from typing import Final

import trio

MOST: Final = 1_500
LOOK_S: Final = 0.1


class Backlog:
    """The agents whose events the clients with many leases take."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._accepted: set[str] = set()
        self._ended: set[str] = set()

    def accepted(self, event: str) -> None:
        if event not in self._ended:
            self._accepted.add(event)

    def ended(self, event: str) -> None:
        """It was reported, perhaps before its sender knew that it was accepted."""
        self._ended.add(event)
        self._accepted.discard(event)

    def forget(self) -> None:
        """Count from nothing: what was dead-lettered is never reported."""
        self._accepted.clear()

    async def until_there_is_room(self) -> None:
        while len(self._accepted) >= self._most:
            await trio.sleep(LOOK_S)
