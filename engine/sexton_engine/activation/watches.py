"""Who watches whom: each side of a watch is noted at the other, so that either may end first."""

from __future__ import annotations

from sexton_engine.activation.cell import Cell
from sexton_engine.context import Ending, Terminated
from sexton_engine.mail.mailbox import Envelope
from sexton_engine.message import Lane

__all__ = ["begin_watch", "end_watch", "tell", "tell_watchers"]


def begin_watch(watcher: Cell, watched: Cell) -> None:
    """Have the watcher told once when the other one ends."""
    if watcher.watching is None:
        watcher.watching = set()
    watcher.watching.add(watched)
    if watched.watchers is None:
        watched.watchers = {}
    watched.watchers[watcher] = None


def end_watch(watcher: Cell, watched: Cell) -> None:
    """Take a watch back; one that never was is fine."""
    if watcher.watching is not None:
        watcher.watching.discard(watched)
    if watched.watchers is not None:
        watched.watchers.pop(watcher, None)


def tell_watchers(cell: Cell, ending: Ending) -> None:
    """Tell each watcher once that the activation has ended. Its own watches end too."""
    for watched in list(cell.watching or ()):
        end_watch(cell, watched)
    watchers = list(cell.watchers or ())
    for watcher in watchers:
        end_watch(watcher, cell)
    cell.watching = cell.watchers = None
    terminated = Terminated(cell.of_kind.name, cell.name, ending)
    for watcher in watchers:
        tell(watcher, terminated)


def tell(watcher: Cell, terminated: Terminated) -> None:
    """Put it into the watcher's mailbox."""
    now = watcher.of_kind.env.monotonic()
    watcher.post_quietly(Envelope(terminated, None, now, Lane.SUPERVISION))
