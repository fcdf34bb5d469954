"""The claims of one poll on their way to the journal: they wait for one another, and are one statement there.

States of a claim's part: *expected*, until its queue has its write; *ready*, with its write; *sent*, with all
that are ready. One that has nothing to write is *out*. The group is sent when no part is expected any more,
or ``MOMENT_S`` after it was made, whichever comes first. A part that is ready later is sent alone.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

import trio

from sexton_storage.stores import Journal
from sexton_storage.writes import ClaimEvent

MOMENT_S: Final = 0.01
"""Longer than queues need that have all at hand; one that has to read first is not waited for."""


class ClaimGroup:
    """As many claims as a poll has found agents for."""

    __slots__ = ("_expected", "_is_sent", "_journal", "_ready", "_sent")

    def __init__(self, journal: Journal, count: int) -> None:
        self._journal = journal
        self._expected = count
        self._ready: list[tuple[ClaimEvent, Callable[[Any], None]]] = []
        self._is_sent = False
        self._sent = trio.Event()

    def __repr__(self) -> str:
        return f"<ClaimGroup {len(self._ready)} ready, {self._expected} expected>"

    def parts(self) -> Sequence["ClaimPart"]:
        """One for each claim."""
        return [ClaimPart(self) for _ in range(self._expected)]

    async def keep_time(self) -> None:
        """Send what is ready in a moment, or when this is cancelled: nobody may wait for ever.

        One task for all claims; the claims themselves are held without any.
        """
        try:
            with trio.move_on_after(MOMENT_S):
                await self._sent.wait()
        finally:
            self._send()

    def submit(self, write: ClaimEvent, done: Callable[[Any], None]) -> None:
        """As ``Journal.submit``, with the others or, once they are gone, alone."""
        if self._is_sent:
            self._journal.submit(write, done)
            return
        self._ready.append((write, done))
        self.drop()

    def drop(self) -> None:
        """One is expected no more."""
        self._expected -= 1
        if self._expected == 0:
            self._send()

    def _send(self) -> None:
        if self._is_sent:
            return
        self._is_sent = True
        ready, self._ready = self._ready, []
        self._sent.set()
        self._journal.submit_all(ready)


class ClaimPart:
    """What one queue has of a group."""

    __slots__ = ("_group",)

    def __init__(self, group: ClaimGroup) -> None:
        self._group: ClaimGroup | None = group

    def submit(self, write: ClaimEvent, done: Callable[[Any], None]) -> bool:
        """As ``Journal.submit``; False when the part was used already: the claim goes alone."""
        group, self._group = self._group, None
        if group is None:
            return False
        group.submit(write, done)
        return True

    def drop(self) -> None:
        """There is nothing to write; after ``submit``, and a second time, it does nothing."""
        group, self._group = self._group, None
        if group is not None:
            group.drop()
