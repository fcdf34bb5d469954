"""Judges from what holders believed whether two held at once, and whether a stale write was taken.

All times are of one monotonic clock, in ns. A belief is taken at its most modest: it begins when the answer
came, and ends a term after its request was sent. So a clock that is read late accuses nobody.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Literal, NamedTuple

Kind = Literal["claim", "renew", "report"]


class Entry(NamedTuple):
    """One answered call about one lease, as its holder wrote it down."""

    kind: Kind
    holder: str
    key: str
    token: int | None
    grant: int
    """Tells the grants of one holder from one another."""
    sent: int
    had: int
    """When the answer came."""
    until: int
    """When the holder must stop, by this answer."""
    ok: bool


class Belief(NamedTuple):
    """A time in which a holder took itself for the only one."""

    holder: str
    key: str
    grant: int
    start: int
    end: int


class Fault(NamedTuple):
    """Something that must not be."""

    what: str
    key: str
    holders: tuple[str, str]
    """Who was first, and who came later."""
    by_ns: int
    """How long two held at once, or how much later the second came."""


DOUBLE = "held by two at once"
STALE_RENEWAL = "a renewal was taken after a later grant"
STALE_REPORT = "a report was taken although there was a later grant"
TOKEN = "a later grant has no greater token"


def check(entries: Iterable[Entry]) -> list[Fault]:
    """All faults, those of a key together.

    Two grants, one after the other, and nothing is wrong:

    >>> first = [
    ...     Entry("claim", "a", "k", 1, 0, 0, 1, 10, True),
    ...     Entry("renew", "a", "k", 1, 0, 5, 6, 15, True),
    ... ]
    >>> later = Entry("claim", "b", "k", 2, 0, 15, 16, 25, True)
    >>> check([*first, later, Entry("renew", "a", "k", 1, 0, 30, 31, 40, False)])
    []

    The same, but the second came while the first was sure of its lease:

    >>> [(fault.what, fault.by_ns) for fault in check([*first, later._replace(had=12)])]
    [('held by two at once', 3)]

    The first comes back from a pause, and what it writes is taken:

    >>> [fault.what for fault in check([*first, later, Entry("report", "a", "k", 1, 0, 30, 31, 31, True)])]
    ['a report was taken although there was a later grant']
    >>> [fault.what for fault in check([*first, later, Entry("renew", "a", "k", 1, 0, 30, 31, 40, True)])]
    ['a renewal was taken after a later grant']

    A token that does not grow fences nothing:

    >>> [fault.what for fault in check([*first, later._replace(token=1)])]
    ['a later grant has no greater token']
    """
    by_key: dict[str, list[Entry]] = defaultdict(list)
    for entry in entries:
        by_key[entry.key].append(entry)
    return [fault for key in sorted(by_key) for fault in _faults(sorted(by_key[key], key=_moment))]


def _moment(entry: Entry) -> int:
    return entry.had


def _faults(entries: Sequence[Entry]) -> Iterator[Fault]:
    """Those of one key, whose entries come in the order in which they were answered."""
    grants = [entry for entry in entries if entry.kind == "claim"]
    yield from _overlaps(beliefs(entries))
    for one, other in pairwise(grants):
        if one.token is not None and other.token is not None and other.token <= one.token:
            yield Fault(TOKEN, one.key, (one.holder, other.holder), other.had - one.had)
    for write in entries:
        if write.kind == "claim" or not write.ok:
            continue
        later = next(
            (one for one in grants if one.had > _granted(grants, write) and not _same(one, write)), None
        )
        if later is None:
            continue
        if write.kind == "report":
            # Whether it was taken before the later grant or after: the work is done, and was given again.
            yield Fault(STALE_REPORT, write.key, (write.holder, later.holder), write.had - later.had)
        elif write.sent > later.had:
            yield Fault(STALE_RENEWAL, write.key, (write.holder, later.holder), write.sent - later.had)


def _same(one: Entry, other: Entry) -> bool:
    return (one.holder, one.grant) == (other.holder, other.grant)


def _granted(grants: Sequence[Entry], write: Entry) -> int:
    """When the lease that this write is about was given."""
    return next((grant.had for grant in grants if _same(grant, write)), write.sent)


def beliefs(entries: Iterable[Entry]) -> list[Belief]:
    """The times in which holders believed, by what they were answered.

    A renewal that was answered too late leaves a gap; an answer that is over before it comes is no belief:

    >>> claim = Entry("claim", "a", "k", 1, 0, 0, 1, 10, True)
    >>> [one[3:] for one in beliefs([claim, Entry("renew", "a", "k", 1, 0, 9, 12, 19, True)])]
    [(1, 10), (12, 19)]
    >>> [one[3:] for one in beliefs([claim, Entry("renew", "a", "k", 1, 0, 9, 30, 19, True)])]
    [(1, 10)]

    Who reports has stopped; who is refused stops then:

    >>> [one[3:] for one in beliefs([claim, Entry("report", "a", "k", 1, 0, 5, 7, 7, True)])]
    [(1, 5)]
    >>> [one[3:] for one in beliefs([claim, Entry("renew", "a", "k", 1, 0, 5, 7, 15, False)])]
    [(1, 7)]
    """
    told: dict[tuple[str, str, int], list[tuple[int, int]]] = defaultdict(list)
    for entry in sorted(entries, key=_moment):
        times = told[entry.holder, entry.key, entry.grant]
        match entry.kind:
            case "claim":
                times.append((entry.had, entry.until))
            case "renew" if entry.ok and times and entry.had <= times[-1][1]:
                times[-1] = (times[-1][0], max(times[-1][1], entry.until))
            case "renew" if entry.ok:
                times.append((entry.had, entry.until))
            case "renew":
                times[:] = [(start, min(end, entry.had)) for start, end in times]
            case "report":
                times[:] = [(start, min(end, entry.sent)) for start, end in times]
    return [
        Belief(*whose, start, end) for whose, times in told.items() for start, end in times if start < end
    ]


def _overlaps(told: Iterable[Belief]) -> Iterator[Fault]:
    ordered = sorted(told, key=lambda one: one.start)
    last: Belief | None = None
    for belief in ordered:
        if (
            last is not None
            and belief.start < last.end
            and (belief.holder, belief.grant) != (last.holder, last.grant)
        ):
            by = min(belief.end, last.end) - belief.start
            yield Fault(DOUBLE, belief.key, (last.holder, belief.holder), by)
        if last is None or belief.end > last.end:
            last = belief


class Taken(NamedTuple):
    """How the leases of one holder went on after it had failed."""

    leases: int
    taken: int
    """Those that another has been granted."""
    after_fault_s: tuple[float, ...]
    after_end_s: tuple[float, ...]
    """From the last moment at which the holder may have been sure, to the next grant."""


def takeovers(entries: Iterable[Entry], holder: str, fault_ns: int) -> Taken:
    """What became of the leases that a holder had when it failed.

    >>> claim = Entry("claim", "a", "k", 1, 0, 0, 1, 10**9, True)
    >>> takeovers([claim, Entry("claim", "b", "k", 2, 0, 0, 15 * 10**8, 25 * 10**8, True)], "a", 5 * 10**8)
    Taken(leases=1, taken=1, after_fault_s=(1.0,), after_end_s=(0.5,))
    """
    known = sorted(entries, key=_moment)
    ends: dict[str, int] = {}
    for entry in known:
        if entry.holder == holder and entry.had <= fault_ns and entry.ok:
            ends[entry.key] = max(ends.get(entry.key, 0), entry.until)
    nexts: dict[str, int] = {}
    for entry in known:
        if entry.kind == "claim" and entry.holder != holder and entry.key in ends and entry.had > fault_ns:
            nexts.setdefault(entry.key, entry.had)
    return Taken(
        len(ends),
        len(nexts),
        tuple(sorted((had - fault_ns) / 1e9 for had in nexts.values())),
        tuple(sorted((had - ends[key]) / 1e9 for key, had in nexts.items())),
    )
