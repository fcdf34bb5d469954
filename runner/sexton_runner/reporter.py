"""Sends the reports of all runs of this runner: those that are ready together share a call."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson
import outcome
import structlog
import trio

from sexton_runner.client import RETRIED_STATUSES, SERVER_FAULT, ControlPlane
from sexton_runner.errors import ControlPlaneError, Refused, TokenRejected, Unavailable
from sexton_runner.reports import MAX_REPORT_BYTES, Report
from sexton_runner.wire import MAX_REPORTS_PER_CALL, ReportResult

Answer = Mapping[str, Any]
UNKNOWN_CALL: Final = frozenset({404, 405})
UNANSWERED: Final = outcome.Error(Unavailable("no answer came"))
SEPARATOR: Final = 1
"""The comma between two reports."""

log = structlog.get_logger()


@dataclass(slots=True, eq=False)
class _Waiting:
    """A report on its way from a run to the control plane: waiting, then asked, then answered."""

    body: Report
    size: int
    answered: trio.Event
    answer: outcome.Outcome[Answer]
    """Set with ``answered``."""
    given_up: bool = False
    """The run has been told to let go: nobody hears the answer."""


class Reporter:
    """Takes reports one by one, and sends those that come within ``gather_s`` of one another as one call.

    Each has its own answer or its own fault, and its run alone decides whether it is sent again. A lost
    answer is every report's of that call: each is known by its content when it comes again, in whatever
    company.
    """

    def __init__(self, plane: ControlPlane, gather_s: float) -> None:
        self._plane = plane
        self._gather_s = gather_s
        self._waiting: list[_Waiting] = []
        self._came = trio.Event()
        self._takes_many = True

    def __repr__(self) -> str:
        return f"<Reporter {len(self._waiting)} waiting>"

    async def report(self, body: Report) -> Answer:
        """Send one report, in company or alone. Raises as a call of its own would."""
        waiting = _Waiting(body, len(orjson.dumps(body)) + SEPARATOR, trio.Event(), UNANSWERED)
        self._waiting.append(waiting)
        self._came.set()
        try:
            await waiting.answered.wait()
        except BaseException:
            waiting.given_up = True
            raise
        return waiting.answer.unwrap()

    async def run(self) -> None:
        """Send until cancelled."""
        async with trio.open_nursery() as calls:
            while True:
                await self._came.wait()
                await trio.sleep(self._gather_s)
                self._came = trio.Event()
                ready = [one for one in self._waiting if not one.given_up]
                self._waiting.clear()
                for batch in batches([one.size for one in ready]):
                    # A call that waits for its answer holds up nobody who is ready later.
                    calls.start_soon(self._send, [ready[place] for place in batch])

    async def _send(self, batch: Sequence[_Waiting]) -> None:
        if len(batch) == 1 or not self._takes_many:
            async with trio.open_nursery() as calls:
                for one in batch:
                    calls.start_soon(self._send_alone, one)
            return
        try:
            results = await self._plane.report_many([one.body for one in batch])
        except (Unavailable, TokenRejected) as fault:
            for one in batch:
                _settle(one, outcome.Error(fault))
        except Refused as refusal:
            # An older control plane does not know the call; or one report spoils it for all the others.
            log.info("reports_one_by_one", code=refusal.code, detail=refusal.detail)
            self._takes_many = refusal.status not in UNKNOWN_CALL
            async with trio.open_nursery() as calls:
                for one in batch:
                    calls.start_soon(self._send_alone, one)
        else:
            for one, result in zip(batch, results, strict=True):
                _settle(one, answer_of(result))

    async def _send_alone(self, one: _Waiting) -> None:
        try:
            _settle(one, outcome.Value(await self._plane.report(one.body)))
        except ControlPlaneError as fault:
            _settle(one, outcome.Error(fault))


def _settle(one: _Waiting, answer: outcome.Outcome[Answer]) -> None:
    one.answer = answer
    one.answered.set()


def answer_of(result: ReportResult) -> outcome.Outcome[Answer]:
    """One of many as a call of its own would have ended.

    >>> answer_of(ReportResult(ok=True, status=200, report={"duplicate": True}))
    Value({'duplicate': True})
    >>> answer_of(ReportResult(ok=False, status=503, error_code="UZ-API-003", retry_after_s=2))
    Error(Unavailable('503 UZ-API-003'))
    >>> answer_of(ReportResult(ok=False, status=409, error_code="UZ-RUN-005"))
    Error(Refused('409 UZ-RUN-005: '))
    """
    if result.ok:
        return outcome.Value(result.report)
    if result.status >= SERVER_FAULT or result.status in RETRIED_STATUSES:
        why = f"{result.status} {result.error_code}".strip()
        return outcome.Error(Unavailable(why, result.retry_after_s))
    return outcome.Error(Refused(result.status, result.error_code, result.problem.detail or ""))


def batches(sizes: Sequence[int]) -> list[list[int]]:
    """The places of reports that share a call, in order: as many as the control plane takes at once.

    >>> batches([10, 20, MAX_REPORT_BYTES - 25, 5])
    [[0, 1], [2, 3]]
    >>> [len(one) for one in batches([1] * 130)]
    [64, 64, 2]
    """
    made: list[list[int]] = []
    room = 0
    for place, size in enumerate(sizes):
        if not made or size > room or len(made[-1]) == MAX_REPORTS_PER_CALL:
            made.append([])
            room = MAX_REPORT_BYTES
        made[-1].append(place)
        room -= size
    return made
