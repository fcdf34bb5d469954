"""Appends and cancels the events of a batch."""

from collections.abc import Sequence
from typing import Any

from sexton_storage.documents import storable
from sexton_storage.periods import day_of, month_of
from sexton_storage.postgres.connection import Connection
from sexton_storage.postgres.hot_frames import NumberedFrames
from sexton_storage.postgres.hot_gates import insert_gates
from sexton_storage.postgres.sql import unnest
from sexton_storage.records import EventStatus, Gate, GateStatus
from sexton_storage.rules import CANCELLED_LABEL, GONE
from sexton_storage.writes import (
    DEDUP_WINDOW_MS,
    Appended,
    AppendEvent,
    CancelEvent,
    Cancelled,
    CancelOutcome,
    Duplicate,
    Lost,
    OverBudget,
)

# The agents' heads are locked by the batch already: what is read of an agent here stays so until the commit.
_APPEND_TYPES = (
    "int uuid uuid uuid uuid text text text text bigint bigint text uuid text text text bigint uuid bytea"
    " bigint bigint int int int"
)
_APPEND = f"""
WITH v AS (
    SELECT * FROM {unnest(_APPEND_TYPES)}
        AS v(ord, id, zombie_id, workspace_id, tenant_id, actor, event_type, status, request_json, created_at,
             updated_at, source_event_id, resumes_event_id, traceparent, failure_label, error_code,
             completed_at, gate_id, key, daily, monthly, day, month, next_month)
), f AS (
    SELECT v.*, d.event_id AS first_id,
           CASE WHEN h.zombie_id IS NULL OR h.status = 'killed' THEN 'gone'
                WHEN d.event_id IS NOT NULL THEN 'duplicate'
                WHEN s.in_day >= v.daily THEN 'day'
                WHEN s.in_month >= v.monthly THEN 'month'
                ELSE 'kept' END AS outcome
      FROM v
      LEFT JOIN agent_heads h ON h.zombie_id = v.zombie_id
      LEFT JOIN dedup_keys d ON d.zombie_id = v.zombie_id AND d.key = v.key AND d.seen_at > v.created_at - $25
      LEFT JOIN LATERAL (
          SELECT coalesce(sum(nanos) FILTER (WHERE p.day = v.day), 0) AS in_day,
                 coalesce(sum(nanos), 0) AS in_month
            FROM spend p WHERE p.zombie_id = v.zombie_id AND p.day >= v.month AND p.day < v.next_month
      ) s ON v.daily IS NOT NULL OR v.monthly IS NOT NULL
), kept AS (
    INSERT INTO events (id, zombie_id, workspace_id, tenant_id, actor, event_type, status, request_json,
                        created_at, updated_at, source_event_id, resumes_event_id, traceparent, failure_label,
                        error_code, completed_at, waiting_gate_id)
    SELECT id, zombie_id, workspace_id, tenant_id, actor, event_type, status, request_json, created_at,
           updated_at, source_event_id, resumes_event_id, traceparent, failure_label, error_code,
           completed_at, gate_id
      FROM f WHERE outcome = 'kept' ORDER BY ord
), seen AS (
    INSERT INTO dedup_keys (zombie_id, key, event_id, seen_at)
    SELECT zombie_id, key, id, created_at FROM f WHERE outcome = 'kept' AND key IS NOT NULL
    ON CONFLICT (zombie_id, key) DO UPDATE SET event_id = excluded.event_id, seen_at = excluded.seen_at
), moved AS (
    UPDATE agent_heads h SET last_event_at = greatest(h.last_event_at, m.at)
      FROM (SELECT zombie_id, max(created_at) AS at FROM f WHERE outcome = 'kept' GROUP BY zombie_id) m
     WHERE h.zombie_id = m.zombie_id
)
SELECT ord, outcome, first_id FROM f
"""


async def append_events(
    connection: Connection,
    writes: Sequence[tuple[int, AppendEvent]],
    answers: list[Any],
    frames: NumberedFrames,
) -> None:
    columns = zip(*(_append_values(ord_, w) for ord_, w in writes), strict=True)
    rows = await connection.fetch(_APPEND, *(list(c) for c in columns), DEDUP_WINDOW_MS)
    asked = dict(writes)
    gates: list[Gate] = []
    for ord_, outcome, first_id in rows:
        write = asked[ord_]
        match outcome:
            case "kept":
                answers[ord_] = Appended(write.event.id)
                frames.add(ord_, write.frames)
                gates += () if write.gate is None else (write.gate,)
            case "duplicate":
                answers[ord_] = Duplicate(first_id)
            case "gone":
                answers[ord_] = Lost(GONE)
            case period:
                answers[ord_] = OverBudget(period)
    await insert_gates(connection, gates)


def _append_values(ord_: int, write: AppendEvent) -> tuple[Any, ...]:
    event = write.event
    waits = write.gate is not None and write.gate.status is GateStatus.PENDING
    day = day_of(event.created_at)
    month = month_of(day)
    return (
        ord_,
        event.id,
        event.zombie_id,
        event.workspace_id,
        event.tenant_id,
        event.actor,
        event.event_type,
        EventStatus.WAITING_APPROVAL if waits else event.status,
        storable(event.request_json),
        event.created_at,
        event.updated_at,
        event.source_event_id,
        event.resumes_event_id,
        event.traceparent,
        event.failure_label,
        event.error_code,
        event.completed_at,
        write.gate.id if write.gate is not None and waits else None,
        write.dedup_key,
        write.budget_daily_nanos,
        write.budget_monthly_nanos,
        day,
        month.first_day,
        month.end_day,
    )


# The mark moves the lease's version, so that its actor on any node loses its next race and sees it.
_CANCEL = f"""
WITH v AS (
    SELECT * FROM {unnest("int uuid uuid bigint")} AS v(ord, zombie_id, event_id, now)
), f AS (
    SELECT v.*, h.live_lease_id,
           CASE WHEN e.completed_at IS NOT NULL THEN 'closed'
                WHEN e.status = 'running' THEN 'cancelling'
                ELSE 'ended' END AS outcome
      FROM v JOIN agent_heads h ON h.zombie_id = v.zombie_id
      JOIN events e ON e.id = v.event_id AND e.zombie_id = v.zombie_id
), ended AS (
    UPDATE events e SET status = 'cancelled', failure_label = $5, completed_at = f.now, updated_at = f.now,
                        waiting_gate_id = NULL
      FROM f WHERE e.id = f.event_id AND f.outcome = 'ended'
), marked AS (
    UPDATE leases l SET status = 'cancelling', version = l.version + 1
      FROM f WHERE l.id = f.live_lease_id AND f.outcome = 'cancelling' AND l.status = 'active'
)
SELECT ord, outcome, CASE WHEN outcome = 'cancelling' THEN live_lease_id END FROM f
"""


async def cancel_events(
    connection: Connection,
    writes: Sequence[tuple[int, CancelEvent]],
    answers: list[Any],
    frames: NumberedFrames,
) -> None:
    rows = await connection.fetch(
        _CANCEL,
        [ord_ for ord_, _ in writes],
        [w.zombie_id for _, w in writes],
        [w.event_id for _, w in writes],
        [w.now for _, w in writes],
        CANCELLED_LABEL,
    )
    found = {row[0]: row for row in rows}
    for ord_, write in writes:
        row = found.get(ord_)
        if row is None:
            answers[ord_] = Lost(GONE)
            continue
        outcome = CancelOutcome(row[1])
        answers[ord_] = Cancelled(outcome, row[2])
        if outcome is CancelOutcome.ENDED:
            frames.add(ord_, write.frames)
