"""Renews and ends the leases of a batch: lease rows, metering, debits and spend in one statement."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import msgspec

from sexton_storage.postgres.connections.connection import Connection, Row
from sexton_storage.postgres.sql.columns import Columns, array_literal, record_reader
from sexton_storage.postgres.sql.fragments import insert_from, opaque_to_planner, same
from sexton_storage.postgres.sql.periods import Period, period_of
from sexton_storage.postgres.sql.rows import shares_json
from sexton_storage.records.leases import Lease
from sexton_storage.records.metering import Slice
from sexton_storage.refusals import STALE, Lost
from sexton_storage.writes import EndLease, Renewed, RenewLease

LeaseWrite = RenewLease | EndLease


class _Change(msgspec.Struct, frozen=True, gc=False):
    """A renewal or an end, so that one statement can take both in the order they came."""

    lease_id: UUID
    lease_version: int
    """The one that the write will leave."""
    slice: Slice | None
    at: int
    lease: Lease | None
    """As a renewal wants it."""
    end: EndLease | None


def _now(change: _Change) -> int | None:
    return None if change.slice is None else change.at


def _ended_at(change: _Change) -> int | None:
    return None if change.end is None else change.at


def _period(change: _Change) -> Period | None:
    return None if change.slice is None else period_of(change.at)


def _unexpired(change: _Change) -> bool:
    return change.end is None or change.end.require_unexpired


def _expired(change: _Change) -> bool:
    return change.end is not None and change.end.require_expired


def _shares(write: RenewLease | _Change) -> str | None:
    part = write.slice
    return None if part is None else shares_json(part.shares)


_MADE = {
    "expires_at": "l.expires_at",
    "metered_at": "coalesce(v.now, l.metered_at)",
    "slice_seq": "coalesce(v.slice_seq, l.slice_seq)",
    "input_tokens": "l.input_tokens + coalesce(v.slice_d_input_tokens, 0)",
    "cached_input_tokens": "l.cached_input_tokens + coalesce(v.slice_d_cached_tokens, 0)",
    "output_tokens": "l.output_tokens + coalesce(v.slice_d_output_tokens, 0)",
    "run_ms": "l.run_ms",
    "cache_write_tokens": "l.cache_write_tokens + coalesce(v.slice_d_cache_write_tokens, 0)",
}
"""Columns of a lease that both kinds of write change: a renewal gives their values, an end makes these."""
_COUNTED = tuple(name for name in Slice.__struct_fields__ if name != "shares")
"""What is kept of a slice with its metering row; the shares are kept with the lease."""
_SLICE = {
    "slice_seq": "slice_seq",
    **{name: f"slice_{name}" for name in _COUNTED if name != "seq"},
    "created_at": "now",
}
"""Columns of a metering row, each with the slice's column of the statement."""
_SENT = tuple(f"slice.{name}" for name in _COUNTED)
_WANTED = tuple(f"lease.{name}" for name in _MADE)
_OF_RENEWAL: tuple[Any, ...] = ("lease.id", "lease.version", *_SENT, "now", *_WANTED, _shares)
_RENEWALS = Columns(RenewLease, *_OF_RENEWAL, first=4)
_IN_FUNCTION = Columns(RenewLease, *_OF_RENEWAL, first=7)
"""The same as arguments of the function, behind its others."""
_CHANGES = Columns(
    _Change,
    "lease_id",
    "lease_version",
    *_SENT,
    _now,
    *_WANTED,
    _shares,
    "end.status",
    _ended_at,
    "end.report_digest",
    _unexpired,
    _expired,
    _period,
)
_KEPT_BY = {"event_id": "lease_event_id", "attempt": "lease_attempt", **_SLICE}
_KEPT = Columns(
    RenewLease,
    *("lease.event_id", "lease.attempt", "lease.zombie_id", "lease.tenant_id"),
    *_SENT,
    "now",
    first=4,
)
"""What finds the metering rows of renewals again."""
_LIVE = "l.status IN ('active', 'cancelling')"
_METER = insert_from(
    "metering_slices",
    {
        **same("event_id", "attempt", "zombie_id", "workspace_id", "tenant_id"),
        **_SLICE,
        "charged_nanos": "charged",
    },
    "charged WHERE slice_seq IS NOT NULL",
)


