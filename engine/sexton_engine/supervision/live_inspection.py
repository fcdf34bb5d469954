"""Shows single activations to an operator, and restarts one."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from heapq import nlargest
from itertools import islice
from typing import Final

import trio

from sexton_engine.activation.cell import Cell
from sexton_engine.activation.kind import Environment
from sexton_engine.activation.lifecycle import kill
from sexton_engine.activation.phase import Phase, Request
from sexton_engine.actor import Actor
from sexton_engine.inspection import Inspection
from sexton_engine.mail.dead_letters import DeadLetter
from sexton_engine.statistics import ActorStatistics, CrashRecord, HandledMessage
from sexton_engine.supervision.directory import Directory
from sexton_engine.supervision.nodes import KILL_GRACE_S

__all__ = ["LiveInspection"]

LOOKED_AT: Final = 100_000
"""Activations of a kind that are looked at: each costs some hundred nanoseconds of the loop."""
TIMERS_SHOWN: Final = 100


class LiveInspection(Inspection):
    """Looks at one system."""

    __slots__ = ("_directory", "_env")

    def __init__(self, directory: Directory, env: Environment[Cell]) -> None:
        self._directory = directory
        self._env = env

    def now(self) -> float:
        """As in ``Inspection``."""
        return self._env.monotonic()

    def actors(self, kind: str, *, limit: int) -> Sequence[ActorStatistics]:
        """As in ``Inspection``."""
        cells = list(islice(self._directory.kind(kind).cells.values(), LOOKED_AT))
        return [self._view(cell) for cell in nlargest(limit, cells, key=_weight)]

    def actor(self, kind: str, key: Hashable) -> ActorStatistics | None:
        """As in ``Inspection``."""
        cell = self._directory.find(kind, key)
        return None if cell is None else self._view(cell)

    def crashes(self, kind: str | None = None, key: Hashable | None = None) -> Sequence[CrashRecord]:
        """As in ``Inspection``."""
        return self._env.crashes.latest(kind, None if key is None else str(key))

    def dead_letters(self, kind: str | None = None, key: Hashable | None = None) -> Sequence[DeadLetter]:
        """As in ``Inspection``."""
        return [
            letter
            for letter in reversed(self._env.dead_letters.latest())
            if kind in {None, letter.kind} and (key is None or key == letter.key)
        ]

    def record(self, kind: str, key: Hashable, for_s: float) -> Sequence[HandledMessage]:
        """As in ``Inspection``."""
        cell = self._directory.find(kind, key)
        if cell is None:
            return []
        return self._env.recordings.look(cell, cell.actor, for_s, self._env.deadlines)

    async def restart(self, kind: str, key: Hashable) -> bool:
        """As in ``Inspection``."""
        cell = self._directory.find(kind, key)
        actor = None if cell is None else cell.actor
        if cell is None or actor is None or not cell.of_kind.owner.restart_wanted(cell):
            await trio.lowlevel.checkpoint()
            return False
        with trio.move_on_after(cell.of_kind.shutdown_s) as budget:
            await _gone(cell, actor)
        if budget.cancelled_caught:
            if self._directory.is_family(kind):  # else its supervisor does so
                kill(cell, Request.KILL_KEEPING_MAIL)
            with trio.move_on_after(KILL_GRACE_S):
                await _gone(cell, actor)
        return True

    def _view(self, cell: Cell) -> ActorStatistics:
        kind, attached, current = cell.of_kind, cell.attachments, cell.current
        now = self._env.monotonic()
        oldest = cell.mailbox.oldest_at()
        timers = None if attached is None else attached.timers
        return ActorStatistics(
            kind=kind.name,
            key=str(cell.name),
            state=cell.phase.value,
            mailbox_depth=len(cell.mailbox),
            mailbox_age_s=0.0 if oldest is None else max(0.0, now - oldest),
            mailbox_capacity=cell.mailbox.spec.capacity,
            mailbox_peak=cell.mailbox.peak,
            handling=None if current is None else type(current.message).__name__,
            handling_s=0.0 if current is None else max(0.0, now - current.sent_at),
            timers=() if timers is None else tuple(timers.view(now)[:TIMERS_SHOWN]),
            tasks=0 if attached is None else len(attached.tasks),
            replies_owed=0 if attached is None else len(attached.deferred),
            restarts=len(cell.crashed_at or ()),
            is_single=not self._directory.is_family(kind.name),
        )


async def _gone(cell: Cell, actor: Actor) -> None:
    # Not wait_end: the next instance may be there before whoever waits has its turn.
    while cell.actor is actor and cell.phase is not Phase.OVER:
        if cell.end_event is None:
            cell.end_event = trio.Event()
        await cell.end_event.wait()


def _weight(cell: Cell) -> tuple[int, bool, bool]:
    return len(cell.mailbox), cell.current is not None, cell.actor is not None
