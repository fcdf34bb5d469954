"""Renews and ends the leases of a batch: lease rows, metering, debits and spend in one statement."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import msgspec

from sexton_storage.documents import json_or_none, storable
from sexton_storage.periods import day_of, month_of
from sexton_storage.postgres.connections.connection import Connection, Row
from sexton_storage.postgres.journal.improvement import insert_proposals, keep_scores
from sexton_storage.postgres.sql.columns import Columns, array_literal
from sexton_storage.postgres.sql.fragments import beside
from sexton_storage.postgres.sql.schema import EVENTS
from sexton_storage.records.events import EventStatus
from sexton_storage.records.improvement import Score
from sexton_storage.records.metering import Slice
from sexton_storage.refusals import STALE, Lost
from sexton_storage.rules import FINISHED_EVENT
from sexton_storage.scoring import score_of
from sexton_storage.writes import Ended, EndLease, Renewed, RenewLease

LeaseWrite = RenewLease | EndLease

# ``ord`` is the order of arrival in the batch; the window sums debit in that order. What is charged is
# computed from the rows that the update gave back, so a write that lost its race in the last moment has not
# counted. The slice travels along with its lease, for a join of two batches' worth of rows without an index
# would be a loop in a loop.
_SLICE = "seq, d_input, d_cached, d_output, slice_ms, run_fee, token_cost, now"
_SLICE_TYPES = "int bigint bigint bigint bigint bigint bigint bigint"
_BACK = (
    "RETURNING v.ord, l.event_id, l.attempt, l.zombie_id, l.workspace_id, l.tenant_id,"
    f" {', '.join('v.' + name for name in _SLICE.split(', '))},"
    " coalesce(v.run_fee + v.token_cost, 0) AS cost,"
)

_LIVE = "l.status IN ('active', 'cancelling')"

# Nearly every batch is of renewals within one UTC day: it sends what is the same for all just once.
_RENEWALS = Columns(f"uuid bigint {_SLICE_TYPES}" + " bigint" * 6, first=4)
_RENEWED = f"""
WITH v AS (
    SELECT * FROM {_RENEWALS.unnest} WITH ORDINALITY
        AS v(id, version, {_SLICE}, expires_at, metered_at, input_tokens, cached_input_tokens, output_tokens,
             run_ms, ord)
), changed AS (
    UPDATE leases l
       SET version = v.version, expires_at = v.expires_at, metered_at = v.metered_at, slice_seq = v.seq,
           input_tokens = v.input_tokens, cached_input_tokens = v.cached_input_tokens,
           output_tokens = v.output_tokens, run_ms = v.run_ms
      FROM v
     WHERE l.id = v.id AND l.version = v.version - 1
       AND {beside("v.ord", _LIVE + " AND l.expires_at > (SELECT sexton_now_ms())")}
    {_BACK} $1::int AS day, $2::int AS month, $3::int AS next_month
)"""
# Renewals and ends of one tenant are paid in the order they came, so both are this statement's when a batch
# has both.
_CHANGES = Columns(f"uuid bigint {_SLICE_TYPES} int int int{' bigint' * 6} text bigint bytea bool bool")
_CHANGED = f"""
WITH v AS (
    SELECT * FROM {_CHANGES.unnest} WITH ORDINALITY
        AS v(id, version, {_SLICE}, day, month, next_month, expires_at, metered_at, input_tokens,
             cached_input_tokens, output_tokens, run_ms, ends_as, ended_at, digest, unexpired, expired, ord)
), changed AS (
    UPDATE leases l
       SET version = l.version + 1,
           status = coalesce(v.ends_as, l.status), ended_at = v.ended_at, report_digest = v.digest,
           expires_at = coalesce(v.expires_at, l.expires_at),
           metered_at = coalesce(v.metered_at, v.now, l.metered_at),
           slice_seq = coalesce(v.seq, l.slice_seq),
           input_tokens = coalesce(v.input_tokens, l.input_tokens + coalesce(v.d_input, 0)),
           cached_input_tokens =
               coalesce(v.cached_input_tokens, l.cached_input_tokens + coalesce(v.d_cached, 0)),
           output_tokens = coalesce(v.output_tokens, l.output_tokens + coalesce(v.d_output, 0)),
           run_ms = coalesce(v.run_ms, l.run_ms)
      FROM v
     WHERE l.id = v.id AND l.version = v.version - 1 AND {beside("v.ord", _LIVE)}
       AND (NOT v.unexpired OR l.expires_at > (SELECT sexton_now_ms()))
       AND (NOT v.expired OR l.expires_at <= (SELECT sexton_now_ms()))
    {_BACK} v.day, v.month, v.next_month
)"""
# What the agent had spent is read as it was before this batch: it has one live lease, and a batch one write
# of that, so nobody else is counting. That also tells whether the day has a row yet, which is cheaper than a
# conflict a row.
_MONEY = """
, charged AS (
    SELECT p.*, CASE WHEN p.unlimited THEN p.cost
                     ELSE least(p.cost, greatest(0, p.balance_nanos - (p.upto - p.cost))) END AS charged,
           CASE WHEN p.unlimited THEN p.balance_nanos - p.upto
                ELSE greatest(least(0, p.balance_nanos), p.balance_nanos - p.upto) END AS balance,
           s.in_day, s.in_month
      FROM (SELECT c.*, a.balance_nanos, a.unlimited,
                   (sum(c.cost) OVER (PARTITION BY c.tenant_id ORDER BY c.ord))::bigint AS upto
              FROM changed c JOIN tenants a ON a.id = c.tenant_id) p
     CROSS JOIN LATERAL (
        SELECT (sum(nanos) FILTER (WHERE d.day = p.day))::bigint AS in_day,
               coalesce(sum(nanos), 0)::bigint AS in_month
          FROM spend d WHERE d.zombie_id = p.zombie_id AND d.day >= p.month AND d.day < p.next_month) s
), metered AS (
    INSERT INTO metering (event_id, attempt, slice_seq, zombie_id, workspace_id, tenant_id, d_input_tokens,
                          d_cached_tokens, d_output_tokens, run_ms, run_fee_nanos, token_cost_nanos,
                          charged_nanos, created_at)
    SELECT event_id, attempt, seq, zombie_id, workspace_id, tenant_id, d_input, d_cached, d_output, slice_ms,
           run_fee, token_cost, charged, now
      FROM charged WHERE seq IS NOT NULL
), debited AS (
    UPDATE tenants a
       SET balance_nanos = a.balance_nanos - d.nanos, updated_at = d.now,
           exhausted_at = CASE WHEN a.unlimited OR a.balance_nanos > d.nanos THEN a.exhausted_at
                               ELSE coalesce(a.exhausted_at, d.now) END
      FROM (SELECT tenant_id, sum(charged)::bigint AS nanos, max(now) AS now
              FROM charged WHERE seq IS NOT NULL GROUP BY tenant_id) d
     WHERE a.id = d.tenant_id
), spent AS (
    UPDATE spend p SET nanos = p.nanos + c.charged
      FROM charged c WHERE p.zombie_id = c.zombie_id AND p.day = c.day AND c.in_day IS NOT NULL
), first_spent AS (
    INSERT INTO spend (zombie_id, day, nanos)
    SELECT zombie_id, day, charged FROM charged WHERE seq IS NOT NULL AND in_day IS NULL
    ON CONFLICT (zombie_id, day) DO UPDATE SET nanos = spend.nanos + excluded.nanos
)
SELECT ord, charged, balance, charged + coalesce(in_day, 0), charged + in_month, event_id,
       unlimited FROM charged
