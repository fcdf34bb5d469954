"""What the mixed day found: a table of its levels, and how the worst compares with the best."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from bench import harness
from bench.day_clients import Effort, Phase
from bench.day_loads import Followed, Worked
from bench.day_plan import STEER, WEBHOOK
from bench.day_senders import Sent
from bench.day_watch import Watched
from bench.load import percentile

INGRESS: Final = (WEBHOOK, STEER)
HEALTHY_MS: Final = 100.0
STEADY_S: Final = 3
"""It is well again when it was for this many seconds on end."""
SHOWN_S: Final = 8
AS_BEFORE: Final = 2.0
"""Webhooks are as before when their p99 is at most this many times that of 1 x, or ``HEALTHY_MS``."""


@dataclass(frozen=True, slots=True)
class Day:
    """Everything that was seen."""

    phases: tuple[Phase, ...]
    sent: list[Sent]
    worked: Worked
    followed: Followed
    watched: Watched
    efforts: tuple[Effort, ...] = ()
    """What each process of clients spent."""


class Level(NamedTuple):
    """One line of the table; rates are a second, latencies ms."""

    name: str
    offered: float
    accepted: float
    refused: dict[int, int]
    """How many by status; those below 1 are in ``day_clients``."""
    finished: float
    webhook_ms: tuple[float, float]
    """p50 and p99 of the accepted."""
    page_p99_ms: float
    health_ms: tuple[float, float, float]
    """p50, p99 and the slowest."""
    renewals: int
    slack_s: float
    """The least time that a renewed lease had left; infinite when none was renewed."""
    late: int
    """Renewals answered after their lease's end, and leases that were lost."""
    frames: float
    resident_mib: float
    """The most there was."""
    processor_ms: float
    """The server's processor time for each event that was finished."""
    clients: float
    """How many processors' time the clients used."""


def level(day: Day, number: int) -> Level:
    """What one phase was like."""
    phase = day.phases[number]
    within = _Within(phase)
    ingress = [one for one in day.sent if one.kind in INGRESS and within(one.due_ns)]
    accepted = [one for one in ingress if _is_taken(one.status)]
    webhooks = sorted(one.latency_ns for one in accepted if one.kind == WEBHOOK)
    pages = sorted(one.latency_ns for one in day.sent if one.kind not in INGRESS and within(one.due_ns))
    health = sorted(latency for at, _, latency in day.watched.health if within(at))
    slacks = [slack for at, slack in day.worked.slacks if within(at)]
    finished = sum(within(at) for at, _ in day.worked.finished)
    return Level(
        name=phase.name,
        offered=len(ingress) / phase.seconds,
        accepted=len(accepted) / phase.seconds,
        refused=dict(sorted(Counter(one.status for one in ingress if not _is_taken(one.status)).items())),
        finished=finished / phase.seconds,
        webhook_ms=(percentile(webhooks, 0.5) / 1e6, percentile(webhooks, 0.99) / 1e6),
        page_p99_ms=percentile(pages, 0.99) / 1e6,
        health_ms=(
            percentile(health, 0.5) / 1e6,
            percentile(health, 0.99) / 1e6,
            percentile(health, 1.0) / 1e6,
        ),
        renewals=len(slacks),
        slack_s=min(slacks, default=math.inf) / 1000,
        late=sum(slack < 0 for slack in slacks) + sum(within(at) for at in day.worked.lost),
        frames=day.followed.frames[number] / phase.seconds,
        resident_mib=max((size for at, size in day.watched.sizes if within(at)), default=0.0),
        processor_ms=1000 * _used(day.watched.processor_s, within) / max(1, finished),
        clients=sum(_used(one.used_s, within) for one in day.efforts) / phase.seconds,
    )


class _Within:
    """Whether a moment is in a phase."""

    def __init__(self, phase: Phase) -> None:
        self._phase = phase

    def __call__(self, at_ns: int) -> bool:
        return self._phase.begin_ns <= at_ns < self._phase.end_ns


def _is_taken(status: int) -> bool:
    return 200 <= status < 300


def _used(noted: Iterable[tuple[int, float]], within: Callable[[int], bool]) -> float:
    spent = [used for at, used in noted if within(at)]
    return spent[-1] - spent[0] if spent else 0.0


def seconds_to_normal(day: Day, normal_p99_ms: float) -> float:
    """From the last level's end until health and webhooks are as at 1 x; infinite if they never were."""
    after = day.phases[-1]
    bound_ms = max(HEALTHY_MS, AS_BEFORE * normal_p99_ms)
    well = [second(day, n).is_well(bound_ms) for n in range(int(after.seconds))]
    return first_steady(well)


def first_steady(well: Sequence[bool]) -> float:
    """The first second from which on it is well for a while.

    >>> first_steady([False, True, False, True, True, True])
    3.0
    >>> first_steady([False, True])
    inf
    """
    for second in range(len(well) - STEADY_S + 1):
        if all(well[second : second + STEADY_S]):
            return float(second)
    return math.inf


