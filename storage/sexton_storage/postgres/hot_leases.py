"""Renews and ends the leases of a batch: lease rows, metering, debits and spend in one statement."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from sexton_storage.documents import json_or_none, storable
from sexton_storage.periods import day_of, month_of
from sexton_storage.postgres.connection import Connection, Row
from sexton_storage.postgres.schema import EVENTS
from sexton_storage.records import EventStatus, Slice
from sexton_storage.rules import FENCED, FINISHED_EVENT, STALE
from sexton_storage.writes import Ended, EndLease, Lost, Renewed, RenewLease

LeaseWrite = RenewLease | EndLease

# ``ord`` is the order of arrival in the batch; the window sums debit in that order. What is charged is computed from
# the rows that the updates gave back, so a write that lost its race in the last moment has not counted.
_RENEWED = """
WITH v AS (
    SELECT * FROM unnest($1::int[], $2::uuid[], $3::bigint[], $4::bigint[], $5::bigint[], $6::int[], $7::bigint[],
                         $8::bigint[], $9::bigint[], $10::bigint[])
        AS v(ord, id, version, expires_at, metered_at, slice_seq, input_tokens, cached_input_tokens, output_tokens,
             run_ms)
), renewed AS (
    UPDATE leases l
       SET version = v.version, expires_at = v.expires_at, metered_at = v.metered_at, slice_seq = v.slice_seq,
           input_tokens = v.input_tokens, cached_input_tokens = v.cached_input_tokens,
           output_tokens = v.output_tokens, run_ms = v.run_ms
      FROM v
     WHERE l.id = v.id AND l.version = v.version - 1 AND l.status IN ('active', 'cancelling')
       AND l.expires_at > sexton_now_ms()
    RETURNING v.ord, l.event_id, l.attempt, l.zombie_id, l.workspace_id, l.tenant_id
)"""
_ENDED = """
, w AS (
    SELECT * FROM unnest($23::int[], $24::uuid[], $25::bigint[], $26::text[], $27::bigint[], $28::bytea[],
                         $29::bool[], $30::bool[])
        AS w(ord, id, version, status, now, digest, unexpired, expired)
), ended AS (
    UPDATE leases l
       SET version = l.version + 1, status = w.status, ended_at = w.now, report_digest = w.digest,
           metered_at = CASE WHEN s.ord IS NULL THEN l.metered_at ELSE w.now END,
           slice_seq = coalesce(s.seq, l.slice_seq),
           input_tokens = l.input_tokens + coalesce(s.d_input, 0),
           cached_input_tokens = l.cached_input_tokens + coalesce(s.d_cached, 0),
           output_tokens = l.output_tokens + coalesce(s.d_output, 0)
      FROM w LEFT JOIN s ON s.ord = w.ord
     WHERE l.id = w.id AND l.version = w.version AND l.status IN ('active', 'cancelling')
       AND (NOT w.unexpired OR l.expires_at > sexton_now_ms())
       AND (NOT w.expired OR l.expires_at <= sexton_now_ms())
    RETURNING w.ord, l.event_id, l.attempt, l.zombie_id, l.workspace_id, l.tenant_id
)"""
_SLICES = """
, s AS (
    SELECT * FROM unnest($11::int[], $12::int[], $13::bigint[], $14::bigint[], $15::bigint[], $16::bigint[],
                         $17::bigint[], $18::bigint[], $19::bigint[], $20::int[], $21::int[], $22::int[])
        AS s(ord, seq, d_input, d_cached, d_output, run_ms, run_fee, token_cost, now, day, month, next_month)
)"""
_MONEY = """
, priced AS (
    SELECT t.*, a.balance_nanos, sum(t.cost) OVER (PARTITION BY t.tenant_id ORDER BY t.ord) AS upto
      FROM (SELECT c.*, s.seq, coalesce(s.run_fee + s.token_cost, 0) AS cost
              FROM changed c LEFT JOIN s ON s.ord = c.ord) t
      JOIN tenants a ON a.id = t.tenant_id
), charged AS (
    SELECT p.ord, p.event_id, p.attempt, p.zombie_id, p.workspace_id, p.tenant_id,
           least(p.cost, greatest(0, p.balance_nanos - (p.upto - p.cost)))::bigint AS charged,
           greatest(0, p.balance_nanos - p.upto)::bigint AS balance
      FROM priced p
), metered AS (
    INSERT INTO metering (event_id, attempt, slice_seq, zombie_id, workspace_id, tenant_id, d_input_tokens,
                          d_cached_tokens, d_output_tokens, run_ms, run_fee_nanos, token_cost_nanos, charged_nanos,
                          created_at)
    SELECT c.event_id, c.attempt, s.seq, c.zombie_id, c.workspace_id, c.tenant_id, s.d_input, s.d_cached, s.d_output,
           s.run_ms, s.run_fee, s.token_cost, c.charged, s.now
      FROM charged c JOIN s ON s.ord = c.ord
), debited AS (
    UPDATE tenants a
       SET balance_nanos = a.balance_nanos - d.nanos, updated_at = d.now,
           exhausted_at = CASE WHEN a.balance_nanos > d.nanos THEN a.exhausted_at
                               ELSE coalesce(a.exhausted_at, d.now) END
      FROM (SELECT c.tenant_id, sum(c.charged)::bigint AS nanos, max(s.now) AS now
              FROM charged c JOIN s ON s.ord = c.ord GROUP BY c.tenant_id) d
     WHERE a.id = d.tenant_id
), spent AS (
    INSERT INTO spend (zombie_id, day, nanos)
    SELECT c.zombie_id, s.day, sum(c.charged)::bigint FROM charged c JOIN s ON s.ord = c.ord GROUP BY c.zombie_id, s.day
    ON CONFLICT (zombie_id, day) DO UPDATE SET nanos = spend.nanos + excluded.nanos
    RETURNING zombie_id, day, nanos
)
SELECT c.ord, c.charged, c.balance, coalesce(d.nanos, 0),
       coalesce(d.nanos, 0) + (SELECT coalesce(sum(m.nanos), 0)::bigint FROM spend m
                                WHERE m.zombie_id = c.zombie_id AND m.day >= s.month AND m.day < s.next_month
                                  AND m.day <> s.day),
       c.event_id
  FROM charged c LEFT JOIN s ON s.ord = c.ord
  LEFT JOIN spent d ON d.zombie_id = c.zombie_id AND d.day = s.day
