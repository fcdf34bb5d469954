"""Brings the events of ended leases to their new state, frees their agents and keeps what the runs leave."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import msgspec

from sexton_storage.documents import json_or_none, storable
from sexton_storage.postgres.connections.connection import Connection, Row
from sexton_storage.postgres.journal.improvement import insert_proposals, keep_scores
from sexton_storage.postgres.sql.columns import Columns, Int4
from sexton_storage.postgres.sql.fragments import insert_from, opaque_to_planner
from sexton_storage.postgres.sql.schema import EVENTS
from sexton_storage.records.charges import STAGE_CHARGE
from sexton_storage.records.events import EventStatus
from sexton_storage.records.improvement import Score
from sexton_storage.rules import FINISHED_EVENT
from sexton_storage.scoring import score_of
from sexton_storage.writes import Ended, EndLease


class _Ending(msgspec.Struct, frozen=True, gc=False):
    write: EndLease
    event_id: UUID


def _given_back(ending: _Ending) -> Int4:
    return int(ending.write.event.give_attempt_back)


def _response_text(ending: _Ending) -> str | None:
    return storable(ending.write.event.response_text)


def _evidence(ending: _Ending) -> str | None:
    return json_or_none(ending.write.event.evidence)


def _checkpoint(ending: _Ending) -> str | None:
    return json_or_none(ending.write.event.checkpoint)


def _gate_id(ending: _Ending) -> UUID | None:
    write = ending.write
    return write.parked_gate_id if write.event.status is EventStatus.WAITING_APPROVAL else None


def _finished(ending: _Ending) -> bool:
    return ending.write.event.status in FINISHED_EVENT


_METERED = {
    "charged_nanos": "charged_nanos",
    "input_tokens": "d_input_tokens",
    "cached_input_tokens": "d_cached_tokens",
    "cache_write_tokens": "d_cache_write_tokens",
    "output_tokens": "d_output_tokens",
}
"""Columns of an event, each with the column of its metering rows of which it is the sum."""
_ENDS = Columns(
    _Ending,
    "write.lease_id",
    "event_id",
    "write.event.status",
    "write.now",
    _given_back,
    "write.event.failure_label",
    "write.event.error_code",
    _response_text,
    _evidence,
    _checkpoint,
    "write.event.wall_ms",
    "write.event.retry_at",
    _gate_id,
    _finished,
)
# An event parks only while its gate is pending. The gate cannot be resolved meanwhile: that takes the lock of
# the agent's head too.
_CHARGE = insert_from(
    "charges",
    {
        **{
            name: f"l.{name}"
            for name in ("id", "event_id", "zombie_id", "workspace_id", "tenant_id", "model")
        },
        "charge_type": f"'{STAGE_CHARGE}'",
        "posture": "CASE WHEN l.own_key THEN 'self_managed' ELSE 'platform' END",
        "credit_deducted_nanos": "m.charged",
        "token_count_input": "m.tokens_in",
        "token_count_output": "m.tokens_out",
        "wall_ms": "m.ms",
        "recorded_at": "f.write_now",
        "models": "l.shares",
    },
    """f JOIN leases l ON l.id = f.write_lease_id
     CROSS JOIN LATERAL (
        SELECT count(*) AS slices, sum(charged_nanos)::bigint AS charged,
               sum(d_input_tokens + d_cached_tokens + d_cache_write_tokens)::bigint AS tokens_in,
               sum(d_output_tokens)::bigint AS tokens_out, sum(run_ms)::bigint AS ms
          FROM metering p WHERE p.event_id = l.event_id AND p.attempt = l.attempt) m
     WHERE m.slices > 0""",
)
_END_EVENTS = f"""
WITH v AS (
    SELECT * FROM {_ENDS.numbered_rows}
), f AS (
    SELECT v.*, g.id AS waits_at,
           CASE WHEN v.write_event_status = 'waiting_approval' AND g.id IS NULL THEN 'received'
                ELSE v.write_event_status END AS status
      FROM v LEFT JOIN gates g
             ON g.id = v.gate_id AND g.event_id = v.event_id AND v.write_event_status = 'waiting_approval'
            AND {opaque_to_planner("v.ord", "g.status = 'pending'")}
), freed AS (
    UPDATE agent_heads h
       SET live_lease_id = NULL,
           streak = CASE WHEN l.shadow THEN h.streak
                         WHEN f.status = 'processed' THEN h.streak + 1
                         WHEN f.status IN ('agent_error', 'dead_lettered') THEN 0
                         ELSE h.streak END
      FROM leases l JOIN f ON l.id = f.write_lease_id
     WHERE h.zombie_id = l.zombie_id AND h.live_lease_id = l.id
), charged AS (
    {_CHARGE}
)
UPDATE events e
   SET status = f.status,
       waiting_gate_id = f.waits_at,
       attempts = greatest(0, e.attempts - f.given_back),
       parked_at = CASE WHEN f.write_event_status = 'waiting_approval' THEN f.write_now ELSE e.parked_at END,
       failure_label = coalesce(f.write_event_failure_label, e.failure_label),
       error_code = coalesce(f.write_event_error_code, e.error_code),
       response_text = coalesce(f.response_text, e.response_text),
       evidence = coalesce(f.evidence::json, e.evidence),
       checkpoint = coalesce(f.checkpoint::json, e.checkpoint),
       wall_ms = e.wall_ms + f.write_event_wall_ms,
       retry_at = f.write_event_retry_at,
       ({", ".join(_METERED)}) =
           (SELECT {", ".join(f"coalesce(sum(m.{name}), 0)::bigint" for name in _METERED.values())}
              FROM metering m WHERE m.event_id = e.id),
       updated_at = f.write_now,
       completed_at = CASE WHEN f.finished THEN f.write_now END
  FROM f
 WHERE e.id = f.event_id
