"""Appends and cancels the events of a batch."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from sexton_storage.documents import storable
from sexton_storage.periods import day_of, month_of
from sexton_storage.postgres.connections.connection import Connection
from sexton_storage.postgres.journal.frames import NumberedFrames
from sexton_storage.postgres.journal.gates import insert_gates
from sexton_storage.postgres.sql.columns import Columns
from sexton_storage.postgres.sql.fragments import beside, unnest
from sexton_storage.records.events import EventStatus
from sexton_storage.records.frames import NewFrame
from sexton_storage.records.gates import Gate, GateStatus
from sexton_storage.refusals import GONE, STALE, Lost
from sexton_storage.rules import CANCELLED_BY, CANCELLED_LABEL
from sexton_storage.streams import GateKey, closed_frame
from sexton_storage.writes import (
    DEDUP_WINDOW_MS,
    Appended,
    AppendEvent,
    CancelEvent,
    Cancelled,
    CancelOutcome,
    Duplicate,
    OverBudget,
)

# The agents' heads are locked by the batch already: what is read of an agent here stays so until the commit.
# So an event's number of arrival (the column's default, taken in the order of the rows) is higher than that
# of every event of the agent that was acknowledged before this one was sent, whichever node took it and
# whatever that node's clock says. ``kept_at`` follows this order: a node knows the database's time to some
# milliseconds only, and a history must not show a later event as the earlier one.
_COLUMNS = Columns(
    "int uuid uuid uuid uuid text text text text bigint bigint text uuid text text text bigint uuid bytea"
    " bigint bigint int int int bytea text text bigint bigint bigint uuid"
)
_APPEND = f"""
WITH v AS (
    SELECT * FROM {_COLUMNS.unnest}
        AS v(ord, id, zombie_id, workspace_id, tenant_id, actor, event_type, status, request_json, created_at,
             updated_at, source_event_id, resumes_event_id, traceparent, failure_label, error_code,
             completed_at, gate_id, key, daily, monthly, day, month, next_month, body_key, schedule, timezone,
             due_at, next_at, events_limit, follow_up_id)
), checked AS (
    SELECT v.*, d.event_id AS first_id, greatest(v.created_at, h.last_event_at) AS kept_at,
           CASE WHEN h.zombie_id IS NULL OR h.status = 'killed' THEN 'gone'
                WHEN d.event_id IS NOT NULL THEN 'duplicate'
                WHEN v.due_at IS NOT NULL AND c.next_at IS DISTINCT FROM v.due_at THEN 'stale'
                WHEN v.follow_up_id IS NOT NULL AND u.status IS DISTINCT FROM 'pending' THEN 'stale'
                WHEN s.in_day >= v.daily THEN 'day'
                WHEN s.in_month >= v.monthly THEN 'month'
                ELSE 'kept' END AS verdict, coalesce(n.events, 0) AS counted
      FROM v
      LEFT JOIN agent_heads h ON h.zombie_id = v.zombie_id
      LEFT JOIN event_counts n
             ON v.events_limit IS NOT NULL AND n.tenant_id = v.tenant_id AND n.day = v.day
      LEFT JOIN LATERAL (
          SELECT k.event_id FROM dedup_keys k
           WHERE k.zombie_id = v.zombie_id AND k.key IN (v.key, v.body_key) AND k.seen_at > v.created_at - $32
             AND (k.key = v.key OR NOT k.by_body)
           ORDER BY k.key = v.key DESC LIMIT 1
      ) d ON v.key IS NOT NULL
      LEFT JOIN cron_triggers c
             ON v.due_at IS NOT NULL
            AND c.zombie_id = v.zombie_id AND c.schedule = v.schedule AND c.timezone = v.timezone
      LEFT JOIN follow_ups u ON v.follow_up_id IS NOT NULL AND u.id = v.follow_up_id
      LEFT JOIN LATERAL (
          SELECT coalesce(sum(nanos) FILTER (WHERE p.day = v.day), 0) AS in_day,
                 coalesce(sum(nanos), 0) AS in_month
            FROM spend p WHERE p.zombie_id = v.zombie_id AND p.day >= v.month AND p.day < v.next_month
      ) s ON v.daily IS NOT NULL OR v.monthly IS NOT NULL
), f AS (
    SELECT k.*, CASE WHEN k.verdict = 'kept' AND k.counted + count(*) FILTER (WHERE k.verdict = 'kept')
                              OVER (PARTITION BY k.tenant_id, k.day ORDER BY k.ord) > k.events_limit
                     THEN 'plan' ELSE k.verdict END AS outcome
      FROM checked k
), counted AS (
    INSERT INTO event_counts (tenant_id, day, events)
    SELECT tenant_id, day, count(*) FROM f WHERE outcome = 'kept' AND events_limit IS NOT NULL
     GROUP BY tenant_id, day ORDER BY tenant_id, day
    ON CONFLICT (tenant_id, day) DO UPDATE SET events = event_counts.events + excluded.events
), kept AS (
    INSERT INTO events (id, zombie_id, workspace_id, tenant_id, actor, event_type, status, request_json,
                        created_at, updated_at, source_event_id, resumes_event_id, traceparent, failure_label,
                        error_code, completed_at, waiting_gate_id)
    SELECT id, zombie_id, workspace_id, tenant_id, actor, event_type, status, request_json,
           max(kept_at) OVER up_to_it, greatest(updated_at, max(kept_at) OVER up_to_it), source_event_id,
           resumes_event_id, traceparent, failure_label, error_code, completed_at, gate_id
      FROM f WHERE outcome = 'kept'
    WINDOW up_to_it AS (PARTITION BY zombie_id ORDER BY ord)
     ORDER BY ord
), seen AS (
    INSERT INTO dedup_keys (zombie_id, key, event_id, seen_at, by_body)
    SELECT zombie_id, key, id, created_at, false FROM f WHERE outcome = 'kept' AND key IS NOT NULL
     UNION ALL
    SELECT * FROM (SELECT DISTINCT ON (zombie_id, body_key) zombie_id, body_key, id, created_at, true
                     FROM f WHERE outcome = 'kept' AND body_key <> key
                    ORDER BY zombie_id, body_key, ord DESC) newest
    ON CONFLICT (zombie_id, key) DO UPDATE
       SET event_id = excluded.event_id, seen_at = excluded.seen_at, by_body = excluded.by_body
), fired AS (
    UPDATE cron_triggers c SET next_at = f.next_at
      FROM f
     WHERE f.due_at IS NOT NULL AND f.outcome NOT IN ('gone', 'stale') AND c.next_at = f.due_at
       AND c.zombie_id = f.zombie_id AND c.schedule = f.schedule AND c.timezone = f.timezone
), followed AS (
    UPDATE follow_ups u
       SET status = CASE WHEN f.outcome IN ('kept', 'duplicate') THEN 'fired' ELSE 'dropped' END,
           closed_at = f.created_at
      FROM f
     WHERE u.id = f.follow_up_id AND {beside("f.ord", "u.status = 'pending'")}
       AND f.outcome NOT IN ('gone', 'stale')
), moved AS (
    UPDATE agent_heads h SET last_event_at = greatest(h.last_event_at, m.at)
      FROM (SELECT zombie_id, max(kept_at) AS at FROM f WHERE outcome = 'kept' GROUP BY zombie_id) m
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
    columns = _COLUMNS.arrays([_append_values(ord_, w) for ord_, w in writes])
    rows = await connection.fetch(_APPEND, *columns, DEDUP_WINDOW_MS)
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
            case "stale":
                answers[ord_] = Lost(STALE)
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
        write.body_key,
        *(
            (None, None, None, None)
            if write.firing is None
            else (write.firing.schedule, write.firing.timezone, write.firing.due_at, write.firing.next_at)
        ),
        write.events_limit,
        write.follow_up_id,
    )


