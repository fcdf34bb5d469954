"""Applies hot writes in their order of arrival and answers in batches, as the real journal does."""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, TypeVar
from uuid import UUID

import trio

from sexton_storage.decisions.audit import has_changed
from sexton_storage.errors import RowRefused, StorageError, StorageUnavailable
from sexton_storage.memory.apply_events import append_event, cancel_event
from sexton_storage.memory.apply_gates import append_frames, open_gate, resolve_gate
from sexton_storage.memory.apply_leases import claim_event, end_lease, renew_lease
from sexton_storage.memory.faults import Faults
from sexton_storage.memory.tables import Tables
from sexton_storage.refusals import LEASED, STALE, Lost
from sexton_storage.statistics import JournalStatistics, LaneStatistics
from sexton_storage.writes import (
    AppendEvent,
    AppendFrames,
    CancelEvent,
    ClaimEvent,
    EndLease,
    NothingToClaim,
    OpenGate,
    RenewLease,
    ResolveGate,
    Write,
)

R = TypeVar("R")
Listener = Callable[[Sequence[tuple[UUID, int]]], None]
Done = Callable[[Any], None]
QUEUE_LIMIT = 65_536
"""Writes that may wait; one more is refused as unavailable."""


def apply(tables: Tables, write: Write[Any]) -> Any:
    """Change the rows as the write says, or answer that its condition does not hold."""
    match write:
        case AppendEvent():
            return append_event(tables, write)
        case ClaimEvent():
            return claim_event(tables, write)
        case RenewLease():
            return renew_lease(tables, write)
        case EndLease():
            return end_lease(tables, write)
        case OpenGate():
            return open_gate(tables, write)
        case ResolveGate():
            return resolve_gate(tables, write)
        case AppendFrames():
            return append_frames(tables, write)
        case CancelEvent():
            return cancel_event(tables, write)
        case _:
            raise TypeError(f"{type(write).__name__} is no write of the journal")


class MemoryJournal:
    """See ``stores.Journal``; ``run`` must be running in a task."""

    def __init__(self, tables: Tables, faults: Faults) -> None:
        self._tables = tables
        self._faults = faults
        self._queue: deque[tuple[Write[Any], Done]] = deque()
        self._awake = trio.Event()
        self._listeners: list[Listener] = []
        self._batches = 0
        self._writes = 0
        self._largest = 0
        self._refused = 0

    async def write(self, write: Write[R]) -> R:
        answered = trio.Event()
        answers: list[R | Exception] = []

        def done(answer: R | Exception) -> None:
            answers.append(answer)
            answered.set()

        self.submit(write, done)
        await answered.wait()
        answer = answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def submit(self, write: Write[R], done: Callable[[R | Exception], None]) -> None:
        self._queue.append((write, done))
        self._awake.set()

    def submit_all(self, writes: Sequence[tuple[Write[Any], Done]]) -> None:
        for write, done in writes:
            self.submit(write, done)

    def submit_unit(
        self, writes: Sequence[RenewLease], done: Callable[[Sequence[int], Sequence[Any]], None]
    ) -> None:
        answers: list[Any] = []

        def hear(answer: Any) -> None:
            # All that is submitted in one go is one batch here, and is answered in order.
            answers.append(answer)
            if len(answers) == len(writes):
                done(range(len(writes)), answers)

        for write in writes:
            self.submit(write, hear)

    def listen(self, listener: Listener) -> None:
        """See ``Storage.on_frames``."""
        self._listeners.append(listener)

    def announce_frames(self) -> None:
        """Tell the listeners of frames that were added since the last time."""
        if not self._tables.new_heads:
            return
        news = list(self._tables.new_heads.items())
        self._tables.new_heads.clear()
        for listener in self._listeners:
            listener(news)

    async def run(self) -> None:
        """Commit batch after batch, until cancelled."""
        while True:
            await self._awake.wait()
            self._awake = trio.Event()
            while self._queue:
                await self._faults.pass_time()
                self._commit()

    def _commit(self) -> None:
        batch = list(self._queue)
        self._queue.clear()
        # All are applied before the first is answered, as a commit has it.
        answers = [self._answer(i, write) for i, (write, _) in enumerate(batch)]
        self._batches += 1
        self._writes += len(batch)
        self._largest = max(self._largest, len(batch))
        for (_, done), answer in zip(batch, answers, strict=True):
            done(answer)
        self.announce_frames()

    def _answer(self, position: int, write: Write[Any]) -> Any:
        try:
            if position >= QUEUE_LIMIT:
                raise StorageUnavailable("the journal's queue is full")
            self._faults.check_reachable()
            if self._faults.takes_race(write):
                return NothingToClaim(LEASED) if isinstance(write, ClaimEvent) else Lost(STALE)
            answer = apply(self._tables, write)
            self._keep_line(write, answer)
            if self._faults.takes_outcome():
                raise StorageUnavailable("the outcome is unknown: a fault that the test ordered")
        except StorageError as error:
            self._refused += isinstance(error, RowRefused)
            return error
        return answer

    def _keep_line(self, write: Write[Any], answer: Any) -> None:
        if (
            isinstance(write, ResolveGate | CancelEvent | AppendEvent)
            and write.audit is not None
            and has_changed(answer)
        ):
            self._tables.audit.append(write.audit)

    def statistics(self) -> JournalStatistics:
        lane = LaneStatistics(
            depth=len(self._queue),
            batches=self._batches,
            writes=self._writes,
            largest_batch=self._largest,
            seconds=0.0,
            retries=0,
            refused=self._refused,
            settled=0,
            outages=0,
        )
        return JournalStatistics(hot=lane, bulk=LaneStatistics(0, 0, 0, 0, 0.0, 0, 0, 0, 0))
