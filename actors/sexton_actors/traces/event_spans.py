"""The spans of an event that its rows tell: the event itself, its waits, leases and gates."""

from collections.abc import Sequence
from typing import Final
from uuid import UUID

import msgspec

from sexton_actors.traces import content
from sexton_actors.traces.content import ContentMode
from sexton_actors.traces.context import AGENT, EVENT, LEASE, TraceContext, context_of, span_id
from sexton_actors.traces.costs import Purse
from sexton_actors.traces.run_spans import RunSpans, usage
from sexton_actors.traces.spans import COST, Link, Span, SpanEvent, SpanKind, Value
from sexton_storage.records.events import Event, EventStatus
from sexton_storage.records.gates import Gate, GateStatus
from sexton_storage.records.leases import Lease, LeaseStatus
from sexton_storage.records.metering import MeteringPeriod

FAILED: Final = frozenset({EventStatus.AGENT_ERROR, EventStatus.DEAD_LETTERED, EventStatus.GATE_BLOCKED})
MOST_RENEWALS: Final = 500
"""Renewals of a lease that are told one by one, the first ones."""


class Traced(msgspec.Struct, frozen=True):
    """An event and what its spans say of it."""

    event: Event
    agent: str
    """The agent's name; empty once it is deleted."""
    context: TraceContext
    mode: ContentMode

    def span(self, *place: str | int) -> str:
        return span_id(self.event.id, *place)


def event_span(traced: Traced, resumed: Event | None) -> Span:
    """The whole event, from its coming to its end, as a child of its sender's span.

    ``resumed``: the event that it goes on from or repeats, which it links to.
    """
    event = traced.event
    failed = event.status in FAILED
    label = event.failure_label or event.error_code or str(event.status)
    attributes: dict[str, Value] = {
        **_owners(event),
        "gen_ai.agent.id": str(event.zombie_id),
        "gen_ai.agent.name": traced.agent,
        "sexton.event.id": str(event.id),
        "sexton.event.source": event.actor.partition(":")[0],
        "sexton.event.status": str(event.status),
        "sexton.event.attempts": event.attempts,
        "sexton.event.charged_nanos": event.charged_nanos,
        COST: 0,
        **({"error.type": label} if failed else {}),
        **content.only_known(
            traced.mode, {"sexton.event.actor": event.actor, "sexton.event.type": event.event_type}
        ),
    }
    links: tuple[Link, ...] = ()
    if resumed is not None:
        links = (Link(context_of(resumed).trace_id, span_id(resumed.id, EVENT)),)
    return Span(
        trace_id=traced.context.trace_id,
        span_id=traced.span(EVENT),
        parent_id=traced.context.parent_id,
        name="event",
        kind=SpanKind.CONSUMER,
        began_ms=event.created_at,
        ended_ms=event.completed_at or event.updated_at,
        attributes=attributes,
        links=links,
        fault=label if failed else None,
    )


def wait_span(traced: Traced, attempt: int, since: int, until: int) -> Span:
    """The time before an attempt in which nobody held the event; after the last one, until its end."""
    return Span(
        trace_id=traced.context.trace_id,
        span_id=traced.span("wait", attempt),
        parent_id=traced.span(EVENT),
        name="wait",
        began_ms=min(since, until),
        ended_ms=until,
        attributes={**_owners(traced.event), "sexton.lease.attempt": attempt, COST: 0},
    )


def gate_span(traced: Traced, gate: Gate, attempt: int | None) -> Span:
    """A question to a person, from its asking to its answer. ``attempt``: the one that asked, if one did."""
    parent = traced.span(EVENT) if attempt is None else traced.span(AGENT, attempt)
    ended = gate.updated_at or traced.event.completed_at or gate.requested_at
    about = content.only_known(
        traced.mode, {"sexton.gate.action": gate.action_name[:256], "sexton.gate.by": gate.resolved_by or ""}
    )
    attributes: dict[str, Value] = {
        **_owners(traced.event),
        "sexton.gate.id": str(gate.id),
        "sexton.gate.status": str(gate.status),
        "gen_ai.tool.name": gate.tool_name[:128],
        COST: 0,
        **about,
    }
    return Span(
        trace_id=traced.context.trace_id,
        span_id=traced.span("gate", gate.id.hex),
        parent_id=parent,
        name="gate",
        began_ms=gate.requested_at,
        ended_ms=max(ended, gate.requested_at),
        attributes=attributes,
        fault=None if gate.status in {GateStatus.APPROVED, GateStatus.PENDING} else str(gate.status),
    )