def _statement_for(*, ends: bool, in_function: bool = False) -> str:
    """Write the statement for a batch of renewals, or for one in which leases end too.

    Nearly every batch is of renewals within one UTC day: its statement is short, and is sent just once what
    is the same for all. Renewals and ends of one tenant are paid in the order they came, so a batch that has
    both is one statement as well. Both are made from the same lists, and must charge alike.

    1. ``changed`` is the fence: a lease at another version, over or past its time gives no row, and all that
       follows is made from the rows that it gives. So a write that loses its race in the last moment, to a
       node that this batch's locks do not hold off, has charged nothing. The slice travels along with its
       lease: a join of two batches' worth of rows without an index would be a loop in a loop.
    2. ``charged`` clamps each cost at what its tenant has left, by a running sum in the order of arrival
       (``ord``): the balance is read once and moves once, however many of a tenant's leases are in the batch.
       What the agent had spent is read as it was before this batch: an agent has one live lease, and a batch
       one write of that, so nobody else is counting. That also tells whether the day has a row yet, which is
       cheaper than a conflict a row.
    3. The rest keeps what was charged: the metering row, the tenant's debit, the agent's spend.
    """
    if ends:
        source, days = (
            _CHANGES.numbered_rows,
            "v.period_day AS day, v.period_month AS month, v.period_next_month AS next_month",
        )
        changes = {name: f"coalesce(v.lease_{name}, {made})" for name, made in _MADE.items()}
        changes |= {
            "status": "coalesce(v.end_status, l.status)",
            "ended_at": "v.ended_at",
            "report_digest": "v.end_report_digest",
        }
        condition = f"""{opaque_to_planner("v.ord", _LIVE)}
       AND (NOT v.unexpired OR l.expires_at > (SELECT sexton_now_ms()))
       AND (NOT v.expired OR l.expires_at <= (SELECT sexton_now_ms()))"""
    else:
        columns, first, now = (
            (_IN_FUNCTION, 4, "locked_at") if in_function else (_RENEWALS, 1, "(SELECT sexton_now_ms())")
        )
        source = columns.numbered_rows
        days = f"${first}::int AS day, ${first + 1}::int AS month, ${first + 2}::int AS next_month"
        changes = {name: f"v.lease_{name}" for name in _MADE}
        condition = opaque_to_planner("v.ord", f"{_LIVE} AND l.expires_at > {now}")
    changes["version"] = "v.lease_version"
    changes["shares"] = "coalesce(v.shares::json, l.shares)"
    return f"""
WITH v AS (
    SELECT * FROM {source}
), changed AS (
    UPDATE leases l
       SET {", ".join(f"{name} = {value}" for name, value in changes.items())}
      FROM v
     WHERE l.id = v.lease_id AND l.version = v.lease_version - 1 AND {condition}
    RETURNING v.ord, l.event_id, l.attempt, l.zombie_id, l.workspace_id, l.tenant_id,
              {", ".join(f"v.{name}" for name in _SLICE.values())}, {days},
              coalesce(v.slice_run_fee_nanos + v.slice_token_cost_nanos, 0) AS cost
), charged AS (
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
    {_METER}
), debited AS (
    UPDATE tenants a
       SET balance_nanos = a.balance_nanos - d.nanos, updated_at = d.now,
           exhausted_at = CASE WHEN a.unlimited OR a.balance_nanos > d.nanos THEN a.exhausted_at
                               ELSE coalesce(a.exhausted_at, d.now) END
      FROM (SELECT tenant_id, sum(charged)::bigint AS nanos, max(now) AS now
              FROM charged WHERE slice_seq IS NOT NULL GROUP BY tenant_id) d
     WHERE a.id = d.tenant_id
), spent AS (
    UPDATE spend p SET nanos = p.nanos + c.charged
      FROM charged c WHERE p.zombie_id = c.zombie_id AND p.day = c.day AND c.in_day IS NOT NULL
), first_spent AS (
    INSERT INTO spend (zombie_id, day, nanos)
    SELECT zombie_id, day, charged FROM charged WHERE slice_seq IS NOT NULL AND in_day IS NULL
    ON CONFLICT (zombie_id, day) DO UPDATE SET nanos = spend.nanos + excluded.nanos
)
SELECT ord, charged AS charged_nanos, balance AS balance_nanos,
       charged + coalesce(in_day, 0) AS spent_day_nanos, charged + in_month AS spent_month_nanos, unlimited,
       event_id
  FROM charged
"""


