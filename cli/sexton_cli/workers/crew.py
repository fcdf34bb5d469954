"""The parent of several workers: starts them, watches them, starts them again, and ends with them."""

import os
import pickle
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

import structlog
import trio

from sexton_cli.exits import CONFIG, UNAVAILABLE, StartupFault
from sexton_cli.local_runners import wait
from sexton_cli.workers.restarts import History, after_end, gives_up, is_to_be_killed
from sexton_http.wire import timeouts
from sexton_http.wire.worker_board import Row, WorkerBoard, WorkerState

WATCH_S: Final = 0.1
LATE_S: Final = 1.0
"""A parent that looks later than this was itself kept from running, and judges nobody by that time."""
DRAIN_S: Final = timeouts.GRACE_S + 5.0
"""How long a worker may take to end what it has begun."""
LET_GO_S: Final = 2.0
"""What a worker needs once it is told to hurry."""
PROGRAM: Final = (sys.executable, "-m", "sexton_cli.workers.process")

log = structlog.get_logger()
MakeOrder = Callable[[int, int], object]
"""What a worker is told, by its slot and the file that ends with its parent."""


@dataclass(slots=True)
class _Life:
    """One process of a slot."""

    process: subprocess.Popen[bytes]
    tie: int
    """What the process watches to learn that its parent has ended."""
    started: float
    heard: float
    """When it was last known to be there."""
    served: float | None = None
    """When it began to serve."""
    to_drain: bool = False
    """It ends because it was told to."""


@dataclass(slots=True)
class _Slot:
    number: int
    history: History = field(default_factory=History)
    life: _Life | None = None
    lives: int = 0