def attempt_spans(
    traced: Traced, lease: Lease, periods: Sequence[MeteringPeriod], run: RunSpans, purse: Purse
) -> list[Span]:
    """The lease, the run under it, and its report, once the run's own spans are made.

    The lease has what is left of the bill: its time, and what was not for tokens of an answer.
    """
    ended = lease.ended_at or lease.metered_at
    spans = run.finish(ended)
    run_ended = min(run.ended_ms or ended, ended)
    lost = lease.status is LeaseStatus.RECLAIMED
    spans.append(
        Span(
            trace_id=traced.context.trace_id,
            span_id=traced.span(AGENT, lease.attempt),
            parent_id=traced.span(LEASE, lease.attempt),
            name=f"invoke_agent {traced.agent}",
            began_ms=min(run.began_ms or lease.granted_at, run_ended),
            ended_ms=run_ended,
            attributes=_run(traced, lease, run),
            fault="runner_lost" if lost else None,
        )
    )
    if lease.status is LeaseStatus.REPORTED:
        spans.append(
            Span(
                trace_id=traced.context.trace_id,
                span_id=traced.span("report", lease.attempt),
                parent_id=traced.span(LEASE, lease.attempt),
                name="report",
                began_ms=run_ended,
                ended_ms=ended,
                attributes={COST: 0},
            )
        )
    spans.append(
        Span(
            trace_id=traced.context.trace_id,
            span_id=traced.span(LEASE, lease.attempt),
            parent_id=traced.span(EVENT),
            name="lease",
            began_ms=lease.granted_at,
            ended_ms=ended,
            attributes={
                **_owners(traced.event),
                "sexton.lease.id": str(lease.id),
                "sexton.lease.attempt": lease.attempt,
                "sexton.lease.fencing_token": lease.fencing_token,
                "sexton.lease.status": str(lease.status),
                "sexton.runner.id": str(lease.runner_id),
                COST: purse.rest(),
                **({"error.type": "runner_lost"} if lost else {}),
            },
            events=_told(lease, periods, ended),
            fault="runner_lost" if lost else None,
        )
    )
    return spans


def _run(traced: Traced, lease: Lease, run: RunSpans) -> dict[str, Value]:
    counts = {name: getattr(lease, name) for name in _COUNTS}
    return {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.id": str(traced.event.zombie_id),
        "gen_ai.agent.name": traced.agent,
        **({} if lease.config_version_id is None else {"gen_ai.agent.version": str(lease.config_version_id)}),
        **({} if lease.model is None else {"gen_ai.request.model": lease.model}),
        **usage(counts),
        **({"sexton.spans.left_out": run.left_out} if run.left_out else {}),
        COST: 0,
    }


_COUNTS: Final = ("input_tokens", "cached_input_tokens", "cache_write_tokens", "output_tokens")


def _told(lease: Lease, periods: Sequence[MeteringPeriod], ended: int) -> tuple[SpanEvent, ...]:
    """Each renewal, and how the lease was taken back."""
    told = [
        SpanEvent(
            "renewed",
            period.created_at,
            {"sexton.slice": period.slice_seq, "sexton.charged_nanos": period.charged_nanos},
        )
        for period in periods[:MOST_RENEWALS]
    ]
    if lease.status is LeaseStatus.RECLAIMED:
        told.append(SpanEvent("reclaimed", ended, {"sexton.lease.expires_at_ms": lease.expires_at}))
    return tuple(told)


def _owners(event: Event) -> dict[str, Value]:
    return {"sexton.tenant.id": str(event.tenant_id), "sexton.workspace.id": str(event.workspace_id)}


def own_periods(periods: Sequence[MeteringPeriod], lease: Lease) -> list[MeteringPeriod]:
    """The metering rows of one lease, of those of its event."""
    return [period for period in periods if period.attempt == lease.attempt]


def attempt_of(gate: Gate, leases: Sequence[Lease]) -> int | None:
    """The attempt in which a gate was opened."""
    by_id: dict[UUID, int] = {lease.id: lease.attempt for lease in leases}
    return None if gate.lease_id is None else by_id.get(gate.lease_id)