"""
RENEW = _RENEWED + _MONEY
RENEW_AND_END = _CHANGED + _MONEY


async def save_leases(
    connection: Connection, writes: Sequence[tuple[int, LeaseWrite]], answers: list[Any]
) -> Sequence[tuple[int, EndLease, Row]]:
    """Renew and end; renewals are answered, ends that held are given back with their row for their event."""
    rows = await connection.fetch(*_statement(writes))
    held = {row[0]: row for row in rows}
    ended: list[tuple[int, EndLease, Row]] = []
    for position, (ord_, write) in enumerate(writes, 1):
        row = held.get(position)
        if row is None:
            # Whether it was the version, the status or the deadline is for a fresh look to say.
            answers[ord_] = Lost(STALE)
        elif isinstance(write, RenewLease):
            answers[ord_] = Renewed(row[1], row[2], row[3], row[4], row[6])
        else:
            ended.append((ord_, write, row))
    return ended


def _statement(writes: Sequence[tuple[int, LeaseWrite]]) -> tuple[Any, ...]:
    """Choose the statement, and give it with its arguments."""
    renewals = [w for _, w in writes if isinstance(w, RenewLease)]
    days = {day_of(w.now) for w in renewals}
    if len(renewals) == len(writes) and len(days) == 1:
        (day,) = days
        month = month_of(day)
        return (RENEW, day, month.first_day, month.end_day, *map(array_literal, _renewal_columns(renewals)))
    return (RENEW_AND_END, *_CHANGES.arrays([_change_values(w) for _, w in writes]))


def _renewal_columns(renewals: Sequence[RenewLease]) -> list[list[Any]]:
    leases = [w.lease for w in renewals]
    slices = [w.slice for w in renewals]
    return [
        [lease.id for lease in leases],
        [lease.version for lease in leases],
        [s.seq for s in slices],
        [s.d_input_tokens for s in slices],
        [s.d_cached_tokens for s in slices],
        [s.d_output_tokens for s in slices],
        [s.run_ms for s in slices],
        [s.run_fee_nanos for s in slices],
        [s.token_cost_nanos for s in slices],
        [w.now for w in renewals],
        [lease.expires_at for lease in leases],
        [lease.metered_at for lease in leases],
        [lease.input_tokens for lease in leases],
        [lease.cached_input_tokens for lease in leases],
        [lease.output_tokens for lease in leases],
        [lease.run_ms for lease in leases],
    ]


def _change_values(write: LeaseWrite) -> tuple[Any, ...]:
    if isinstance(write, RenewLease):
        lease = write.lease
        to = (
            lease.expires_at,
            lease.metered_at,
            lease.input_tokens,
            lease.cached_input_tokens,
            lease.output_tokens,
        )
        ends = (lease.run_ms, None, None, None, True, False)
        return (lease.id, lease.version, *_slice_values(write.slice, write.now), *to, *ends)
    stays = (None, None, None, None, None, None)
    ends_as = (write.status, write.now, write.report_digest, write.require_unexpired, write.require_expired)
    return (write.lease_id, write.version + 1, *_slice_values(write.slice, write.now), *stays, *ends_as)


def _slice_values(part: Slice | None, now: int) -> tuple[int | None, ...]:
    if part is None:
        return (None,) * 11
    day = day_of(now)
    month = month_of(day)
    return (*msgspec.structs.astuple(part), now, day, month.first_day, month.end_day)


# --- the events of leases that ended ------------------------------------------------------------------------

# An event parks only while its gate is pending. The gate cannot be resolved beside us: that takes the agent's
# head too.
_ENDS = Columns("int uuid uuid text bigint int" + " text" * 5 + " bigint" * 4 + " uuid bool")
_END_EVENTS = f"""
WITH v AS (
    SELECT * FROM {_ENDS.unnest}
        AS v(ord, lease_id, event_id, asked, now, given_back, failure_label, error_code, response_text,
             evidence, checkpoint, input_tokens, cached_input_tokens, output_tokens, wall_ms, gate_id,
             finished)
), f AS (
    SELECT v.*, g.id AS waits_at,
           CASE WHEN v.asked = 'waiting_approval' AND g.id IS NULL THEN 'received' ELSE v.asked END AS status
      FROM v LEFT JOIN gates g ON g.id = v.gate_id AND g.event_id = v.event_id
                              AND v.asked = 'waiting_approval' AND {beside("v.ord", "g.status = 'pending'")}
), freed AS (
    UPDATE agent_heads h
       SET live_lease_id = NULL,
           streak = CASE WHEN f.status = 'processed' THEN h.streak + 1
                         WHEN f.status IN ('agent_error', 'dead_lettered') THEN 0
                         ELSE h.streak END
      FROM leases l JOIN f ON l.id = f.lease_id
     WHERE h.zombie_id = l.zombie_id AND h.live_lease_id = l.id
), charged AS (
    INSERT INTO charges (id, event_id, zombie_id, workspace_id, tenant_id, charge_type, posture, model,
                         credit_deducted_nanos, token_count_input, token_count_output, wall_ms, recorded_at)
    SELECT l.id, l.event_id, l.zombie_id, l.workspace_id, l.tenant_id, 'stage',
           CASE WHEN l.own_key THEN 'self_managed' ELSE 'platform' END, l.model, m.charged, m.tokens_in,
           m.tokens_out, m.ms, f.now
      FROM f JOIN leases l ON l.id = f.lease_id
     CROSS JOIN LATERAL (
        SELECT count(*) AS slices, sum(charged_nanos)::bigint AS charged,
               sum(d_input_tokens + d_cached_tokens)::bigint AS tokens_in,
               sum(d_output_tokens)::bigint AS tokens_out, sum(run_ms)::bigint AS ms
          FROM metering p WHERE p.event_id = l.event_id AND p.attempt = l.attempt) m
     WHERE m.slices > 0
)
UPDATE events e
   SET status = f.status,
       waiting_gate_id = f.waits_at,
       attempts = greatest(0, e.attempts - f.given_back),
       parked_at = CASE WHEN f.asked = 'waiting_approval' THEN f.now ELSE e.parked_at END,
       failure_label = coalesce(f.failure_label, e.failure_label),
       error_code = coalesce(f.error_code, e.error_code),
       response_text = coalesce(f.response_text, e.response_text),
       evidence = coalesce(f.evidence::json, e.evidence),
       checkpoint = coalesce(f.checkpoint::json, e.checkpoint),
       input_tokens = e.input_tokens + f.input_tokens,
       cached_input_tokens = e.cached_input_tokens + f.cached_input_tokens,
       output_tokens = e.output_tokens + f.output_tokens,
       wall_ms = e.wall_ms + f.wall_ms,
       charged_nanos =
           (SELECT coalesce(sum(m.charged_nanos), 0)::bigint FROM metering m WHERE m.event_id = e.id),
       updated_at = f.now,
       completed_at = CASE WHEN f.finished THEN f.now END
  FROM f
 WHERE e.id = f.event_id
