"""Appends the events of a batch."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from sexton_storage.documents import storable, to_json
from sexton_storage.postgres.connections.connection import Connection, Row
from sexton_storage.postgres.journal.frames import News, NumberedFrames
from sexton_storage.postgres.journal.gates import insert_gates
from sexton_storage.postgres.journal.sources import which_stand
from sexton_storage.postgres.sql.columns import Columns, array_literal
from sexton_storage.postgres.sql.fragments import insert_from, opaque_to_planner
from sexton_storage.postgres.sql.periods import Period, period_of
from sexton_storage.records.events import EventStatus
from sexton_storage.records.gates import Gate, GateStatus
from sexton_storage.refusals import GONE, SOURCE_CHANGED, STALE, Lost
from sexton_storage.terms import DEDUP_WINDOW_MS
from sexton_storage.writes import Appended, AppendEvent, Duplicate, OverBudget

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


def _frame_event_id(write: AppendEvent) -> UUID | None:
    return write.frames[0].event_id


def _frame_kind(write: AppendEvent) -> str:
    return write.frames[0].kind


def _frame_at_ms(write: AppendEvent) -> int:
    return write.frames[0].at_ms


def _frame_data(write: AppendEvent) -> str:
    return to_json(write.frames[0].data)


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
_OF_ALL: tuple[Any, ...] = (
    *(f"event.{name}" for name in _AS_GIVEN),
    "event.created_at",
    "event.updated_at",
    _event_request_json,
    "dedup_key",
    "body_key",
    "budget_daily_nanos",
    "budget_monthly_nanos",
    _period,
    "events_limit",
)
_COLUMNS = Columns(
    AppendEvent,
    *_OF_ALL,
    _event_status,
    _gate_id,
    "firing.schedule",
    "firing.timezone",
    "firing.due_at",
    "firing.next_at",
    "follow_up_id",
    first=2,
)
_STANDS = f"(${2 + len(_COLUMNS.names)}::boolean[])[v.ord::integer]"
"""Whether what the event was made from is still so: see ``which_stand``."""
_IN_FUNCTION = Columns(
    AppendEvent,
    *_OF_ALL,
    "event.status",
    _frame_event_id,
    _frame_kind,
    _frame_at_ms,
    _frame_data,
    first=5,
)
"""What the function is given of an event that ``goes_alone``, behind its other arguments."""


def goes_alone(write: AppendEvent) -> bool:
    """Whether just the event and its one frame are written: of webhooks and messages, nearly always."""
    return (
        len(write.frames) == 1
        and write.gate is None
        and write.firing is None
        and write.follow_up_id is None
        and write.audit is None
        and write.source is None
        and write.frames[0].zombie_id == write.event.zombie_id
    )


def _keep(*, alone: bool) -> str:
    return insert_from(
        "events",
        {
            **{name: f"event_{name}" for name in (*_AS_GIVEN, "status", "request_json")},
            "created_at": "max(kept_at) OVER up_to_it",
            "updated_at": "greatest(event_updated_at, max(kept_at) OVER up_to_it)",
            **({} if alone else {"waiting_gate_id": "gate_id"}),
        },
        """f WHERE outcome = 'kept'
    WINDOW up_to_it AS (PARTITION BY event_zombie_id ORDER BY ord)
     ORDER BY ord""",
    )


_DUE = f"""
                WHEN v.firing_due_at IS NOT NULL AND c.next_at IS DISTINCT FROM v.firing_due_at THEN 'stale'
                WHEN v.follow_up_id IS NOT NULL AND u.status IS DISTINCT FROM 'pending' THEN 'stale'
                WHEN NOT {_STANDS} THEN '{SOURCE_CHANGED}'"""
_WHAT_IS_DUE = """
      LEFT JOIN cron_triggers c
             ON v.firing_due_at IS NOT NULL
            AND c.zombie_id = v.event_zombie_id AND c.schedule = v.firing_schedule
            AND c.timezone = v.firing_timezone
      LEFT JOIN follow_ups u ON v.follow_up_id IS NOT NULL AND u.id = v.follow_up_id"""
_UNTRIED = f"('gone', 'stale', '{SOURCE_CHANGED}')"
"""After these, what the event was asked for as is as it was."""
_IS_OVER = f""", fired AS (
    UPDATE cron_triggers c SET next_at = f.firing_next_at
      FROM f
     WHERE f.firing_due_at IS NOT NULL AND f.outcome NOT IN {_UNTRIED}
       AND c.next_at = f.firing_due_at
       AND c.zombie_id = f.event_zombie_id AND c.schedule = f.firing_schedule
       AND c.timezone = f.firing_timezone
), followed AS (
    UPDATE follow_ups u
       SET status = CASE WHEN f.outcome IN ('kept', 'duplicate') THEN 'fired' ELSE 'dropped' END,
           closed_at = f.event_created_at
      FROM f
     WHERE u.id = f.follow_up_id AND {opaque_to_planner("f.ord", "u.status = 'pending'")}
       AND f.outcome NOT IN {_UNTRIED}
)"""
_SEQ = """frame_seq + count(*) FILTER (WHERE outcome = 'kept')
                       OVER (PARTITION BY event_zombie_id ORDER BY ord)"""
"""The number of the frame of an event that is kept."""
_FRAME = insert_from(
    "frames",
    {
        "zombie_id": "event_zombie_id",
        "seq": _SEQ,
        "event_id": "frame_event_id",
        "kind": "frame_kind",
        "at_ms": "frame_at_ms",
        "data": "frame_data::json",
        "size": "octet_length(frame_data)",
    },
    "f WHERE outcome = 'kept'",
)


def _judged(source: str, window: str, *, alone: bool) -> str:
    """Write what finds the verdict of each event, as ``f``; see ``_statement_for``."""
    return f"""