RENEW = _statement_for(ends=False)
RENEW_AND_END = _statement_for(ends=True)
# A batch of renewals alone is one message, which opens it, locks, renews and commits. The function is the
# session's own, so that it is always the one of this release.
RENEW_FUNCTION = f"""
CREATE FUNCTION pg_temp.sexton_renew(
    uuid, bigint, text, int, int, int, {", ".join(_IN_FUNCTION.argument_types)})
RETURNS TABLE (ord bigint, charged_nanos bigint, balance_nanos bigint, spent_day_nanos bigint,
               spent_month_nanos bigint, unlimited bool, event_id uuid)
LANGUAGE plpgsql AS $function$
#variable_conflict use_column
DECLARE
    locked_at bigint;
BEGIN
    INSERT INTO journal_lanes (id, batch, at) VALUES ($1, $2, sexton_now_ms())
    ON CONFLICT (id) DO UPDATE SET batch = excluded.batch, at = excluded.at WHERE journal_lanes.batch < $2;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'this lane has begun a later batch';
    END IF;
    PERFORM FROM tenants WHERE id = ANY($3::uuid[]) ORDER BY id FOR NO KEY UPDATE;
    locked_at := (extract(epoch FROM clock_timestamp()) * 1000)::bigint;
    RETURN QUERY {_statement_for(ends=False, in_function=True)};
END
$function$
"""
# What they did stands in their metering rows. One that lost its race has none, or another writer's.
_RECALL = f"""
SELECT v.ord, m.charged_nanos, a.balance_nanos, coalesce(s.in_day, 0) AS spent_day_nanos,
       coalesce(s.in_month, 0) AS spent_month_nanos, a.unlimited
  FROM {_KEPT.numbered_rows}
  JOIN metering m ON {" AND ".join(f"m.{name} = v.{value}" for name, value in _KEPT_BY.items())}
  JOIN tenants a ON a.id = v.lease_tenant_id
 CROSS JOIN LATERAL (
    SELECT (sum(nanos) FILTER (WHERE d.day = $1))::bigint AS in_day, sum(nanos)::bigint AS in_month
      FROM spend d WHERE d.zombie_id = v.lease_zombie_id AND d.day >= $2 AND d.day < $3) s
"""
_ARGUMENTS = ", ".join(f"${number}" for number in range(1, 7 + len(_IN_FUNCTION.argument_types)))
_RENEW_AT_ONCE = f"SELECT * FROM pg_temp.sexton_renew({_ARGUMENTS})"
_renewed = record_reader(Renewed)


async def save_leases(
    connection: Connection, writes: Sequence[tuple[int, LeaseWrite]], answers: list[Any]
) -> Sequence[tuple[int, EndLease, Row]]:
    """Renew and end; renewals are answered, ends that held are given back with their row for their event."""
    return _answered(await connection.fetch(*_statement(writes)), writes, answers)


def are_of_one_day(writes: Sequence[RenewLease]) -> bool:
    """Whether the short statement serves these renewals: always but for those around midnight (UTC)."""
    return len({period_of(now) for now in {w.now for w in writes}}) == 1


async def renew_at_once(
    connection: Connection, mark: tuple[UUID, int], writes: Sequence[RenewLease], answers: list[Any]
) -> None:
    """Renew leases of one UTC day in a transaction of this one message; it has committed at the end."""
    tenants = array_literal(tuple({write.lease.tenant_id for write in writes}))
    days, columns = period_of(writes[0].now), _IN_FUNCTION.arrays(writes)
    rows = await connection.fetch(_RENEW_AT_ONCE, *mark, tenants, *days, *columns)
    _answered(rows, tuple(enumerate(writes)), answers)


async def recall(connection: Connection, writes: Sequence[RenewLease], answers: list[Any]) -> None:
    """Answer renewals that are known to have committed, when the answer itself was lost."""
    rows = await connection.fetch(_RECALL, *period_of(writes[0].now), *_KEPT.arrays(writes))
    _answered(rows, tuple(enumerate(writes)), answers)


def _answered(
    rows: Sequence[Row], writes: Sequence[tuple[int, LeaseWrite]], answers: list[Any]
) -> Sequence[tuple[int, EndLease, Row]]:
    held = {row["ord"]: row for row in rows}
    ended: list[tuple[int, EndLease, Row]] = []
    for position, (ord_, write) in enumerate(writes, 1):
        row = held.get(position)
        if row is None:
            # Whether it was the version, the status or the deadline is for a fresh look to say.
            answers[ord_] = Lost(STALE)
        elif isinstance(write, RenewLease):
            answers[ord_] = _renewed(row)
        else:
            ended.append((ord_, write, row))
    return ended


def _statement(writes: Sequence[tuple[int, LeaseWrite]]) -> tuple[Any, ...]:
    """Choose the statement, and give it with its arguments."""
    renewals = [w for _, w in writes if isinstance(w, RenewLease)]
    if len(renewals) == len(writes) and are_of_one_day(renewals):
        return (RENEW, *period_of(renewals[0].now), *_RENEWALS.arrays(renewals))
    return (RENEW_AND_END, *_CHANGES.arrays([_change(w) for _, w in writes]))


def _change(write: LeaseWrite) -> _Change:
    if isinstance(write, RenewLease):
        lease = write.lease
        return _Change(lease.id, lease.version, write.slice, write.now, lease, None)
    return _Change(write.lease_id, write.version + 1, write.slice, write.now, None, write)