RETURNING f.ord,
          least(CASE WHEN f.status = 'received' THEN e.created_at END,
                (SELECT r.created_at FROM events r
                  WHERE r.zombie_id = e.zombie_id AND r.status = 'received' AND r.id <> e.id
                  ORDER BY r.zombie_id, r.arrival LIMIT 1)),
          CASE WHEN f.finished THEN
               (SELECT count(*)::int FROM gates g
                 WHERE g.event_id = e.id AND g.status IN ('denied', 'timed_out', 'auto_killed')) END,
          CASE WHEN f.finished THEN (SELECT l.budget_daily_nanos FROM leases l WHERE l.id = f.lease_id) END,
          {EVENTS.columns("e")}
"""

_EVENT_AT = 4
_FOLLOW = EVENTS.insert("events")


async def end_events(
    connection: Connection, ends: Sequence[tuple[int, EndLease, Row]], answers: list[Any]
) -> None:
    """Bring the events of ended leases to their new state and free their agents; answers the ends.

    What ends with its event is scored, and what it proposes is kept. A continuation is there before its
    agent is free, so that the answer names it as the next to be leased.
    """
    if continuations := [write.continuation for _, write, _ in ends if write.continuation is not None]:
        await connection.executemany(_FOLLOW, [EVENTS.values(event) for event in continuations])
    columns = _ENDS.arrays([_event_values(ord_, w, row[5]) for ord_, w, row in ends])
    rows = await connection.fetch(_END_EVENTS, *columns)
    settled = {ord_: (write, row) for ord_, write, row in ends}
    scores: list[tuple[Score, UUID]] = []
    for row in rows:
        write, money = settled[row[0]]
        event = EVENTS.record(row, _EVENT_AT)
        answers[row[0]] = Ended(money[1], money[2], event, row[1])
        if event.completed_at is not None:
            scores.append((score_of(event, row[2], write.event.failed_checks, row[3]), write.lease_id))
    if scores:
        await keep_scores(connection, scores)
    if proposals := [proposal for _, write, _ in ends for proposal in write.proposals]:
        await insert_proposals(connection, proposals)


def _event_values(ord_: int, write: EndLease, event_id: UUID) -> tuple[Any, ...]:
    end = write.event
    return (
        ord_,
        write.lease_id,
        event_id,
        end.status,
        write.now,
        int(end.give_attempt_back),
        end.failure_label,
        end.error_code,
        storable(end.response_text),
        json_or_none(end.evidence),
        json_or_none(end.checkpoint),
        end.input_tokens,
        end.cached_input_tokens,
        end.output_tokens,
        end.wall_ms,
        write.parked_gate_id if end.status is EventStatus.WAITING_APPROVAL else None,
        end.status in FINISHED_EVENT,
    )
