"""Sends a run's transcript in the background, and waits for it at the end of the run."""

import random
from collections.abc import Mapping
from typing import Any

import structlog
import trio

from sexton_runner.client import ControlPlane
from sexton_runner.errors import Refused, TokenRejected, Unavailable
from sexton_runner.lease import LiveLease
from sexton_runner.redact import Redactor
from sexton_runner.timing import Timing, backoff
from sexton_runner.transcript import Transcript

UNKNOWN_CALL = frozenset({404, 405})
log = structlog.get_logger()


class TranscriptSender:
    """One per run.

    A batch whose answer was lost is sent again: its numbers are known, so no entry is kept twice. A
    transcript that is refused ends; the run goes on.
    """

    def __init__(
        self,
        live: LiveLease,
        plane: ControlPlane,
        *,
        timing: Timing,
        rng: random.Random,
        redactor: Redactor,
    ) -> None:
        self._live, self._plane, self._timing, self._rng = live, plane, timing, rng
        self._transcript = Transcript(redactor)
        self._wanted = trio.Event()
        self._hurry = trio.Event()
        self._idle = trio.Event()
        self._idle.set()

    def put(self, kind: str, data: Mapping[str, Any]) -> None:
        """Add to the transcript; never waits."""
        self._transcript.put(kind, data)
        if len(self._transcript):
            self._idle = trio.Event() if self._idle.is_set() else self._idle
            self._wanted.set()

    async def flush(self) -> None:
        """Wait until all that was put has been answered, but no longer than ``flush_patience_s``."""
        if self._idle.is_set():
            return
        self._hurry.set()
        with trio.move_on_after(self._timing.flush_patience_s):
            await self._idle.wait()

    async def run(self) -> None:
        """Send until cancelled."""
        while True:
            await self._wanted.wait()
            self._wanted = trio.Event()
            with trio.move_on_after(self._timing.transcript_s):
                await self._hurry.wait()
            while batch := self._transcript.take():
                await self._send(batch)
            self._hurry = trio.Event()
            self._idle.set()

    async def _send(self, batch: list[dict[str, Any]]) -> None:
        lease, attempt = self._live.lease, 0
        while True:
            try:
                more = await self._plane.transcribe(lease, batch)
            except Unavailable:
                await trio.sleep(backoff(attempt, self._rng.random(), self._timing))
                attempt += 1
            except TokenRejected:
                raise
            except Refused as refusal:
                self._transcript.close()
                # A control plane of an earlier release keeps no transcripts.
                if refusal.status not in UNKNOWN_CALL:
                    log.warning(
                        "transcript_refused",
                        lease_id=lease.lease_id,
                        code=refusal.code,
                        detail=refusal.detail,
                    )
                return
            else:
                if not more:
                    self._transcript.close()
                return
