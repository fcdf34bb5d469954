"""Grants the leases of a batch."""

from collections.abc import Iterable, Sequence
from typing import Any

from sexton_storage.postgres.connections.connection import Connection, Row
from sexton_storage.postgres.journal.frames import NumberedFrames
from sexton_storage.postgres.sql.columns import Columns, array_literal
from sexton_storage.postgres.sql.fragments import insert_from, same
from sexton_storage.postgres.sql.periods import Period, period_of
from sexton_storage.postgres.sql.rows import shares_json
from sexton_storage.postgres.sql.schema import EVENTS
from sexton_storage.records.events import Asked, Event
from sexton_storage.records.leases import Lease, LeaseStatus, Rates
from sexton_storage.refusals import CHANGED, NOT_YET, OTHER_VERSION, OUT_OF_SCOPE, RUNNER_BUSY, RUNNER_FULL
from sexton_storage.rules import BALANCE_EXHAUSTED, BALANCE_EXHAUSTED_CODE
from sexton_storage.streams import leased_frame
from sexton_storage.writes import Claimed, ClaimEvent, Exhausted, NothingToClaim

# Tenants and heads are locked by the batch: a balance or a live lease read here stays so until the commit. So
# does an agent's version, for a save locks the head.


def _period(write: ClaimEvent) -> Period:
    return period_of(write.now)


def _shares(write: ClaimEvent) -> str | None:
    return shares_json(write.shares)