RETURNING {EVENTS.columns("e")}, f.ord,
          CASE WHEN f.write_event_retry_at IS NULL THEN
               least(CASE WHEN f.status = 'received' THEN e.created_at END,
                     (SELECT r.created_at FROM waiting_events r
                       WHERE r.zombie_id = e.zombie_id AND r.event_id <> e.id
                       ORDER BY r.zombie_id, r.arrival LIMIT 1)) END AS next_event_at,
          CASE WHEN f.finished THEN
               (SELECT count(*)::int FROM gates g
                 WHERE g.event_id = e.id AND g.status IN ('denied', 'timed_out', 'auto_killed')) END
            AS denied_gates,
          CASE WHEN f.finished
               THEN (SELECT l.budget_daily_nanos FROM leases l WHERE l.id = f.write_lease_id) END
            AS budget_daily,
          (SELECT z.version FROM zombies z WHERE z.id = e.zombie_id) AS agent_version
"""
_CONTINUE = EVENTS.insert("events")


async def end_events(
    connection: Connection, ends: Sequence[tuple[int, EndLease, Row]], answers: list[Any]
) -> str:
    """Bring the events of ended leases to their new state and free their agents; answers the ends.

    What ends with its event is scored, and what it proposes is kept. A continuation is there before its
    agent is free, so that the answer names it as the next to be leased. Gives the statement, if any, that
    is still to be executed before the commit, and that nobody waits for.
    """
    if continuations := [write.continuation for _, write, _ in ends if write.continuation is not None]:
        await connection.executemany(_CONTINUE, [EVENTS.values(event) for event in continuations])
    columns = _ENDS.arrays([_Ending(write, settled["event_id"]) for _, write, settled in ends])
    rows = await connection.fetch(_END_EVENTS, *columns)
    scores: list[tuple[Score, UUID]] = []
    for row in rows:
        ord_, write, settled = ends[row["ord"] - 1]
        event = EVENTS.record(row)
        answers[ord_] = Ended(
            charged_nanos=settled["charged_nanos"],
            balance_nanos=settled["balance_nanos"],
            event=event,
            next_event_at=row["next_event_at"],
            agent_version=row["agent_version"],
        )
        if event.completed_at is not None and event.shadow_job is None:
            score = score_of(event, row["denied_gates"], write.event.failed_checks, row["budget_daily"])
            scores.append((score, write.lease_id))
    rest = keep_scores(scores) if scores else ""
    if proposals := [proposal for _, write, _ in ends for proposal in write.proposals]:
        # Those that find no room were not heard by the runs that end here, so what was heard is kept first.
        if rest:
            await connection.execute(rest)
        await insert_proposals(connection, proposals)
        return ""
    return rest
