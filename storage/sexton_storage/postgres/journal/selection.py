"""Chooses the writes of a lane's next batch, and how long to wait for more of them."""

from collections import deque
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

from sexton_storage.postgres.journal.batch import TOUCHED
from sexton_storage.writes import Write

Done = Callable[[Any], None]
LOOK_AHEAD = 4
"""Batches' worth of queue that is searched for writes which do not stand in each other's way."""
GATHER_S = 0.001
"""How long a lane that has been busy waits for the writes that the last commit set free to come."""
CROWD = 8
"""A batch of this many writes or more pays: a batch costs as much as eight or so of its writes do."""
FORGETTING = 0.9
"""What is left of a crowd with each batch that is smaller."""


class Waiting(NamedTuple):
    """A write in the queue, who is to be told, and when it came (monotonic seconds)."""

    write: Write[Any]
    done: Done
    since: float


def gathering_s(queued: int, crowd: float) -> float:
    """Tell how long to wait for more writes before a batch begins, in seconds.

    Those who were told of a commit come back within the next moments, if they come back. A batch that takes
    the first of them alone makes all others wait for it. Who is alone is never kept waiting; the idea is that
    of PostgreSQL's ``commit_delay`` and ``commit_siblings``.

    >>> (
    ...     gathering_s(queued=1, crowd=1.0),
    ...     gathering_s(queued=2, crowd=32.0),
    ...     gathering_s(queued=20, crowd=32.0),
    ... )
    (0.0, 0.001, 0.0)
    """
    return GATHER_S if crowd >= CROWD and queued < crowd / 2 else 0.0


def choose(earlier: deque[Waiting], queue: deque[Waiting], limit: int) -> tuple[list[Waiting], list[Waiting]]:
    """Take a batch in which no two writes are about the same thing, and those that it goes ahead of.

    The later of two such waits for the next batch. ``earlier`` goes before ``queue``; what is left of it is
    given back as well.
    """
    taken: list[Waiting] = []
    alone: set[Hashable] = set()
    shared: set[Hashable] = set()
    back: list[Waiting] = []
    while len(taken) < limit and len(back) < LOOK_AHEAD * limit:
        if not (earlier or queue):
            break
        waiting = earlier.popleft() if earlier else queue.popleft()
        touched = TOUCHED[type(waiting.write)](waiting.write)
        if alone.isdisjoint(touched.alone + touched.shared) and shared.isdisjoint(touched.alone):
            taken.append(waiting)
        else:
            back.append(waiting)
        alone.update(touched.alone)
        shared.update(touched.shared)
    back.extend(earlier)
    return taken, back
