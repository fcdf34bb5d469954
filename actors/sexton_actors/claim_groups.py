"""The claims of one poll on their way to the journal: they wait for one another, and are one statement there.

States of a claim's part: *expected*, until its queue has its write; *ready*, with its write; *sent*, with all
that are ready. One that has nothing to write, or is stopped before it was sent, is *out*. The group is sent
when no part is expected any more, or ``MOMENT_S`` after the first was ready, whichever comes first; at once
when the first is stopped. A part that is ready later is sent alone.
"""

from collections.abc import Sequence
from typing import Any, Final

import trio

from sexton_storage.stores import Journal
from sexton_storage.writes import Claimed, ClaimEvent, Exhausted, NothingToClaim

MOMENT_S: Final = 0.01
"""Longer than queues need that have all at hand; one that has to read first is not waited for."""

Outcome = Claimed | NothingToClaim | Exhausted


class _Ready:
    __slots__ = ("answer", "answered", "write")

    def __init__(self, write: ClaimEvent) -> None:
        self.write = write
        self.answered = trio.Event()
        self.answer: Any = None

    def done(self, answer: Any) -> None:
        self.answer = answer
        self.answered.set()


class ClaimGroup:
    """As many claims as a poll has found agents for."""

    __slots__ = ("_all_here", "_expected", "_is_sent", "_journal", "_ready")

    def __init__(self, journal: Journal, count: int) -> None:
        self._journal = journal
        self._expected = count
        self._ready: list[_Ready] = []
        self._all_here = trio.Event()
        self._is_sent = False

    def __repr__(self) -> str:
        return f"<ClaimGroup {len(self._ready)} ready, {self._expected} expected>"

    def parts(self) -> Sequence["ClaimPart"]:
        """One for each claim."""
        return [ClaimPart(self) for _ in range(self._expected)]

    async def write(self, write: ClaimEvent) -> Outcome:
        """Raises StorageUnavailable."""
        if self._is_sent:
            return await self._journal.write(write)
        mine, is_first = _Ready(write), not self._ready
        self._ready.append(mine)
        self.drop()
        try:
            if is_first and not self._is_sent:
                # It keeps the time for all: the others wait for their answers only.
                with trio.move_on_after(MOMENT_S):
                    await self._all_here.wait()
                self._send()
            await mine.answered.wait()
        except BaseException:
            if mine in self._ready:
                self._ready.remove(mine)
            if is_first and self._ready:
                self._send()
            raise
        if isinstance(mine.answer, Exception):
            raise mine.answer
        outcome: Outcome = mine.answer
        return outcome

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
        self._journal.submit_all([(one.write, one.done) for one in ready])
        self._all_here.set()


class ClaimPart:
    """What one queue has of a group."""

    __slots__ = ("_group",)

    def __init__(self, group: ClaimGroup) -> None:
        self._group: ClaimGroup | None = group

    async def write(self, write: ClaimEvent) -> Outcome | None:
        """Raises StorageUnavailable; None when the part was used already: the claim goes alone."""
        group, self._group = self._group, None
        return None if group is None else await group.write(write)

    def drop(self) -> None:
        """There is nothing to write; after ``write``, and a second time, it does nothing."""
        group, self._group = self._group, None
        if group is not None:
            group.drop()