_RATES = Rates.__struct_fields__
_GIVEN = ("budget_daily_nanos", "budget_monthly_nanos", "config_version_id", "model", "own_key")
"""What the lease keeps as the claim gives it."""
_COLUMNS = Columns(
    ClaimEvent,
    "zombie_id",
    "lease_id",
    "runner_id",
    "now",
    "term_ms",
    "ceiling_ms",
    *(f"rates.{name}" for name in _RATES),
    *_GIVEN,
    _shares,
    "agent_version",
    "asked.version",
    "asked.trial_id",
    "ran_version",
    _period,
    first=3,
)
_GRANT = insert_from(
    "leases",
    {
        "id": "lease_id",
        "event_id": "id",
        **same("zombie_id", "workspace_id", "tenant_id", "runner_id"),
        "fencing_token": "token",
        "attempt": "lease_count",
        "status": "'active'",
        "version": "1",
        "granted_at": "began",
        **same("expires_at", "ceiling_at"),
        "metered_at": "began",
        **{name: f"rates_{name}" for name in _RATES},
        **same(*_GIVEN),
        "shares": "shares::json",
        "shadow": "shadow_job IS NOT NULL",
    },
    "running",
)
BUSY = "sexton.busy_runners"
"""Ids of the runners whose slots another transaction has reserved."""
_NO_EVENT = ", ".join(["NULL"] * len(EVENTS.names))
# Every part of a statement sees the rows as they were before it, so each part takes what it needs from the
# part above and not from the table: ``o`` says what is found for each claim taken alone; ``f`` counts those
# that were found against the runner's free slots, in order of arrival, as claims of one batch do not see
# one another's leases; only then are event, lease and head changed, each by its own part, from the same
# row. The claims that hold are told from ``running`` and the others from ``f``: joined, each row of a batch
# would be compared with each other one.
# A claim may have been made before the agent's last lease ended, and have waited for that commit. Then the
# lease begins where the last one ended (``began``): no moment is of two leases, or billed twice.
_CLAIM = f"""
WITH v AS (
    SELECT * FROM {_COLUMNS.numbered_rows}
), o AS (
    SELECT v.*, e.id AS event_id, h.fence + 1 AS token,
           greatest(v.now, (SELECT p.ended_at FROM leases p
                             WHERE p.zombie_id = h.zombie_id AND p.fencing_token = h.fence)) AS began,
           e.asked_version AS wanted_version, e.trial_id AS wanted_trial_id,
           CASE WHEN strpos(current_setting('{BUSY}', true), v.runner_id::text) > 0 THEN '{RUNNER_BUSY}'
                WHEN h.zombie_id IS NULL THEN 'gone'
                WHEN a.version <> v.agent_version THEN '{CHANGED}'
                WHEN k.tenant_id <> h.tenant_id OR k.workspace_id <> h.workspace_id THEN '{OUT_OF_SCOPE}'
                WHEN h.status <> 'active' THEN 'not_active'
                WHEN h.live_lease_id IS NOT NULL THEN 'leased'
                WHEN w.paused THEN 'workspace_paused'
                WHEN e.id IS NULL THEN 'empty'
                WHEN e.retry_at > v.now THEN '{NOT_YET}'
                WHEN e.asked_version IS DISTINCT FROM v.asked_version
                  OR e.trial_id IS DISTINCT FROM v.asked_trial_id THEN '{OTHER_VERSION}'
                WHEN s.in_day >= v.budget_daily_nanos OR s.in_month >= v.budget_monthly_nanos
                THEN 'over_budget'
                WHEN t.balance_nanos <= 0 AND NOT t.unlimited THEN 'exhausted'
                ELSE 'claimed' END AS found
      FROM v
      LEFT JOIN agent_heads h ON h.zombie_id = v.zombie_id
      LEFT JOIN zombies a ON a.id = v.zombie_id
      LEFT JOIN runners k ON k.id = v.runner_id
      LEFT JOIN workspaces w ON w.id = h.workspace_id
      LEFT JOIN tenants t ON t.id = h.tenant_id
      LEFT JOIN LATERAL (SELECT r.event_id AS id, r.retry_at, r.asked_version, r.trial_id
                           FROM waiting_events r
                          WHERE r.zombie_id = v.zombie_id ORDER BY r.zombie_id, r.arrival LIMIT 1) e ON true
      LEFT JOIN LATERAL (
          SELECT coalesce(sum(nanos) FILTER (WHERE p.day = v.period_day), 0) AS in_day,
                 coalesce(sum(nanos), 0) AS in_month
            FROM spend p
           WHERE p.zombie_id = v.zombie_id AND p.day >= v.period_month AND p.day < v.period_next_month
             AND (v.budget_daily_nanos IS NOT NULL OR v.budget_monthly_nanos IS NOT NULL)
      ) s ON true
), room AS (
    SELECT r.id, r.slots - (SELECT count(*) FROM live_leases l WHERE l.runner_id = r.id) AS free
      FROM runners r WHERE r.id IN (SELECT runner_id FROM v)
), f AS (
    SELECT o.*,
           CASE WHEN o.found = 'claimed'
                 AND room.free < count(*) FILTER (WHERE o.found = 'claimed')
                                 OVER (PARTITION BY o.runner_id ORDER BY o.ord)
                THEN '{RUNNER_FULL}' ELSE o.found END AS outcome
      FROM o LEFT JOIN room ON room.id = o.runner_id
), blocked AS (
    UPDATE events e SET status = 'gate_blocked', failure_label = $1, error_code = $2, updated_at = f.now
      FROM f WHERE e.id = f.event_id AND f.outcome = 'exhausted'
), running AS (
    UPDATE events e
       SET status = 'running', attempts = e.attempts + 1, lease_count = e.lease_count + 1,
           first_leased_at = coalesce(e.first_leased_at, f.began),
           parked_ms = e.parked_ms + coalesce(greatest(0, f.began - e.parked_at), 0), parked_at = NULL,
           retry_at = NULL, ran_version = f.ran_version,
           updated_at = f.began
      FROM f WHERE e.id = f.event_id AND f.outcome = 'claimed'
    RETURNING f.ord, f.lease_id, f.runner_id, f.token, f.began,
              {", ".join(f"f.rates_{name}" for name in _RATES)}, {", ".join(f"f.{name}" for name in _GIVEN)},
              f.shares,
              e.first_leased_at + f.ceiling_ms + e.parked_ms AS ceiling_at,
              least(f.began + f.term_ms, e.first_leased_at + f.ceiling_ms + e.parked_ms) AS expires_at, e.*
), granted AS (
    {_GRANT}
), taken AS (
    UPDATE agent_heads h SET fence = f.token, live_lease_id = f.lease_id, last_runner_id = f.runner_id
      FROM f WHERE h.zombie_id = f.zombie_id AND f.outcome = 'claimed'
)
SELECT {EVENTS.columns("r")}, r.ord, 'claimed' AS outcome, r.id AS event_id,
       EXISTS (SELECT FROM waiting_events m WHERE m.zombie_id = r.zombie_id AND m.event_id <> r.id) AS more,
       EXISTS (SELECT FROM grants g WHERE g.zombie_id = r.zombie_id)
           OR EXISTS (SELECT FROM memories m WHERE m.zombie_id = r.zombie_id) AS endowed,
       r.token, r.lease_count, r.began, r.expires_at, r.ceiling_at,
       NULL AS wanted_version, NULL AS wanted_trial_id
  FROM running r
 UNION ALL
SELECT {_NO_EVENT}, f.ord, f.outcome, f.event_id, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
       f.wanted_version, f.wanted_trial_id
  FROM f WHERE f.outcome <> 'claimed'
"""
# Before the claim, so that it counts what others have committed. Nobody waits: two nodes that claim for one
# runner at the same moment are rare, and the later one tries again. Which runners those are the transaction
# keeps to itself, as a setting of its own.
PREPARE_RESERVE = f"""
PREPARE sexton_reserve (uuid[]) AS
SELECT set_config('{BUSY}', coalesce(string_agg(id::text, ' '), ''), true) FROM unnest($1) AS u(id)
 WHERE NOT pg_try_advisory_xact_lock(hashtextextended('slots of ' || id::text, 0));
"""


