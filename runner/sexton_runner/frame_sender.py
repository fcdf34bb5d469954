"""Sends a run's frames in the background: in order, in small batches, without delaying the run."""

import random

import structlog
import trio

from sexton_runner.background_sender import BackgroundSender
from sexton_runner.client import ControlPlane
from sexton_runner.errors import Refused, TokenRejected, Unavailable
from sexton_runner.frames import Frame, FrameQueue
from sexton_runner.lease import Halt, LiveLease
from sexton_runner.timing import Timing, backoff

STALE = frozenset({"UZ-RUN-005", "UZ-RUN-006", "UZ-RUN-011"})
log = structlog.get_logger()


class FrameSender(BackgroundSender[list[Frame]]):
    """One per run.

    A batch whose answer was lost is sent again, so a frame may be shown twice but not lost that way.
    """

    def __init__(self, live: LiveLease, plane: ControlPlane, timing: Timing, rng: random.Random) -> None:
        super().__init__(timing, timing.flush_s)
        self._live, self._plane, self._rng = live, plane, rng
        self._queue = FrameQueue()

    def put(self, frame: Frame) -> None:
        """Queue a frame; never waits."""
        self._queue.put(frame)
        self._note()

    def _take(self) -> list[Frame]:
        return self._queue.take()

    async def _send(self, batch: list[Frame]) -> None:
        attempt = 0
        while True:
            try:
                await self._plane.activity(self._live.lease.lease_id, batch)
            except Unavailable:
                await trio.sleep(backoff(attempt, self._rng.random(), self._timing))
                attempt += 1
            except TokenRejected:
                raise
            except Refused as refusal:
                log.warning(
                    "frames_refused",
                    lease_id=self._live.lease.lease_id,
                    code=refusal.code,
                    detail=refusal.detail,
                )
                if refusal.code in STALE:
                    self._live.halt(Halt.LOST, refusal.code)
                return
            else:
                return
