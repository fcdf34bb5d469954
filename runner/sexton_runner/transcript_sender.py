"""Sends a run's transcript in the background, and waits for it at the end of the run."""

import random
from collections.abc import Mapping
from typing import Any

import structlog
import trio

from sexton_runner.background_sender import BackgroundSender
from sexton_runner.client import ControlPlane
from sexton_runner.errors import Refused, TokenRejected, Unavailable
from sexton_runner.lease import LiveLease
from sexton_runner.redact import Redactor
from sexton_runner.timing import Timing, backoff
from sexton_runner.transcript import Transcript

UNKNOWN_CALL = frozenset({404, 405})
log = structlog.get_logger()


class TranscriptSender(BackgroundSender[list[dict[str, Any]]]):
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
        super().__init__(timing, timing.transcript_s)
        self._live, self._plane, self._rng = live, plane, rng
        self._transcript = Transcript(redactor)

    def put(self, kind: str, data: Mapping[str, Any]) -> None:
        """Add to the transcript; never waits."""
        self._transcript.put(kind, data)
        if len(self._transcript):
            self._note()

    async def flush(self) -> None:
        """As of every sender; at once when nothing is on its way."""
        if not self.is_idle:
            await super().flush()

    def _take(self) -> list[dict[str, Any]]:
        return self._transcript.take()

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
