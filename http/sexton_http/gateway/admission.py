"""Lets ingress in only as fast as the server keeps up with its runners, and sends the rest away at once."""

import time
from collections.abc import Callable, Hashable
from enum import Enum
from typing import Final

import msgspec
import structlog
import trio

from sexton_actors.backlog import Backlog
from sexton_http.answers import Problem
from sexton_http.gateway.faults import BUSY_WAIT_S, STALLED_S
from sexton_http.gateway.load_limit import INTERVAL_S, Bounds, Sample, bounds_of, decide, open_limit
from sexton_http.gateway.metrics import DoorMeter, HttpMetrics
from sexton_http.gateway.waiting_line import INTERVAL_S as WAIT_S, WaitingLine, rooms_of
from sexton_http.wire.loop_turns import LoopTurns
from sexton_storage.errors import StorageUnavailable
from sexton_storage.stores import Storage

ROOM: Final = 256
"""How many may stand in one line, however fast it moves."""
TOO_BUSY: Final = "the server has more to do than it can finish; try again after Retry-After"
TOLD_EVERY_S: Final = 1.0
WEBHOOK_FLOOR: Final = 4.0
PEOPLE_FLOOR: Final = 16.0
"""More than of webhooks: what people ask for may wait for other services, and cost nothing meanwhile."""
PEOPLE_PATIENCE: Final = 2.0
"""People are held back later than webhooks, whose senders come again by themselves."""

log = structlog.get_logger()


class Ingress(Enum):
    """What the server may put off, by the door that it comes in by."""

    WEBHOOKS = "webhooks, whose senders come again by themselves"
    PEOPLE = "people, and programs with their keys"


class Overloaded(Problem):
    """Sent away at a door. The log tells how many were, not each of them."""


class _Waiter:
    __slots__ = ("admitted", "told")

    def __init__(self) -> None:
        self.told = trio.Event()
        self.admitted = False

    def tell(self, *, admitted: bool) -> None:
        self.admitted = admitted
        self.told.set()


class Door:
    """Where one class of ingress comes in."""

    def __init__(self, name: str, bounds: Bounds | None, most: int, look: Callable[[], None]) -> None:
        self.name = name
        self.limit = open_limit(most)
        self.now = 0
        self.meter: DoorMeter | None = None
        self._bounds = bounds
        self._look = look
        self._peak = 0
        self._given = 0
        """Places, since it was decided last."""
        self._line = WaitingLine[_Waiter](ROOM)
        self._refused = 0
        self._told_at = 0.0

    def __repr__(self) -> str:
        return f"<Door {self.name} {self.now}/{self.limit.value:.1f}, {len(self._line)} wait>"

    @property
    def waiting(self) -> int:
        return len(self._line)

    async def enter(self, whose: Hashable, status: int) -> None:
        """Take a place, at once or in turn; the caller is to ``leave``.

        ``whose`` shares the line fairly with others. Raises Overloaded, which is answered with ``status``.
        """
        self._look()
        if self.now < self.limit.value and not self._line:
            self._take()
            return
        began, waiter = time.monotonic(), _Waiter()
        pushed_out = self._line.join(whose, waiter, began)
        if pushed_out is not None:
            pushed_out.tell(admitted=False)
        try:
            with trio.move_on_after(WAIT_S):
                await waiter.told.wait()
        except trio.Cancelled:
            self._withdraw(whose, waiter)
            raise
        if self.meter is not None:
            self.meter.waited(time.monotonic() - began)
        if not waiter.admitted:
            self._withdraw(whose, waiter)
            self._count_refused()
            raise Overloaded("UZ-API-001", TOO_BUSY, wait_s=BUSY_WAIT_S, status=status)

    def refuses(self, whose: Hashable) -> bool:
        """Whether one who comes now had no place, and none in line; then it counts as sent away."""
        self._look()
        if (self.now < self.limit.value and not self._line) or self._line.has_place(whose, time.monotonic()):
            return False
        self._count_refused()
        return True

    def leave(self) -> None:
        self.now -= 1
        self._look()
        self._admit()

    def adjust(self, sample: Sample, span_s: float) -> None:
        """Decide again how much may be under way, after so long."""
        if self._bounds is None:
            return
        measured = msgspec.structs.replace(sample, peak=max(self._peak, self.now))
        self.limit = decide(self.limit, measured, self._bounds)
        self._line.rooms = rooms_of(self._given / max(span_s, INTERVAL_S), self.limit.value, ROOM)
        self._peak, self._given = self.now, 0
        self._admit()
        self._tell()

    def _count_refused(self) -> None:
        self._refused += 1
        if self.meter is not None:
            self.meter.refused()

    def _take(self) -> None:
        self.now += 1
        self._given += 1
        self._peak = max(self._peak, self.now)

    def _admit(self) -> None:
        while self._line and self.now < self.limit.value:
            waiter, late = self._line.take(time.monotonic())
            for one in late:
                one.tell(admitted=False)
            if waiter is not None:
                self._take()
                waiter.tell(admitted=True)

    def _withdraw(self, whose: Hashable, waiter: _Waiter) -> None:
        if waiter.admitted:
            self.leave()
        else:
            self._line.leave(whose, waiter)

    def _tell(self) -> None:
        now = time.monotonic()
        if self._refused and now - self._told_at >= TOLD_EVERY_S:
            log.warning("load_refused", door=self.name, requests=self._refused, limit=round(self.limit.value))
            self._refused, self._told_at = 0, now


