"""Reads what the database keeps of an event, and makes its spans of it."""

from collections.abc import Sequence
from typing import Final

from sexton_actors.traces.costs import Purse
from sexton_actors.traces.event_spans import (
    Traced,
    attempt_of,
    attempt_spans,
    event_span,
    gate_span,
    own_periods,
    wait_span,
)
from sexton_actors.traces.run_spans import MOST_SPANS, RunSpans
from sexton_actors.traces.spans import Span
from sexton_storage.records.insights import Attempt, EventHistory
from sexton_storage.records.metering import MeteringPeriod
from sexton_storage.records.transcripts import EntryPlace, EntryQuery
from sexton_storage.stores import Storage

PAGE: Final = 100
PAGE_BYTES: Final = 1 << 20


class SpanReader:
    """The spans of one event; of its transcripts at most ``most_bytes`` are read, where that is given.

    What is beyond the bound is left out, and its cost stays with its lease, so the sum is always the bill.
    """

    def __init__(
        self, storage: Storage, traced: Traced, history: EventHistory, most_bytes: int | None = None
    ) -> None:
        self._storage, self._traced, self._history = storage, traced, history
        self._left = most_bytes
        self._periods: Sequence[MeteringPeriod] | None = None
        self.cut = False
        """Whether the bound was reached."""

    async def attempt(self, number: int | None, most: int = MOST_SPANS) -> list[Span]:
        """One attempt with its wait, with at most ``most`` spans of its run; empty where there is none."""
        leases = [attempt.lease for attempt in self._history.attempts]
        place = next((place for place, lease in enumerate(leases) if lease.attempt == number), None)
        if place is None:
            return []
        traced, event, lease = self._traced, self._traced.event, leases[place]
        if self._periods is None:
            self._periods = await self._storage.metering.list(event.tenant_id, event.id)
        rows = own_periods(self._periods, lease)
        purse = Purse(sum(row.charged_nanos for row in rows))
        run = RunSpans(event, lease, traced.context, purse, traced.mode, most=most)
        spans = await self._run(run, lease.attempt)
        self.cut |= run.left_out > 0
        since = _free_since(event.created_at, self._history.attempts[:place])
        if since is not None:
            spans.append(wait_span(traced, lease.attempt, since, lease.granted_at))
        return [*spans, *attempt_spans(traced, lease, rows, run, purse)]

    async def _run(self, run: RunSpans, attempt: int) -> list[Span]:
        event = self._traced.event
        spans: list[Span] = []
        after = EntryPlace(attempt, 0)
        while self._left is None or self._left > 0:
            query = EntryQuery(attempt=attempt, after=after, limit=PAGE, max_bytes=PAGE_BYTES, whole=True)
            entries = await self._storage.transcripts.read(event.zombie_id, event.id, query)
            if not entries:
                return spans
            for entry in entries:
                run.add(entry)
            spans += run.take()
            after = EntryPlace(attempt, entries[-1].number)
            if self._left is not None:
                self._left -= sum(entry.size for entry in entries)
        self.cut = True
        return spans

    async def rest(self) -> list[Span]:
        """What is told of the event as a whole: its gates, the time after its last attempt, and itself."""
        traced, event = self._traced, self._traced.event
        leases = [attempt.lease for attempt in self._history.attempts]
        spans = [gate_span(traced, gate, attempt_of(gate, leases)) for gate in self._history.gates]
        since, ended = _free_since(event.created_at, self._history.attempts), event.completed_at
        if since is not None and ended is not None and ended > since:
            last = leases[-1].attempt if leases else 0
            spans.append(wait_span(traced, last + 1, since, ended))
        resumed = event.resumes_event_id
        before = None if resumed is None else await self._storage.events.load(resumed)
        return [*spans, event_span(traced, before)]

    async def whole(self, most: int) -> list[Span]:
        """All of it, with at most ``most`` spans of runs."""
        spans: list[Span] = []
        for one in self._history.attempts:
            spans += await self.attempt(one.lease.attempt, max(0, most - len(spans)))
        return [*spans, *await self.rest()]


def _free_since(created_at: int, before: Sequence[Attempt]) -> int | None:
    """Since when nobody has held the event; None: that of the attempt before is not known."""
    return created_at if not before else before[-1].lease.ended_at
