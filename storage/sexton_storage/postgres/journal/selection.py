"""Chooses the writes of a lane's next batch, and how long to wait for more of them."""

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import partial
from math import ceil
from typing import Any, NamedTuple, TypeVar

from sexton_storage.postgres.journal.batch import TOUCHED
from sexton_storage.writes import RenewLease, Write

Done = Callable[[Any], None]
UnitDone = Callable[[Sequence[int], Sequence[Any]], None]
"""Is told the places of a unit's writes that are answered, and their answers."""
LOOK_AHEAD = 4
"""Batches' worth of queue that is searched for writes which do not stand in each other's way."""
GATHER_S = 0.001
"""How long a lane that has been busy waits for the writes that the last commit set free to come."""
CROWD = 8
"""A batch of this many writes or more pays: a batch costs as much as eight or so of its writes do."""
FORGETTING = 0.9
"""What is left of a crowd with each batch that is smaller."""
HALVED = 64
"""A crowd of this many writers or more is parted; of a smaller one more commits cost more than they give."""
WORK_S = 3e-5
"""About what this process has to do for a write, from the answer to its writer's next one."""
WRITE_S = 1.2e-5
"""About what the database has to do for a write, beside what a batch costs it."""


class Waiting(NamedTuple):
    """A write in the queue, who is to be told, and when it came (monotonic seconds)."""

    write: Write[Any]
    done: Done
    since: float

    @property
    def size(self) -> int:
        return 1


class Unit(NamedTuple):
    """The renewals of one request: as one entry of the queue, they cost the lane hardly more than one."""

    writes: Sequence[RenewLease]
    """There is one lease for each, so none stands in the way of another."""
    places: range
    """Where they stand among all renewals of the request."""
    done: UnitDone
    leases: frozenset[int]
    since: float

    @property
    def size(self) -> int:
        return len(self.writes)

    def singly(self) -> Iterator[Waiting]:
        """The same as writes that each go their own way."""
        return (
            Waiting(write, partial(_tell_place, self.done, place), self.since)
            for write, place in zip(self.writes, self.places, strict=True)
        )


def _tell_place(done: UnitDone, place: int, answer: Any) -> None:
    done((place,), (answer,))


Entry = Waiting | Unit


def unit_of(writes: Sequence[RenewLease], places: range, done: UnitDone, since: float) -> Sequence[Entry]:
    """Make one entry of renewals that came together; one for each where a lease comes twice."""
    unit = Unit(writes, places, done, frozenset([write.lease.id.int for write in writes]), since)
    return [unit] if len(unit.leases) == len(writes) else list(unit.singly())


def size_of(entries: Iterable[Entry]) -> int:
    """How many writes they are."""
    return sum(entry.size for entry in entries)


def one_by_one(entries: Iterable[Entry]) -> list[Waiting]:
    """The writes of all entries, each by itself."""
    return [one for e in entries for one in (e.singly() if isinstance(e, Unit) else (e,))]


def writes_of(entries: Iterable[Entry]) -> list[Write[Any]]:
    """All writes in their order."""
    writes: list[Write[Any]] = []
    for entry in entries:
        if isinstance(entry, Unit):
            writes += entry.writes
        else:
            writes.append(entry.write)
    return writes


E = TypeVar("E", Waiting, Entry)


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


def share(crowd: float, fixed_s: float, limit: int) -> int:
    """Tell how many writes to take, so that the database and this process work at the same time.

    A batch with the writes of all who write at once makes all of them wait while it commits, and the
    database wait while they go on. So a batch takes half of them, and the other half is ready when it has
    committed. Two batches cost a commit more: that pays where the work of all takes longer than it, and on
    a slow disk it may not. ``crowd``: who writes at once; ``fixed_s``: what a commit takes beside its writes.

    >>> share(256, fixed_s=0.0005, limit=512), share(24, fixed_s=0.0005, limit=512)
    (128, 512)
    >>> share(100, fixed_s=0.006, limit=512), share(4000, fixed_s=0.006, limit=512)
    (512, 512)
    """
    pays = crowd >= HALVED and crowd * WORK_S > fixed_s
    return min(limit, ceil(crowd / 2)) if pays else limit


def fixed_part_s(took_s: float, size: int) -> float:
    """What a commit took beside its writes.

    >>> round(fixed_part_s(0.002, size=100), 4), fixed_part_s(0.002, size=1000)
    (0.0008, 0.0)
    """
    return max(0.0, took_s - size * WRITE_S)


def choose(earlier: deque[E], queue: deque[E], limit: int) -> tuple[list[E], list[E]]:
    """Take a batch in which no two writes are about the same thing, and those that it goes ahead of.

    The later of two such waits for the next batch. ``earlier`` goes before ``queue``; what is left of it is
    given back as well. A unit is taken as a whole or waits as a whole, so a batch may have a unit more than
    ``limit`` writes.
    """
    taken: list[E] = []
    alone: set[Hashable] = set()
    shared: set[Hashable] = set()
    back: list[E] = []
    count = 0
    while count < limit and len(back) < LOOK_AHEAD * limit:
        if not (earlier or queue):
            break
        entry = earlier.popleft() if earlier else queue.popleft()
        if isinstance(entry, Unit):
            wanted: Iterable[Hashable] = entry.leases
            free = alone.isdisjoint(wanted) and shared.isdisjoint(wanted)
        else:
            touched = TOUCHED[type(entry.write)](entry.write)
            wanted = touched.alone
            free = alone.isdisjoint(wanted + touched.shared) and shared.isdisjoint(wanted)
            shared.update(touched.shared)
        if free:
            taken.append(entry)
            count += entry.size
        else:
            back.append(entry)
        alone.update(wanted)
    back.extend(earlier)
    return taken, back
