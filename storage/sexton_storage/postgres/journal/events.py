"""Cancels the events of a batch."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from sexton_storage.postgres.connections.connection import Connection
from sexton_storage.postgres.journal.frames import NumberedFrames
from sexton_storage.postgres.sql.columns import Columns
from sexton_storage.postgres.sql.fragments import opaque_to_planner
from sexton_storage.records.events import EventStatus
from sexton_storage.records.frames import NewFrame
from sexton_storage.records.gates import GateStatus
from sexton_storage.refusals import GONE, Lost
from sexton_storage.rules import CANCELLED_BY, CANCELLED_LABEL
from sexton_storage.streams import GateKey, closed_frame
from sexton_storage.writes import CancelEvent, Cancelled, CancelOutcome

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