WITH v AS (
    SELECT * FROM {source}
), checked AS (
    SELECT v.*, d.event_id AS first_id, greatest(v.event_created_at, h.last_event_at) AS kept_at,
           h.frame_seq,
           CASE WHEN h.zombie_id IS NULL OR h.status = 'killed' THEN 'gone'
                WHEN d.event_id IS NOT NULL THEN 'duplicate'{"" if alone else _DUE}
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
             AND k.seen_at > v.event_created_at - {window}
             AND (k.key = v.dedup_key OR NOT k.by_body)
           ORDER BY k.key = v.dedup_key DESC LIMIT 1
      ) d ON v.dedup_key IS NOT NULL{"" if alone else _WHAT_IS_DUE}
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
)"""


def _statement_for(source: str, window: str, *, alone: bool) -> str:
    """Write the statement for a batch; where all of it ``goes_alone``, the events' frames are kept as well.

    ``checked`` judges each event alone, in the order that the contract gives the verdicts; ``f`` then counts
    those that would be kept against the plan's limit of the day, as events of one batch do not see one
    another. All that follows starts from ``f``. A firing or a follow-up is over even when its event is
    refused because the budget is spent: otherwise it would be due again at once, without end.
    """
    return f"""{_judged(source, window, alone=alone)}, counted AS (
    INSERT INTO event_counts (tenant_id, day, events)
    SELECT event_tenant_id, period_day, count(*) FROM f WHERE outcome = 'kept' AND events_limit IS NOT NULL
     GROUP BY event_tenant_id, period_day ORDER BY event_tenant_id, period_day
    ON CONFLICT (tenant_id, day) DO UPDATE SET events = event_counts.events + excluded.events
), kept AS (
    {_keep(alone=alone)}
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
){f", framed AS ({_FRAME})" if alone else _IS_OVER}, moved AS (
    UPDATE agent_heads h
       SET last_event_at = greatest(h.last_event_at, m.at)
           {", frame_seq = h.frame_seq + m.frames" if alone else ""}
      FROM (SELECT event_zombie_id AS zombie_id, max(kept_at) AS at, count(*) AS frames
              FROM f WHERE outcome = 'kept' GROUP BY event_zombie_id) m
     WHERE h.zombie_id = m.zombie_id
)
SELECT ord, outcome, first_id{f", {_SEQ} AS seq" if alone else ""} FROM f
"""


_APPEND = _statement_for(_COLUMNS.numbered_rows, "$1", alone=False)
# A batch of events that all go alone is one message, as one of renewals is: it leaves the mark, locks the
# agents, appends, and commits.
APPEND_FUNCTION = f"""
CREATE FUNCTION pg_temp.sexton_append(
    uuid, bigint, text, bigint, {", ".join(_IN_FUNCTION.argument_types)})
