"""The group-commit writer of the hot rows over two lanes."""

import logging
from collections.abc import Callable, Sequence
from typing import Any, TypeVar
from uuid import UUID

import trio
from outcome import Value

from sexton_storage.errors import StorageUnavailable
from sexton_storage.portal import Portal
from sexton_storage.postgres.journal.frames import News
from sexton_storage.postgres.journal.lane import Lane
from sexton_storage.postgres.journal.selection import Done, Entry, Unit, UnitDone
from sexton_storage.signals import Signal, Signals, Topic
from sexton_storage.statistics import JournalStatistics
from sexton_storage.writes import (
    AppendEvent,
    AppendFrames,
    CancelEvent,
    ClaimEvent,
    EndLease,
    OpenGate,
    RenewLease,
    ResolveGate,
    Write,
)

R = TypeVar("R")
Listener = Callable[[News], None]
HOT: frozenset[type] = frozenset(
    {AppendEvent, ClaimEvent, RenewLease, EndLease, OpenGate, ResolveGate, CancelEvent}
)
BULK: frozenset[type] = frozenset({AppendFrames})
log = logging.getLogger("sexton.storage")


class PostgresJournal:
    """See ``stores.Journal``. Called in trio's thread."""

    def __init__(self, portal: Portal, signals: Signals) -> None:
        self._portal = portal
        self._signals = signals
        self._hot: Lane | None = None
        self._bulk: Lane | None = None
        self._lanes: dict[type, Lane] = {}
        self._listeners: list[Listener] = []
        signals.listen(self._hear)

    async def open(self, hot: Lane, bulk: Lane) -> None:
        self._hot, self._bulk = hot, bulk
        self._lanes |= dict.fromkeys(HOT, hot)
        self._lanes |= dict.fromkeys(BULK, bulk)
        await self._portal.run(hot.open)
        await self._portal.run(bulk.open)

    async def close(self) -> None:
        for lane in (self._hot, self._bulk):
            if lane is not None:
                await self._portal.run(lane.close, shield=True)

    async def write(self, write: Write[R]) -> R:
        await trio.lowlevel.checkpoint_if_cancelled()
        lane = self._open_lane(write)
        task: trio.lowlevel.Task | None = trio.lowlevel.current_task()

        def done(answer: Any) -> None:
            if task is not None:
                trio.lowlevel.reschedule(task, Value(answer))

        def abort(_: object) -> trio.lowlevel.Abort:
            # The write goes on and commits; only its answer has nobody to hear it.
            nonlocal task
            task = None
            return trio.lowlevel.Abort.SUCCEEDED

        self._put(lane, write, done)
        answer = await trio.lowlevel.wait_task_rescheduled(abort)
        if isinstance(answer, Exception):
            raise answer
        return answer  # type: ignore[no-any-return] # Batch answers every write with what its type names

    def submit(self, write: Write[R], done: Callable[[R | Exception], None]) -> None:
        try:
            lane = self._open_lane(write)
        except StorageUnavailable as error:
            refusal = error
            trio.lowlevel.current_trio_token().run_sync_soon(lambda: _tell(done, refusal))
            return
        self._put(lane, write, done)

    def submit_all(self, writes: Sequence[tuple[Write[Any], Done]]) -> None:
        if not writes:
            return
        try:
            lane = self._open_lane(writes[0][0])
        except StorageUnavailable as error:
            token = trio.lowlevel.current_trio_token()
            for _, done in writes:
                token.run_sync_soon(_tell, done, error)
            return
        self._portal.outstanding += len(writes)
        lane.put_all(writes)

    def submit_unit(self, writes: Sequence[RenewLease], done: UnitDone) -> None:
        if not writes:
            return
        try:
            lane = self._open_lane(writes[0])
        except StorageUnavailable as error:
            places, answers = range(len(writes)), [error] * len(writes)
            trio.lowlevel.current_trio_token().run_sync_soon(lambda: _tell(done, places, answers))
            return
        self._portal.outstanding += len(writes)
        lane.put_together(writes, done)

    def _open_lane(self, write: Write[Any]) -> Lane:
        lane = self._lanes.get(type(write))
        if lane is None:
            raise TypeError(f"{type(write).__name__} is no write of the journal, or it is not open")
        if lane.is_closed:
            raise StorageUnavailable("the journal is closed")
        if lane.is_full:
            raise StorageUnavailable("the journal's queue is full")
        return lane

    def _put(self, lane: Lane, write: Write[Any], done: Done) -> None:
        self._portal.outstanding += 1
        lane.put(write, done)

    def deliver(self, entries: Sequence[Entry], answers: Sequence[Any], news: News) -> None:
        """Tell the writers of one batch, then the listeners of its frames."""
        self._portal.outstanding -= len(answers)
        begin = 0
        for entry in entries:
            end = begin + entry.size
            if isinstance(entry, Unit):
                _tell(entry.done, entry.places, answers[begin:end])
            else:
                _tell(entry.done, answers[begin])
            begin = end
        self.announce(news)

    def listen(self, listener: Listener) -> None:
        """See ``Storage.on_frames``."""
        self._listeners.append(listener)

    def announce(self, news: Sequence[tuple[UUID, int]]) -> None:
        """Tell the listeners that agents have new frames, and then those of other nodes."""
        if news:
            self._tell_listeners(news)
            self._signals.send(*(Signal(Topic.FRAMES, zombie_id, head) for zombie_id, head in news))

    def _hear(self, signals: Sequence[Signal]) -> None:
        if news := [(signal.id, signal.number) for signal in signals if signal.topic is Topic.FRAMES]:
            self._tell_listeners(news)

    def _tell_listeners(self, news: Sequence[tuple[UUID, int]]) -> None:
        for listener in self._listeners:
            _tell(listener, news)

    def statistics(self) -> JournalStatistics:
        if self._hot is None or self._bulk is None:
            raise StorageUnavailable("the journal is not open")
        return JournalStatistics(self._hot.statistics(), self._bulk.statistics())


def _tell(hear: Callable[..., None], *what: Any) -> None:
    # This is not inside any task: an exception here would end the whole loop.
    try:
        hear(*what)
    except Exception:
        log.exception("a listener of the journal failed")