def reserve_slots(writes: Iterable[ClaimEvent]) -> str:
    """Spell what opens a batch with claims: until the commit the slots of their runners are its own."""
    return f"EXECUTE sexton_reserve ('{array_literal(tuple({w.runner_id for w in writes}))}')"


async def claim_events(
    connection: Connection,
    writes: Sequence[tuple[int, ClaimEvent]],
    answers: list[Any],
    frames: NumberedFrames,
) -> None:
    columns = _COLUMNS.arrays([w for _, w in writes])
    rows = await connection.fetch(_CLAIM, BALANCE_EXHAUSTED, BALANCE_EXHAUSTED_CODE, *columns)
    for row in rows:
        ord_, write = writes[row["ord"] - 1]
        match row["outcome"]:
            case "claimed":
                event = EVENTS.record(row)
                lease = _lease(write, event, row)
                answers[ord_] = Claimed(event, lease, more=row["more"], endowed=row["endowed"])
                frames.add(ord_, (leased_frame(lease),))
            case "exhausted":
                answers[ord_] = Exhausted(row["event_id"])
            case "other_version":
                answers[ord_] = NothingToClaim(OTHER_VERSION, _asked(row))
            case reason:
                answers[ord_] = NothingToClaim(reason)


def _asked(row: Row) -> Asked | None:
    version = row["wanted_version"]
    return None if version is None else Asked(version, row["wanted_trial_id"])


def _lease(write: ClaimEvent, event: Event, row: Row) -> Lease:
    """Spell the lease that was inserted."""
    return Lease(
        id=write.lease_id,
        event_id=event.id,
        zombie_id=event.zombie_id,
        workspace_id=event.workspace_id,
        tenant_id=event.tenant_id,
        runner_id=write.runner_id,
        fencing_token=row["token"],
        attempt=row["lease_count"],
        status=LeaseStatus.ACTIVE,
        version=1,
        granted_at=row["began"],
        expires_at=row["expires_at"],
        ceiling_at=row["ceiling_at"],
        metered_at=row["began"],
        rates=write.rates,
        budget_daily_nanos=write.budget_daily_nanos,
        budget_monthly_nanos=write.budget_monthly_nanos,
        config_version_id=write.config_version_id,
        model=write.model,
        own_key=write.own_key,
        shares=write.shares,
        shadow=event.shadow_job is not None,
    )