class Crew:
    """Keeps as many workers as there are slots, for as long as ``run`` runs."""

    def __init__(
        self,
        board: WorkerBoard,
        make_order: MakeOrder,
        files: Sequence[int],
        hastened: trio.Event,
        program: Sequence[str] = PROGRAM,
    ) -> None:
        """``files``: what every worker inherits. ``hastened``: there is no time to drain."""
        self._board = board
        self._make_order = make_order
        self._files = tuple(files)
        self._hastened = hastened
        self._program = program
        self._slots = [_Slot(number) for number in range(board.slots)]
        self._changed = trio.Event()
        self._rolling = False

    def __repr__(self) -> str:
        return f"<Crew {self._board!r}>"

    @property
    def pids(self) -> list[int]:
        """The processes that there are now."""
        return [slot.life.process.pid for slot in self._slots if slot.life is not None]

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Keep them until cancelled, then let them end. Says that it has started when all serve.

        Raises StartupFault, in a group, when they do not stay up.
        """
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._watch)
                for slot in self._slots:
                    nursery.start_soon(self._keep, slot)
                while any(slot.life is None or slot.life.served is None for slot in self._slots):
                    await self._changed.wait()
                task_status.started()
        finally:
            with trio.CancelScope(shield=True):
                await self._end_all()

    async def restart_one_by_one(self) -> None:
        """Have each worker drain and another take its place; the next one when that serves."""
        if self._rolling:
            return
        self._rolling = True
        try:
            for slot in self._slots:
                old = slot.life
                if old is None or old.to_drain:
                    continue
                log.info("worker_restarting", worker=slot.number)
                await self._drain(old)
                while slot.life is old or slot.life is None or slot.life.served is None:
                    await self._changed.wait()
            log.info("workers_restarted", workers=len(self._slots))
        finally:
            self._rolling = False

    def tell_all(self, number: signal.Signals) -> None:
        """Send every worker that serves a signal."""
        for slot in self._slots:
            if slot.life is not None and slot.life.served is not None:
                slot.life.process.send_signal(number)

    # --- one slot -------------------------------------------------------------------------------------------

    async def _keep(self, slot: _Slot) -> None:
        while True:
            life: _Life | None = None
            try:
                life = self._start(slot)
            except OSError as fault:
                # Too many processes or files: it may pass, as what a worker dies of may.
                log.error("worker_not_started", worker=slot.number, fault=str(fault))  # noqa: TRY400 - said in full
                status = UNAVAILABLE
            else:
                status = await wait(life.process)
                os.close(life.tie)
            slot.life = None
            was_told = life is not None and life.to_drain
            if not was_told:
                served = None if life is None else life.served
                served_s = 0.0 if served is None else trio.current_time() - served
                slot.history = after_end(slot.history, status, served_s)
            self._note(slot, WorkerState.WAITING)
            if gives_up([one.history for one in self._slots], self._serving):
                raise _given_up(slot.history)
            if not was_told:
                pause_s = slot.history.pause_s
                log.warning("worker_ended", worker=slot.number, status=status, again_in_s=pause_s)
                await trio.sleep(pause_s)

    def _start(self, slot: _Slot) -> _Life:
        watched, tie = os.pipe()
        try:
            order = self._make_order(slot.number, watched)
            # A parent-death signal follows the thread that forks: this is the main one.
            setpriv = shutil.which("setpriv")
            guard = [setpriv, "--pdeathsig", "KILL", "--"] if setpriv else []
            process = subprocess.Popen(
                [*guard, *self._program],
                stdin=subprocess.PIPE,
                pass_fds=(*self._files, watched),
                start_new_session=True,
            )
        except BaseException:
            os.close(tie)
            raise
        finally:
            os.close(watched)
        # One that has ended already is found out by its end.
        if process.stdin is not None:
            with suppress(BrokenPipeError), process.stdin as pipe:
                pipe.write(pickle.dumps(order))
        now = trio.current_time()
        slot.life = _Life(process, tie, started=now, heard=now)
        slot.lives += 1
        self._note(slot, WorkerState.STARTING)
        return slot.life

    def _note(self, slot: _Slot, state: WorkerState) -> None:
        pid = 0 if slot.life is None else slot.life.process.pid
        self._board.put(slot.number, Row(state, 0.0, pid, max(0, slot.lives - 1)))
        self._changed.set()
        self._changed = trio.Event()

    # --- all ------------------------------------------------------------------------------------------------

    @property
    def _serving(self) -> int:
        return sum(slot.life is not None and slot.life.served is not None for slot in self._slots)

    async def _watch(self) -> None:
        before = trio.current_time()
        beats = [0.0] * len(self._slots)
        while True:
            await trio.sleep(WATCH_S)
            now = trio.current_time()
            was_late, before = now - before > LATE_S, now
            for slot in self._slots:
                life, row = slot.life, self._board.row(slot.number)
                if life is None:
                    continue
                if was_late or row.beat_at != beats[slot.number]:
                    life.heard = now
                    beats[slot.number] = row.beat_at
                if life.served is None and row.state is WorkerState.SERVING:
                    life.served = now
                    log.info("worker_serves", worker=slot.number, pid=life.process.pid)
                    self._changed.set()
                    self._changed = trio.Event()
                if is_to_be_killed(row.state, now - life.heard, now - life.started):
                    log.error("worker_frozen", worker=slot.number, silent_s=round(now - life.heard, 1))
                    life.process.kill()

    async def _drain(self, life: _Life) -> None:
        """Have it end what it has begun; at last, have it end."""
        life.to_drain = True
        life.process.send_signal(signal.SIGTERM)
        with trio.move_on_after(DRAIN_S):
            await wait(life.process)
        if life.process.poll() is None:
            life.process.kill()

    async def _end_all(self) -> None:
        lives = [slot.life for slot in self._slots if slot.life is not None]
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._hasten, lives)
            async with trio.open_nursery() as draining:
                for life in lives:
                    draining.start_soon(self._drain, life)
            nursery.cancel_scope.cancel()
        for life in lives:
            life.process.wait()
            os.close(life.tie)

    async def _hasten(self, lives: Sequence[_Life]) -> None:
        await self._hastened.wait()
        for life in lives:
            life.process.send_signal(signal.SIGTERM)
        await trio.sleep(LET_GO_S)
        for life in lives:
            life.process.kill()


def _given_up(history: History) -> StartupFault:
    how = f"signal {-history.status}" if history.status < 0 else f"status {history.status}"
    what = f"no worker serves, and one has not stayed up {history.short} times in a row; it ended with {how}"
    way_out = "What it said stands above; start with --workers 1 to see it alone"
    return StartupFault("UZ-STARTUP-001", what, way_out, CONFIG if history.status == CONFIG else UNAVAILABLE)
