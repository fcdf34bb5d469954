"""A server under load without a machine: a loop, a journal, runners that wait, and senders who do not.

Time is counted, not waited for. What things cost was measured on a server; a slow machine takes longer for
everything, and what is offered stays the same.
"""

import heapq
from collections.abc import Callable
from random import Random
from typing import Final, NamedTuple

from sexton_http.gateway.load_limit import INTERVAL_S, Bounds, Sample, decide, open_limit
from sexton_http.gateway.waiting_line import INTERVAL_S as WAIT_S, WaitingLine, rooms_of

TURN_S: Final = 1e-4
"""To look at the sockets once."""
TAKE_S: Final = 4e-4
"""To take a webhook in, before its commit; half as much after."""
REFUSE_S: Final = 5e-5
CALL_S: Final = 8e-4
"""A runner's call, before its commit; as much after."""
COMMIT_S: Final = 3e-3
ROW_S: Final = 1e-4
REST_S: Final = 1e-3
REST_SHARE: Final = 0.15
"""Of the loop, for all else: streams, heartbeats, schedules."""
RUN_S: Final = (0.1, 0.3)
SLOTS: Final = 200
AGENTS: Final = 200
MOST: Final = 1024
WARM_S: Final = 8.0

Slow = Callable[[float], float]
"""How much longer everything takes at a time."""


def possible(offered: float, slow: float) -> float:
    """Events a second that can be finished at best, if the loop is never idle; those beyond are refused.

    >>> [round(possible(offered, slow)) for offered, slow in ((60, 1.0), (240, 1.0), (960, 1.0), (960, 2.5))]
    [60, 157, 150, 38]
    """
    event_s = 1.5 * TAKE_S + 6 * CALL_S
    at_most = (1 / slow - REST_SHARE - offered * REFUSE_S) / (event_s - REFUSE_S)
    return min(offered, at_most)


class Step(NamedTuple):
    """Something that a task does in one turn of the loop."""

    cost_s: float
    then: str
    since: float


class SimulatedLoad:
    """``finished`` tells when events were finished, after ``run``."""

    def __init__(self, offered: float, slow: Slow, bounds: Bounds, seed: int = 0) -> None:
        self.finished: list[float] = []
        self.lags_s: list[float] = []
        self._offered, self._slow, self._bounds = offered, slow, bounds
        self._rng = Random(seed)
        self._limit = open_limit(MOST)
        self._line = WaitingLine[float](256)
        self._now = 0.0
        self._later: list[tuple[float, int, str, list[Step]]] = []
        self._number = 0
        self._ready: list[Step] = []
        self._writes: list[Step] = []
        self._oldest_at: float | None = None
        self._is_committing = False
        self._batch_s = 0.0
        self._backlog, self._slots = 0, SLOTS
        self._under_way = self._peak = self._given = 0
        self._calls: list[float] = []
        self._squares = self._read_at = 0.0

    def run(self, seconds: float) -> float:
        """Give the events finished in a second, once it runs evenly."""
        for what in ("webhook", "rest", "decide"):
            self._at(0.0, what)
        while self._now < seconds:
            while self._later and self._later[0][0] <= self._now:
                at, _, what, steps = heapq.heappop(self._later)
                self._come(at, what, steps)
            while self._backlog and self._slots:
                self._backlog, self._slots = self._backlog - 1, self._slots - 1
                self._ready.append(Step(CALL_S, "leased", self._now))
            self._commit()
            if self._ready:
                self._turn()
            else:
                self._now = max(self._now, self._later[0][0])
        return sum(at > WARM_S for at in self.finished) / (self._now - WARM_S)

    def _at(self, when: float, what: str, steps: list[Step] | None = None) -> None:
        self._number += 1
        heapq.heappush(self._later, (when, self._number, what, steps or []))

    def _come(self, at: float, what: str, steps: list[Step]) -> None:
        match what:
            case "webhook":
                self._ready.append(Step(0.0, what, at))
                self._at(at + self._rng.expovariate(self._offered), what)
            case "rest":
                self._ready.append(Step(REST_S, what, at))
                self._at(at + REST_S / REST_SHARE, what)
            case "decide":
                self._decide()
                self._at(self._now + INTERVAL_S, what)
            case "committed":
                self._ready += steps
                self._is_committing, self._oldest_at = False, None
            case _:
                self._ready.append(Step(CALL_S, what, at))

    def _commit(self) -> None:
        if not self._writes or self._is_committing:
            return
        self._batch_s = (COMMIT_S + ROW_S * len(self._writes)) * self._slow(self._now)
        self._at(self._now + self._batch_s, "committed", self._writes)
        self._is_committing, self._oldest_at, self._writes = True, self._now, []

    def _turn(self) -> None:
        steps, self._ready = self._ready, []
        self._rng.shuffle(steps)
        spent_s, slow = TURN_S, self._slow(self._now)
        for step in steps:
            spent_s += self._step(step, self._now + spent_s * slow)
        self._now += spent_s * slow
        self._squares += (spent_s * slow) ** 2
        for since in [since for since in self._line if self._now - since > WAIT_S]:
            for whose in range(AGENTS):
                self._line.leave(whose, since)

    def _step(self, step: Step, now: float) -> float:
        """What it costs."""
        match step.then:
            case "webhook":
                if self._under_way < self._limit.value and not self._line:
                    self._take(now)
                elif self._line.join(self._rng.randrange(AGENTS), now, now) is not None:
                    return REFUSE_S
            case "take":
                self._writes.append(Step(TAKE_S / 2, "taken", step.since))
            case "taken":
                self._under_way, self._backlog = self._under_way - 1, self._backlog + 1
                self._admit(now)
            case "leased" | "show" | "report":
                self._writes.append(Step(CALL_S, step.then + " committed", step.since))
            case "leased committed":
                self._at(now, "show")
            case "show committed":
                self._calls.append(now - step.since)
                self._at(now + self._rng.uniform(*RUN_S), "report")
            case _:  # Its report is committed.
                self._calls.append(now - step.since)
                self._slots += 1
                self.finished.append(now)
        return step.cost_s

    def _take(self, now: float) -> None:
        self._under_way, self._given = self._under_way + 1, self._given + 1
        self._peak = max(self._peak, self._under_way)
        self._ready.append(Step(TAKE_S, "take", now))

    def _admit(self, now: float) -> None:
        while self._line and self._under_way < self._limit.value:
            if self._line.take(now)[0] is not None:
                self._take(now)

    def _decide(self) -> None:
        span_s = max(self._now - self._read_at, 1e-9)
        sample = Sample(
            lag_s=self._squares / (2 * span_s),
            journal_s=0.0 if self._oldest_at is None else self._now - self._oldest_at,
            batch_s=self._batch_s,
            runner_s=sum(self._calls) / max(1, len(self._calls)),
            peak=max(self._peak, self._under_way),
            hungry=not self._backlog,
        )
        self.lags_s.append(sample.lag_s)
        self._limit = decide(self._limit, sample, self._bounds)
        self._line.rooms = rooms_of(self._given / max(span_s, INTERVAL_S), self._limit.value, 256)
        self._squares, self._read_at, self._calls = 0.0, self._now, []
        self._peak, self._given = self._under_way, 0
        self._admit(self._now)
