"""What became of an event: as sentences in the order of time, and as the lanes of a drawing."""

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from sexton_http.pages.templates.timeline import Span, Timeline, draw
from sexton_http.pages.templates.words import EVENTS, GATES, mark, span, tail
from sexton_http.routes.billing import Period
from sexton_http.routes.event_details import WholeEvent
from sexton_http.routes.transcripts import EntryKind, TranscriptItem
from sexton_storage.records.events import EventStatus
from sexton_storage.records.gates import GateStatus

UNKNOWN: Final = {"model": "a model", "name": "a call or step"}
"""What is said of an entry whose data are too long for a list; the transcript has them."""


class Step(NamedTuple):
    """One line of an event's story."""

    at: int
    words: str


def story_of(event: WholeEvent) -> list[Step]:
    """What became of the event, in the order of time."""
    steps = [Step(event.created_at, f"came from {event.actor} as {event.event_type}")]
    for lease in event.leases:
        who = f"attempt {lease.attempt} under fencing token {lease.fencing_token}"
        steps.append(Step(lease.granted_at, f"{who} was leased to runner {tail(str(lease.runner_id))}"))
        if lease.ended_at is not None:
            how = lease.failure_label or lease.status.value
            words = f"attempt {lease.attempt} ended after {_renewals(lease.renewals)}: {how}"
            steps.append(Step(lease.ended_at, words))
    for gate in event.gates:
        what = gate.proposed_action or gate.action_name
        steps.append(Step(gate.requested_at, f"asked for approval: {what}"))
        if gate.status is not GateStatus.PENDING and gate.updated_at is not None:
            by = gate.resolved_by if isinstance(gate.resolved_by, str) else "nobody"
            steps.append(Step(gate.updated_at, f"{mark(GATES, gate.status).word} by {by}"))
    if event.completed_at is not None:
        label = f", {event.failure_label}" if event.failure_label else ""
        steps.append(Step(event.completed_at, f"ended: {mark(EVENTS, event.status).word}{label}"))
    return sorted(steps)


def timeline_of(
    event: WholeEvent, entries: Sequence[TranscriptItem], periods: Sequence[Period], now: int
) -> Timeline:
    """Draw it up to its end, or to now while it goes on."""
    end = event.completed_at or now
    lanes = (
        ("Waiting", _waits(event, end)),
        ("Leases", _leases(event, end)),
        ("Renewals", [_moment(row.created_at, "renewed") for row in periods]),
        ("Gates", _gates(event, end)),
        ("Model", list(_turns(entries))),
        ("Tools", list(_lasting(entries, EntryKind.TOOL_RESULT))),
        ("Steps", list(_lasting(entries, EntryKind.STEP))),
    )
    return draw(event.created_at, end, lanes, [(row.created_at, row.charged_nanos) for row in periods])


def _renewals(count: int) -> str:
    return "1 renewal" if count == 1 else f"{count} renewals"


def _waits(event: WholeEvent, end: int) -> list[Span]:
    """The times in which nobody held a lease."""
    spans, free_since = [], event.created_at
    for lease in event.leases:
        spans.append(Span(free_since, lease.granted_at, "", "mute"))
        free_since = end if lease.ended_at is None else lease.ended_at
    spans.append(Span(free_since, end, "", "mute"))
    return [
        one._replace(words=f"waited {span(one.ended - one.began)}") for one in spans if one.ended > one.began
    ]


def _leases(event: WholeEvent, end: int) -> list[Span]:
    spans = []
    for lease in event.leases:
        until = end if lease.ended_at is None else lease.ended_at
        failed = lease.failure_label is not None or lease.outcome is EventStatus.AGENT_ERROR
        how = lease.failure_label or (lease.outcome or lease.status).value
        words = (
            f"attempt {lease.attempt}, {span(until - lease.granted_at)}, {_renewals(lease.renewals)}: {how}"
        )
        spans.append(Span(lease.granted_at, until, words, "red" if failed else "accent"))
    return spans


def _gates(event: WholeEvent, end: int) -> list[Span]:
    spans = []
    for gate in event.gates:
        pending = gate.status is GateStatus.PENDING or gate.updated_at is None
        until = end if pending or gate.updated_at is None else gate.updated_at
        what, found = gate.proposed_action or gate.action_name, mark(GATES, gate.status)
        spans.append(Span(gate.requested_at, until, f"{found.word}: {what}", found.tone))
    return spans


def _turns(entries: Iterable[TranscriptItem]) -> Iterable[Span]:
    """Each answer of a model, from the entry before it."""
    before: TranscriptItem | None = None
    for entry in entries:
        if entry.kind == EntryKind.MODEL:
            same = before is not None and before.attempt == entry.attempt
            began = before.at_ms if before is not None and same else entry.at_ms
            yield Span(began, entry.at_ms, f"{_said(entry, 'model')} answered", "violet")
        before = entry


def _lasting(entries: Iterable[TranscriptItem], kind: EntryKind) -> Iterable[Span]:
    """What says at its end how long it took."""
    for entry in entries:
        took = entry.data.get("ms") if isinstance(entry.data, dict) else None
        if entry.kind == kind and (entry.data is None or isinstance(took, int)):
            ms = took if isinstance(took, int) else 0
            failed = isinstance(entry.data, dict) and entry.data.get("ok") is False
            words = f"{_said(entry, 'name')}, {span(ms)}{', failed' if failed else ''}"
            yield Span(entry.at_ms - ms, entry.at_ms, words, "red" if failed else "green")


def _said(entry: TranscriptItem, field: str) -> str:
    data: Any = entry.data
    return str(data.get(field, UNKNOWN[field])) if isinstance(data, dict) else UNKNOWN[field]


def _moment(at: int, words: str) -> Span:
    return Span(at, at, words, "green")