RETURNS TABLE (ord bigint, outcome text, first_id uuid, seq bigint)
LANGUAGE plpgsql AS $function$
#variable_conflict use_column
BEGIN
    INSERT INTO journal_lanes (id, batch, at) VALUES ($1, $2, sexton_now_ms())
    ON CONFLICT (id) DO UPDATE SET batch = excluded.batch, at = excluded.at WHERE journal_lanes.batch < $2;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'this lane has begun a later batch';
    END IF;
    PERFORM FROM agent_heads WHERE zombie_id = ANY($3::uuid[]) ORDER BY zombie_id FOR NO KEY UPDATE;
    RETURN QUERY {_statement_for(_IN_FUNCTION.numbered_rows, "$4", alone=True)};
END
$function$
"""
_ARGUMENTS = ", ".join(f"${number}" for number in range(1, 5 + len(_IN_FUNCTION.argument_types)))
_APPEND_AT_ONCE = f"SELECT * FROM pg_temp.sexton_append({_ARGUMENTS})"
# What was kept is there. All else has changed nothing, and is judged as it would be now: no verdict turns
# into 'kept' later, and if one did, whoever sent the event must not be told that it is there.
_RECALL = f"""{_judged(_COLUMNS.numbered_rows, "$1", alone=False)}
SELECT f.ord, f.first_id, f.frame_seq AS seq,
       CASE WHEN e.id IS NOT NULL THEN 'kept' WHEN f.outcome = 'kept' THEN 'plan'
            ELSE f.outcome END AS outcome
  FROM f LEFT JOIN events e ON e.id = f.event_id
"""


async def append_at_once(
    connection: Connection, mark: tuple[UUID, int], writes: Sequence[AppendEvent], answers: list[Any]
) -> News:
    """Append events that go alone in a transaction of this one message; it has committed at the end."""
    zombies = array_literal(tuple({write.event.zombie_id for write in writes}))
    columns = _IN_FUNCTION.arrays(writes)
    rows = await connection.fetch(_APPEND_AT_ONCE, *mark, zombies, DEDUP_WINDOW_MS, *columns)
    return _answered(rows, writes, answers)


async def recall_appends(connection: Connection, writes: Sequence[AppendEvent], answers: list[Any]) -> News:
    """Answer events that went alone and are known to have committed, when the answer itself was lost."""
    rows = await connection.fetch(_RECALL, DEDUP_WINDOW_MS, *_COLUMNS.arrays(writes), [True] * len(writes))
    return _answered(rows, writes, answers)


def _answered(rows: Sequence[Row], writes: Sequence[AppendEvent], answers: list[Any]) -> News:
    heads: dict[UUID, int] = {}
    for row in rows:
        ord_ = row["ord"] - 1
        write = writes[ord_]
        answer = answers[ord_] = _answer(write, row)
        if isinstance(answer, Appended):
            zombie_id = write.event.zombie_id
            heads[zombie_id] = max(row["seq"], heads.get(zombie_id, 0))
    return list(heads.items())


async def append_events(
    connection: Connection,
    writes: Sequence[tuple[int, AppendEvent]],
    answers: list[Any],
    frames: NumberedFrames,
) -> None:
    mine = [w for _, w in writes]
    standing = await which_stand(connection, mine)
    rows = await connection.fetch(_APPEND, DEDUP_WINDOW_MS, *_COLUMNS.arrays(mine), standing)
    gates: list[Gate] = []
    for row in rows:
        ord_, write = writes[row["ord"] - 1]
        answer = answers[ord_] = _answer(write, row)
        if isinstance(answer, Appended):
            frames.add(ord_, write.frames)
            gates += () if write.gate is None else (write.gate,)
    await insert_gates(connection, gates)


def _answer(write: AppendEvent, row: Row) -> Appended | Duplicate | Lost | OverBudget:
    match row["outcome"]:
        case "kept":
            return Appended(write.event.id)
        case "duplicate":
            return Duplicate(row["first_id"])
        case "gone":
            return Lost(GONE)
        case "stale":
            return Lost(STALE)
        case "source_changed":
            return Lost(SOURCE_CHANGED)
        case period:
            return OverBudget(period)