# The mark moves the lease's version, so that its actor on any node loses its next race and sees it. An event
# that ends takes along the gates that waited for an answer about it.
_CANCEL = f"""
WITH v AS (
    SELECT * FROM {unnest("int uuid uuid bigint")} AS v(ord, zombie_id, event_id, now)
), f AS (
    SELECT v.*, h.live_lease_id, e.status,
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
      FROM f WHERE l.id = f.live_lease_id AND f.outcome = 'cancelling'
       AND {beside("f.ord", "l.status = 'active'")}
), closed AS (
    UPDATE gates g SET status = 'denied', updated_at = f.now, resolved_by = $6
      FROM f
     WHERE g.event_id = f.event_id AND {beside("f.ord", "g.status = 'pending'")} AND f.outcome = 'ended'
    RETURNING f.ord, g.id, g.action_id, g.requested_at
), seen AS (
    SELECT ord, array_agg(id ORDER BY requested_at, id) AS ids,
           array_agg(action_id ORDER BY requested_at, id) AS action_ids FROM closed GROUP BY ord
)
SELECT f.ord, f.outcome, CASE WHEN f.outcome = 'cancelling' THEN f.live_lease_id END, f.status, s.ids,
       s.action_ids
  FROM f LEFT JOIN seen s ON s.ord = f.ord
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
        CANCELLED_BY,
    )
    found = {row[0]: row for row in rows}
    for ord_, write in writes:
        row = found.get(ord_)
        if row is None:
            answers[ord_] = Lost(GONE)
            continue
        outcome = CancelOutcome(row[1])
        gate_ids = tuple(row[4] or ())
        ended = outcome is CancelOutcome.ENDED
        status = EventStatus.CANCELLED if ended else EventStatus(row[3])
        answers[ord_] = Cancelled(outcome, row[2], status, gate_ids)
        if ended:
            frames.add(ord_, (*_closed_gates(write, gate_ids, row[5] or ()), *write.frames))


def _closed_gates(
    write: CancelEvent, gate_ids: Sequence[UUID], action_ids: Sequence[str]
) -> Sequence[NewFrame]:
    return [
        closed_frame(
            GateKey(gate_id, write.zombie_id, write.event_id, action_id),
            GateStatus.DENIED,
            CANCELLED_BY,
            write.now,
        )
        for gate_id, action_id in zip(gate_ids, action_ids, strict=True)
    ]