"""
RENEW = _RENEWED + ", changed AS (SELECT * FROM renewed)" + _SLICES + _MONEY
RENEW_AND_END = (
    _RENEWED
    + _SLICES
    + _ENDED
    + ", changed AS (SELECT * FROM renewed UNION ALL SELECT * FROM ended)"
    + _MONEY
)


async def save_leases(
    connection: Connection, writes: Sequence[tuple[int, LeaseWrite]], answers: list[Any]
) -> Sequence[tuple[int, EndLease, Row]]:
    """Renew and end; renewals are answered, ends that held are given back with their row for their event."""
    renewals = [(ord_, w) for ord_, w in writes if isinstance(w, RenewLease)]
    ends = [(ord_, w) for ord_, w in writes if isinstance(w, EndLease)]
    slices = [(ord_, w.slice, w.now) for ord_, w in writes if w.slice is not None]
    arguments = _renewal_columns(renewals) + _slice_columns(slices)
    if ends:
        rows = await connection.fetch(RENEW_AND_END, *arguments, *_end_columns(ends))
    else:
        rows = await connection.fetch(RENEW, *arguments)
    held = {row[0]: row for row in rows}
    for ord_, _ in renewals:
        row = held.get(ord_)
        # Whether it was the version, the status or the deadline is for a fresh look to say.
        answers[ord_] = Lost(STALE) if row is None else Renewed(row[1], row[2], row[3], row[4])
    for ord_, write in ends:
        if ord_ not in held:
            answers[ord_] = Lost(FENCED if write.require_unexpired else STALE)
    return [(ord_, w, held[ord_]) for ord_, w in ends if ord_ in held]


def _renewal_columns(renewals: Sequence[tuple[int, RenewLease]]) -> list[list[Any]]:
    leases = [w.lease for _, w in renewals]
    return [
        [ord_ for ord_, _ in renewals],
        [lease.id for lease in leases],
        [lease.version for lease in leases],
        [lease.expires_at for lease in leases],
        [lease.metered_at for lease in leases],
        [lease.slice_seq for lease in leases],
        [lease.input_tokens for lease in leases],
        [lease.cached_input_tokens for lease in leases],
        [lease.output_tokens for lease in leases],
        [lease.run_ms for lease in leases],
    ]


def _slice_columns(slices: Sequence[tuple[int, Slice, int]]) -> list[list[Any]]:
    days = [day_of(now) for _, _, now in slices]
    months = [month_of(day) for day in days]
    return [
        [ord_ for ord_, _, _ in slices],
        [s.seq for _, s, _ in slices],
        [s.d_input_tokens for _, s, _ in slices],
        [s.d_cached_tokens for _, s, _ in slices],
        [s.d_output_tokens for _, s, _ in slices],
        [s.run_ms for _, s, _ in slices],
        [s.run_fee_nanos for _, s, _ in slices],
        [s.token_cost_nanos for _, s, _ in slices],
        [now for _, _, now in slices],
        days,
        [month.first_day for month in months],
        [month.end_day for month in months],
    ]


def _end_columns(ends: Sequence[tuple[int, EndLease]]) -> list[list[Any]]:
    return [
        [ord_ for ord_, _ in ends],
        [w.lease_id for _, w in ends],
        [w.version for _, w in ends],
        [w.status for _, w in ends],
        [w.now for _, w in ends],
        [w.report_digest for _, w in ends],
        [w.require_unexpired for _, w in ends],
        [w.require_expired for _, w in ends],
    ]


# --- the events of leases that ended ----------------------------------------------------------------------------

# An event parks only while its gate is pending. The gate cannot be resolved beside us: that takes the agent's head too.
_END_EVENTS = f"""
WITH v AS (
    SELECT * FROM unnest($1::int[], $2::uuid[], $3::uuid[], $4::text[], $5::bigint[], $6::int[], $7::text[], $8::text[],
                         $9::text[], $10::text[], $11::text[], $12::bigint[], $13::bigint[], $14::bigint[],
                         $15::bigint[], $16::uuid[], $17::bool[])
        AS v(ord, lease_id, event_id, asked, now, given_back, failure_label, error_code, response_text, evidence,
             checkpoint, input_tokens, cached_input_tokens, output_tokens, wall_ms, gate_id, finished)
), f AS (
    SELECT v.*, g.id AS waits_at,
           CASE WHEN v.asked = 'waiting_approval' AND g.id IS NULL THEN 'received' ELSE v.asked END AS status
      FROM v LEFT JOIN gates g ON g.id = v.gate_id AND g.event_id = v.event_id AND g.status = 'pending'
                              AND v.asked = 'waiting_approval'
), freed AS (
    UPDATE agent_heads h SET live_lease_id = NULL
      FROM leases l JOIN f ON l.id = f.lease_id
     WHERE h.zombie_id = l.zombie_id AND h.live_lease_id = l.id
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
       charged_nanos = (SELECT coalesce(sum(m.charged_nanos), 0)::bigint FROM metering m WHERE m.event_id = e.id),
       updated_at = f.now,
       completed_at = CASE WHEN f.finished THEN f.now END
  FROM f
 WHERE e.id = f.event_id
RETURNING f.ord,
          f.status = 'received' OR EXISTS (SELECT FROM events r WHERE r.zombie_id = e.zombie_id
                                              AND r.status = 'received' AND r.id <> e.id),
          {EVENTS.columns("e")}
"""


async def end_events(
    connection: Connection, ends: Sequence[tuple[int, EndLease, Row]], answers: list[Any]
) -> None:
    """Bring the events of ended leases to their new state and free their agents; answers the ends."""
    columns = [_event_values(ord_, w, row[5]) for ord_, w, row in ends]
    rows = await connection.fetch(_END_EVENTS, *(list(c) for c in zip(*columns, strict=True)))
    settled = {ord_: row for ord_, _, row in ends}
    for row in rows:
        money = settled[row[0]]
        answers[row[0]] = Ended(money[1], money[2], EVENTS.record(row, 2), row[1])


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
