"""Appends and cancels the events of a batch."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from sexton_storage.documents import storable
from sexton_storage.postgres.connections.connection import Connection
from sexton_storage.postgres.journal.frames import NumberedFrames
from sexton_storage.postgres.journal.gates import insert_gates
from sexton_storage.postgres.sql.columns import Columns
from sexton_storage.postgres.sql.fragments import insert_from, opaque_to_planner
from sexton_storage.postgres.sql.periods import Period, period_of
from sexton_storage.records.events import EventStatus
from sexton_storage.records.frames import NewFrame
from sexton_storage.records.gates import Gate, GateStatus
from sexton_storage.refusals import GONE, STALE, Lost
from sexton_storage.rules import CANCELLED_BY, CANCELLED_LABEL
from sexton_storage.streams import GateKey, closed_frame
from sexton_storage.terms import DEDUP_WINDOW_MS
from sexton_storage.writes import (
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


def _event_status(write: AppendEvent) -> EventStatus:
    return EventStatus.WAITING_APPROVAL if _waits(write) else write.event.status


def _event_request_json(write: AppendEvent) -> str:
    return storable(write.event.request_json)


def _gate_id(write: AppendEvent) -> UUID | None:
    return write.gate.id if write.gate is not None and _waits(write) else None


def _waits(write: AppendEvent) -> bool:
    return write.gate is not None and write.gate.status is GateStatus.PENDING


def _period(write: AppendEvent) -> Period:
    return period_of(write.event.created_at)


_AS_GIVEN = (
    "id",
    "zombie_id",
    "workspace_id",
    "tenant_id",
    "actor",
    "event_type",
    "source_event_id",
    "resumes_event_id",
    "traceparent",
    "failure_label",
    "error_code",
    "completed_at",
    "asked_version",
    "trial_id",
    "shadow_job",
)
"""Fields of the event that are kept as they come."""
_COLUMNS = Columns(
    AppendEvent,
    *(f"event.{name}" for name in _AS_GIVEN),
    "event.created_at",
    "event.updated_at",
    _event_status,
    _event_request_json,
    _gate_id,
    "dedup_key",
    "body_key",
    "budget_daily_nanos",
    "budget_monthly_nanos",
    _period,
    "firing.schedule",
    "firing.timezone",
    "firing.due_at",
    "firing.next_at",
    "events_limit",
    "follow_up_id",
    first=2,
)
_KEEP = insert_from(
    "events",
    {
        **{name: f"event_{name}" for name in (*_AS_GIVEN, "status", "request_json")},
        "created_at": "max(kept_at) OVER up_to_it",
        "updated_at": "greatest(event_updated_at, max(kept_at) OVER up_to_it)",
        "waiting_gate_id": "gate_id",
    },
    """f WHERE outcome = 'kept'
    WINDOW up_to_it AS (PARTITION BY event_zombie_id ORDER BY ord)
     ORDER BY ord""",
)
# ``checked`` judges each event alone, in the order that the contract gives the verdicts; ``f`` then counts
# those that would be kept against the plan's limit of the day, as events of one batch do not see one
# another. All that follows starts from ``f``. A firing or a follow-up is over even when its event is
# refused because the budget is spent: otherwise it would be due again at once, without end.
_APPEND = f"""
WITH v AS (
    SELECT * FROM {_COLUMNS.numbered_rows}
), checked AS (
    SELECT v.*, d.event_id AS first_id, greatest(v.event_created_at, h.last_event_at) AS kept_at,
           CASE WHEN h.zombie_id IS NULL OR h.status = 'killed' THEN 'gone'
                WHEN d.event_id IS NOT NULL THEN 'duplicate'
                WHEN v.firing_due_at IS NOT NULL AND c.next_at IS DISTINCT FROM v.firing_due_at THEN 'stale'
                WHEN v.follow_up_id IS NOT NULL AND u.status IS DISTINCT FROM 'pending' THEN 'stale'
                WHEN s.in_day >= v.budget_daily_nanos THEN 'day'
                WHEN s.in_month >= v.budget_monthly_nanos THEN 'month'
                ELSE 'kept' END AS verdict, coalesce(n.events, 0) AS counted
      FROM v
      LEFT JOIN agent_heads h ON h.zombie_id = v.event_zombie_id
      LEFT JOIN event_counts n
             ON v.events_limit IS NOT NULL AND n.tenant_id = v.event_tenant_id AND n.day = v.period_day
      LEFT JOIN LATERAL (
          SELECT k.event_id FROM dedup_keys k
           WHERE k.zombie_id = v.event_zombie_id AND k.key IN (v.dedup_key, v.body_key)
             AND k.seen_at > v.event_created_at - $1
             AND (k.key = v.dedup_key OR NOT k.by_body)
           ORDER BY k.key = v.dedup_key DESC LIMIT 1
      ) d ON v.dedup_key IS NOT NULL
      LEFT JOIN cron_triggers c
             ON v.firing_due_at IS NOT NULL
            AND c.zombie_id = v.event_zombie_id AND c.schedule = v.firing_schedule
            AND c.timezone = v.firing_timezone
      LEFT JOIN follow_ups u ON v.follow_up_id IS NOT NULL AND u.id = v.follow_up_id
      LEFT JOIN LATERAL (
          SELECT coalesce(sum(nanos) FILTER (WHERE p.day = v.period_day), 0) AS in_day,
                 coalesce(sum(nanos), 0) AS in_month
            FROM spend p
           WHERE p.zombie_id = v.event_zombie_id AND p.day >= v.period_month AND p.day < v.period_next_month
             AND (v.budget_daily_nanos IS NOT NULL OR v.budget_monthly_nanos IS NOT NULL)
      ) s ON true
), f AS (
    SELECT k.*, CASE WHEN k.verdict = 'kept' AND k.counted + count(*) FILTER (WHERE k.verdict = 'kept')
                              OVER (PARTITION BY k.event_tenant_id, k.period_day ORDER BY k.ord)
                          > k.events_limit
                     THEN 'plan' ELSE k.verdict END AS outcome
      FROM checked k
), counted AS (
    INSERT INTO event_counts (tenant_id, day, events)
    SELECT event_tenant_id, period_day, count(*) FROM f WHERE outcome = 'kept' AND events_limit IS NOT NULL
     GROUP BY event_tenant_id, period_day ORDER BY event_tenant_id, period_day
    ON CONFLICT (tenant_id, day) DO UPDATE SET events = event_counts.events + excluded.events
), kept AS (
    {_KEEP}
), seen AS (
    INSERT INTO dedup_keys (zombie_id, key, event_id, seen_at, by_body)
    SELECT event_zombie_id, dedup_key, event_id, event_created_at, false
      FROM f WHERE outcome = 'kept' AND dedup_key IS NOT NULL
     UNION ALL
    SELECT * FROM (SELECT DISTINCT ON (event_zombie_id, body_key)
                          event_zombie_id, body_key, event_id, event_created_at, true
                     FROM f WHERE outcome = 'kept' AND body_key <> dedup_key
                    ORDER BY event_zombie_id, body_key, ord DESC) newest
    ON CONFLICT (zombie_id, key) DO UPDATE
       SET event_id = excluded.event_id, seen_at = excluded.seen_at, by_body = excluded.by_body
), fired AS (
    UPDATE cron_triggers c SET next_at = f.firing_next_at
      FROM f
     WHERE f.firing_due_at IS NOT NULL AND f.outcome NOT IN ('gone', 'stale') AND c.next_at = f.firing_due_at
       AND c.zombie_id = f.event_zombie_id AND c.schedule = f.firing_schedule
       AND c.timezone = f.firing_timezone
), followed AS (
    UPDATE follow_ups u
       SET status = CASE WHEN f.outcome IN ('kept', 'duplicate') THEN 'fired' ELSE 'dropped' END,
           closed_at = f.event_created_at
      FROM f
     WHERE u.id = f.follow_up_id AND {opaque_to_planner("f.ord", "u.status = 'pending'")}
       AND f.outcome NOT IN ('gone', 'stale')
), moved AS (
    UPDATE agent_heads h SET last_event_at = greatest(h.last_event_at, m.at)
      FROM (SELECT event_zombie_id AS zombie_id, max(kept_at) AS at
              FROM f WHERE outcome = 'kept' GROUP BY event_zombie_id) m
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
    columns = _COLUMNS.arrays([w for _, w in writes])
    rows = await connection.fetch(_APPEND, DEDUP_WINDOW_MS, *columns)
    gates: list[Gate] = []
    for row in rows:
        ord_, write = writes[row["ord"] - 1]
        match row["outcome"]:
            case "kept":
                answers[ord_] = Appended(write.event.id)
                frames.add(ord_, write.frames)
                gates += () if write.gate is None else (write.gate,)
            case "duplicate":
                answers[ord_] = Duplicate(row["first_id"])
            case "gone":
                answers[ord_] = Lost(GONE)
            case "stale":
                answers[ord_] = Lost(STALE)
            case period:
                answers[ord_] = OverBudget(period)
    await insert_gates(connection, gates)


# The mark moves the lease's version, so that its actor on any node loses its next race and sees it. An event
# that ends takes along the gates that waited for an answer about it.
_CANCELS = Columns(CancelEvent, "zombie_id", "event_id", "now", first=3)
_CANCEL = f"""
WITH v AS (
    SELECT * FROM {_CANCELS.numbered_rows}
), f AS (
    SELECT v.*, h.live_lease_id, e.status,
           CASE WHEN e.completed_at IS NOT NULL THEN 'closed'
                WHEN e.status = 'running' THEN 'cancelling'
                ELSE 'ended' END AS outcome
      FROM v JOIN agent_heads h ON h.zombie_id = v.zombie_id
      JOIN events e ON e.id = v.event_id AND e.zombie_id = v.zombie_id
), ended AS (
    UPDATE events e SET status = 'cancelled', failure_label = $1, completed_at = f.now, updated_at = f.now,
                        waiting_gate_id = NULL
      FROM f WHERE e.id = f.event_id AND f.outcome = 'ended'
), marked AS (
    UPDATE leases l SET status = 'cancelling', version = l.version + 1
      FROM f WHERE l.id = f.live_lease_id AND f.outcome = 'cancelling'
       AND {opaque_to_planner("f.ord", "l.status = 'active'")}
), closed AS (
    UPDATE gates g SET status = 'denied', updated_at = f.now, resolved_by = $2
      FROM f
     WHERE g.event_id = f.event_id AND f.outcome = 'ended'
       AND {opaque_to_planner("f.ord", "g.status = 'pending'")}
    RETURNING f.ord, g.id, g.action_id, g.requested_at
), seen AS (
    SELECT ord, array_agg(id ORDER BY requested_at, id) AS ids,
           array_agg(action_id ORDER BY requested_at, id) AS action_ids FROM closed GROUP BY ord
)
SELECT f.ord, f.outcome, CASE WHEN f.outcome = 'cancelling' THEN f.live_lease_id END AS lease_id, f.status,
       s.ids, s.action_ids
  FROM f LEFT JOIN seen s ON s.ord = f.ord
"""


async def cancel_events(
    connection: Connection,
    writes: Sequence[tuple[int, CancelEvent]],
    answers: list[Any],
    frames: NumberedFrames,
) -> None:
    columns = _CANCELS.arrays([w for _, w in writes])
    rows = await connection.fetch(_CANCEL, CANCELLED_LABEL, CANCELLED_BY, *columns)
    found = {row["ord"]: row for row in rows}
    for position, (ord_, write) in enumerate(writes, 1):
        row = found.get(position)
        if row is None:
            answers[ord_] = Lost(GONE)
            continue
        outcome = CancelOutcome(row["outcome"])
        gate_ids = tuple(row["ids"] or ())
        ended = outcome is CancelOutcome.ENDED
        status = EventStatus.CANCELLED if ended else EventStatus(row["status"])
        answers[ord_] = Cancelled(outcome, row["lease_id"], status, gate_ids)
        if ended:
            frames.add(ord_, (*_closed_gates(write, gate_ids, row["action_ids"] or ()), *write.frames))


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