class Second(NamedTuple):
    """One second of the recovery."""

    finished: int
    refused: int
    ingress_p99_ms: float
    health_ms: float
    """The slowest; infinite when none was asked for."""

    def is_well(self, bound_ms: float) -> bool:
        return self.health_ms <= HEALTHY_MS and not self.refused and self.ingress_p99_ms <= bound_ms


def second(day: Day, number: int) -> Second:
    """What became of what was due in a second after the last level's end."""
    begin_ns = day.phases[-1].begin_ns + number * 10**9
    within = _Within(Phase("", 1, begin_ns, begin_ns + 10**9))
    ingress = [one for one in day.sent if one.kind in INGRESS and within(one.due_ns)]
    return Second(
        sum(within(at) for at, _ in day.worked.finished),
        sum(not _is_taken(one.status) for one in ingress),
        percentile(sorted(one.latency_ns for one in ingress), 0.99) / 1e6,
        max((latency / 1e6 for at, _, latency in day.watched.health if within(at)), default=math.inf),
    )


def recovery(day: Day) -> str:
    """The first seconds after the load's end, as text."""
    seconds = [second(day, number) for number in range(min(SHOWN_S, int(day.phases[-1].seconds)))]
    rows = [
        f"{number + 1:>5} s: {one.finished} finished, {one.refused} refused, webhooks and messages p99 "
        f"{one.ingress_p99_ms:.0f} ms, slowest health {one.health_ms:.0f} ms"
        for number, one in enumerate(seconds)
    ]
    return "\n".join(["after the load's end", *rows])


def figures(day: Day) -> list[harness.Figure]:
    """The summary, each beside its budget."""
    measured = [level(day, number) for number in range(1, len(day.phases) - 1)]
    first, best = measured[0], max(one.finished for one in measured)
    # Where little comes, little can be finished.
    shares = [one.finished / min(one.offered, best) for one in measured if best]
    slacks = [one.slack_s for one in measured if one.renewals]
    normal_s = seconds_to_normal(day, first.webhook_ms[1])
    late = sum(one.late for one in measured)
    return [
        harness.Figure("finished, best level", harness.once(best), "events/s"),
        harness.Figure(
            "finished, worst level",
            harness.once(min(one.finished for one in measured)),
            "events/s",
            "what came, at most the best",
            harness.once(min(shares, default=0.0)),
            (harness.at_least_times(0.9),),
        ),
        harness.Figure("webhook p50 at 1 x", harness.once(first.webhook_ms[0]), "ms"),
        harness.Figure(
            "late renewals and lost leases", harness.once(late), "", budgets=(harness.at_most(0, "late"),)
        ),
        harness.Figure("least time that a lease had left", harness.once(min(slacks, default=0.0)), "s"),
        harness.Figure(
            "slowest answer of health",
            harness.once(max(one.health_ms[2] for one in measured)),
            "ms",
            budgets=(harness.at_most(HEALTHY_MS, "ms"),),
        ),
        harness.Figure(
            "back to normal after the load's end",
            harness.once(min(normal_s, day.phases[-1].seconds)),
            "s",
            budgets=(harness.at_most(5, "s"),),
        ),
        harness.Figure("memory at 1 x", harness.once(first.resident_mib), "MiB"),
        harness.Figure("memory, the most", harness.once(max(one.resident_mib for one in measured)), "MiB"),
    ]


HEAD: Final = (
    *("load", "offered", "accepted", "refused", "finished", "webhook", "page", "health", "renewals"),
    *("slack", "late", "frames", "resident", "processor", "clients"),
)
UNITS: Final = (
    *("", "/s", "/s", "status: count", "/s", "p50/p99 ms", "p99 ms", "p50/p99/max ms", ""),
    *("least s", "", "/s", "MiB", "ms/event", "cores"),
)


def levels(day: Day) -> str:
    """The table, as text."""
    rows = [HEAD, UNITS, *(_cells(level(day, number)) for number in range(1, len(day.phases)))]
    widths = [max(len(row[i]) for row in rows) for i in range(len(HEAD))]
    return "\n".join("  ".join(cell.rjust(w) for cell, w in zip(row, widths, strict=True)) for row in rows)


def _cells(one: Level) -> tuple[str, ...]:
    names = {0: "cut", -1: "silent", -2: "unsent"}
    refused = ", ".join(f"{names.get(status, status)}: {count}" for status, count in one.refused.items())
    return (
        one.name,
        f"{one.offered:.0f}",
        f"{one.accepted:.0f}",
        refused or "-",
        f"{one.finished:.0f}",
        _ms(one.webhook_ms),
        _ms([one.page_p99_ms]),
        _ms(one.health_ms),
        str(one.renewals),
        f"{one.slack_s:.1f}" if one.renewals else "-",
        str(one.late),
        f"{one.frames:.0f}",
        f"{one.resident_mib:.0f}",
        f"{one.processor_ms:.1f}",
        f"{one.clients:.2f}",
    )


def _ms(values: Iterable[float]) -> str:
    return "/".join(f"{value:.0f}" for value in values)
