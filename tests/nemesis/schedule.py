"""Which faults come in a run, to whom, when and for how long: decided by a seed alone."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import StrEnum
from itertools import pairwise
from typing import Final, NamedTuple


class Group(StrEnum):
    """Whom a fault is about."""

    NODE = "node"
    CLOCK = "clock"
    """A node's; it answers meanwhile."""
    RUNNER = "runner"
    """A process ``sexton runner``."""
    CLIENT = "client"
    """One of the clients that hold many leases."""
    DATABASE = "database"


class Kind(StrEnum):
    """What happens. The value stands in the report."""

    KILL_NODE = "kill-node"
    FREEZE_NODE = "freeze-node"
    CUT_DATABASE = "cut-database"
    """Between one node and both databases: connections break, and then nothing comes through."""
    CUT_CLIENTS = "cut-clients"
    """Between one node and everybody who asks it."""
    SKEW_CLOCK = "skew-clock"
    KILL_RUNNER = "kill-runner"
    FREEZE_RUNNER = "freeze-runner"
    LOSE_CLIENT = "lose-client"
    """It forgets what it holds, as one that died."""
    FREEZE_CLIENT = "freeze-client"
    """It goes on afterwards with the leases that it had."""
    FREEZE_STANDBY = "freeze-standby"
    """No commit is acknowledged meanwhile."""
    FILL_DISK = "fill-disk"
    """Of the primary."""
    FAIL_OVER = "fail-over"
    """The primary is killed, the standby takes over, and the other machine becomes a new standby."""


class Course(NamedTuple):
    """How long a fault of a kind lasts."""

    group: Group
    least_s: float
    most_s: float
    stalls_s: float = 0.0
    """For how long nobody gets anywhere, at most; of a node or a runner there are others."""


COURSES: Final[Mapping[Kind, Course]] = {
    Kind.KILL_NODE: Course(Group.NODE, 1, 10),
    Kind.FREEZE_NODE: Course(Group.NODE, 20, 90),
    Kind.CUT_DATABASE: Course(Group.NODE, 2, 30),
    Kind.CUT_CLIENTS: Course(Group.NODE, 1, 20),
    Kind.SKEW_CLOCK: Course(Group.CLOCK, 10, 90),
    Kind.KILL_RUNNER: Course(Group.RUNNER, 1, 20),
    Kind.FREEZE_RUNNER: Course(Group.RUNNER, 20, 90),
    Kind.LOSE_CLIENT: Course(Group.CLIENT, 1, 5),
    Kind.FREEZE_CLIENT: Course(Group.CLIENT, 20, 90),
    Kind.FREEZE_STANDBY: Course(Group.DATABASE, 2, 15, stalls_s=15),
    Kind.FILL_DISK: Course(Group.DATABASE, 5, 15, stalls_s=20),
    Kind.FAIL_OVER: Course(Group.DATABASE, 45, 60, stalls_s=20),
}
MEMBERS: Final[Mapping[Group, int]] = {
    Group.NODE: 3,
    Group.CLOCK: 3,
    Group.RUNNER: 2,
    Group.CLIENT: 8,
    Group.DATABASE: 1,
}
TOGETHER: Final[Mapping[Group, int]] = {
    Group.NODE: 2,
    Group.CLOCK: 3,
    Group.RUNNER: 1,
    Group.CLIENT: 4,
    Group.DATABASE: 1,
}
"""How many of a group suffer at a time, at most: one node and one runner are always left."""
REST_S: Final[Mapping[Group, float]] = {
    Group.NODE: 10,
    Group.CLOCK: 5,
    Group.RUNNER: 10,
    Group.CLIENT: 5,
    Group.DATABASE: 20,
}
"""How long whoever has suffered is left alone."""
WARM_S: Final = 5.0
GAP_S: Final = (1.0, 7.0)
"""Between the beginnings of two faults."""
LONGEST_STALL_S: Final = 20.0
"""For how long the faults of a schedule let nobody get anywhere, at most."""


class Fault(NamedTuple):
    """One fault, in seconds from the beginning of the run."""

    at_s: float
    kind: Kind
    whom: int
    lasts_s: float

    @property
    def group(self) -> Group:
        return COURSES[self.kind].group

    @property
    def ends_s(self) -> float:
        return self.at_s + self.lasts_s


def plan(seed: int, run_s: float, kinds: Collection[Kind] = tuple(Kind)) -> list[Fault]:
    """All faults of a run, in the order of their beginnings; the last has healed when the run ends.

    Kinds are dealt like cards: none comes again before all others had their turn, where they fit.

    >>> faults = plan(1, 60)
    >>> faults == plan(1, 60), faults == plan(2, 60), max(fault.ends_s for fault in faults) <= 60
    (True, False, True)
    """
    rng = random.Random(seed)
    faults: list[Fault] = []
    hand: list[Kind] = []
    now = WARM_S
    while now < run_s:
        if not hand:
            hand = sorted(kinds)
            rng.shuffle(hand)
        for kind in hand:
            fault = _fitting(rng, kind, now, run_s, faults)
            if fault is not None:
                faults.append(fault)
                hand.remove(kind)
                break
        now += rng.uniform(*GAP_S)
    return faults


def _fitting(
    rng: random.Random, kind: Kind, now: float, run_s: float, faults: Sequence[Fault]
) -> Fault | None:
    """One of that kind that may begin now; None when everybody suffers, rests, or too little time is left."""
    course = COURSES[kind]
    group = course.group
    most = min(course.most_s, run_s - now)
    under_way = [fault for fault in faults if fault.group is group and fault.ends_s > now]
    if most < course.least_s or len(under_way) >= TOGETHER[group]:
        return None
    busy = {fault.whom for fault in faults if fault.group is group and fault.ends_s + REST_S[group] > now}
    free = [whom for whom in range(MEMBERS[group]) if whom not in busy]
    if not free:
        return None
    return Fault(round(now, 3), kind, rng.choice(free), round(rng.uniform(course.least_s, most), 3))


def stalls(faults: Iterable[Fault]) -> list[tuple[float, float]]:
    """When nobody gets anywhere, in order: the database is away, or all nodes or all runners are.

    >>> stalls([Fault(10, Kind.FREEZE_NODE, whom, 30) for whom in range(3)])
    [(10, 40)]
    >>> stalls([Fault(10, Kind.FREEZE_NODE, whom, 30) for whom in range(2)])
    []
    """
    known = list(faults)
    found = [
        (fault.at_s, fault.at_s + COURSES[fault.kind].stalls_s)
        for fault in known
        if COURSES[fault.kind].stalls_s
    ]
    for group in (Group.NODE, Group.RUNNER):
        mine = [fault for fault in known if fault.group is group]
        edges = sorted({edge for fault in mine for edge in (fault.at_s, fault.ends_s)})
        for begin, end in pairwise(edges):
            away = {fault.whom for fault in mine if fault.at_s <= begin < fault.ends_s}
            if len(away) == MEMBERS[group]:
                found.append((begin, end))
    joined: list[tuple[float, float]] = []
    for begin, end in sorted(found):
        if joined and begin <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((begin, end))
    return joined