class Admission:
    """The doors of a server, and what decides how wide they are open.

    Runners' calls, health and metrics have no door: they never wait. Without ``turns``, or with ``busy_at_s``
    None, nothing is measured and the doors stay open.
    """

    def __init__(
        self,
        storage: Storage,
        backlog: Backlog,
        *,
        turns: LoopTurns | None,
        busy_at_s: float | None,
        most: int,
        metrics: HttpMetrics,
    ) -> None:
        self._storage = storage
        self._backlog = backlog
        self._turns = turns if busy_at_s is not None else None
        self._next = time.monotonic() + INTERVAL_S
        self._batches: tuple[int, float] = (0, 0.0)
        self._batch_s = 0.0
        self._runner_s, self._runner_calls = 0.0, 0
        self.sample = Sample()

        def open_door(name: str, patience: float, floor: float) -> Door:
            bounds = None if busy_at_s is None else bounds_of(busy_at_s, patience=patience, floor=floor)
            made = Door(name, bounds, most, self.look)
            made.meter = metrics.door(name, lambda: made.limit.value, lambda: made.waiting)
            return made

        self.webhooks = open_door("webhooks", 1.0, WEBHOOK_FLOOR)
        self.people = open_door("people", PEOPLE_PATIENCE, PEOPLE_FLOOR)
        metrics.lag.set_function(lambda: self.sample.lag_s)

    def __repr__(self) -> str:
        return f"<Admission {self.webhooks!r} {self.people!r}>"

    @property
    def is_narrow(self) -> bool:
        """Whether anything may be held back now."""
        return not (self.webhooks.limit.is_open and self.people.limit.is_open)

    def door(self, ingress: Ingress | None) -> Door | None:
        """Where a class comes in; None for what never waits."""
        match ingress:
            case Ingress.WEBHOOKS:
                return self.webhooks
            case Ingress.PEOPLE:
                return self.people
            case None:
                return None

    def note_runner_call(self, seconds: float) -> None:
        """A call of a runner's was answered, after so long; no long poll."""
        self._runner_s += seconds
        self._runner_calls += 1

    def look(self) -> None:
        """Measure and decide, if it is time to."""
        now = time.monotonic()
        if now < self._next or self._turns is None:
            return
        turns, journal_s = self._turns.read(), self._journal_s()
        self._next = now + INTERVAL_S
        intervals = max(1, int(turns.span_s / INTERVAL_S))
        runner_s = self._runner_s / max(1, self._runner_calls)
        self._runner_s, self._runner_calls = 0.0, 0
        if journal_s > STALLED_S:
            # Less ingress does not relieve a database that has stopped: who is let in hears that it is away.
            self.sample = Sample(lag_s=turns.lag_s, intervals=intervals)
        else:
            self.sample = Sample(
                lag_s=turns.lag_s,
                hungry=self._backlog.total <= 0,
                journal_s=journal_s,
                batch_s=self._batch_s,
                runner_s=runner_s,
                intervals=intervals,
            )
        self.webhooks.adjust(self.sample, turns.span_s)
        self.people.adjust(self.sample, turns.span_s)

    def _journal_s(self) -> float:
        try:
            lane = self._storage.journal.statistics().hot
        except StorageUnavailable:
            return 0.0  # It is closing, or not open yet.
        batches, seconds = lane.batches - self._batches[0], lane.seconds - self._batches[1]
        if batches > 0:
            self._batch_s = seconds / batches
        self._batches = (lane.batches, lane.seconds)
        return float(lane.oldest_s)
