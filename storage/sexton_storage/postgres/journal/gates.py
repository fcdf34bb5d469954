"""Opens and resolves the gates of a batch."""

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from sexton_storage.documents import storable
from sexton_storage.postgres.connections.connection import Connection
from sexton_storage.postgres.journal.frames import NumberedFrames
from sexton_storage.postgres.sql.columns import Columns
from sexton_storage.postgres.sql.fragments import opaque_to_planner
from sexton_storage.postgres.sql.schema import GATES
from sexton_storage.records.events import EventStatus
from sexton_storage.records.gates import Gate, GateStatus
from sexton_storage.refusals import FENCED, STALE, Lost
from sexton_storage.rules import storable_gate
from sexton_storage.writes import GateOpened, GateResolved, OpenGate, ResolveGate

_INSERT = GATES.insert_many("gates")
# Whether the lease is held is read from the agent's head, which is locked: a lease that ends, ends there too.
_OPENED = Columns(
    OpenGate, "gate.zombie_id", "gate.lease_id", "fencing_token", "gate.event_id", "gate.action_id"
)
_FENCE = f"""
SELECT {GATES.columns("g")}, v.ord,
       EXISTS (SELECT FROM agent_heads h JOIN leases l ON l.id = h.live_lease_id
                WHERE h.zombie_id = v.gate_zombie_id AND h.live_lease_id = v.gate_lease_id
                  AND h.fence = v.fencing_token
                  AND l.status IN ('active', 'cancelling') AND l.expires_at > sexton_now_ms()) AS held
  FROM {_OPENED.numbered_rows}
  LEFT JOIN gates g ON g.event_id = v.gate_event_id AND g.action_id = v.gate_action_id
"""
# A pending gate of an earlier lease is waited for by this one now.
_ADOPTED = Columns(Gate, "id", "lease_id")
_ADOPT = f"""
UPDATE gates g SET lease_id = v.lease_id
  FROM {_ADOPTED.rows}
 WHERE g.id = v.id AND {opaque_to_planner("v.id", "g.status = 'pending'")}
"""


def _stored_detail(write: ResolveGate) -> str:
    return storable(write.detail)


def _completed_at(write: ResolveGate) -> int | None:
    return None if write.event_status is EventStatus.RECEIVED else write.now


_RESOLUTIONS = Columns(
    ResolveGate,
    "gate_id",
    "status",
    "now",
    "resolved_by",
    _stored_detail,
    "event_status",
    "failure_label",
    _completed_at,
)
_RESOLVE = f"""
WITH v AS (
    SELECT * FROM {_RESOLUTIONS.numbered_rows}
), resolved AS (
    UPDATE gates g SET status = v.status, updated_at = v.now, resolved_by = v.resolved_by,
                       detail = v.stored_detail
      FROM v WHERE g.id = v.gate_id AND {opaque_to_planner("v.ord", "g.status = 'pending'")}
    RETURNING v.ord, v.event_status, v.failure_label, v.completed_at, v.now, g.*
), freed AS (
    UPDATE events e SET status = r.event_status, failure_label = coalesce(r.failure_label, e.failure_label),
                        updated_at = r.now, completed_at = r.completed_at, waiting_gate_id = NULL
      FROM resolved r
     WHERE e.id = r.event_id AND e.status = 'waiting_approval' AND e.waiting_gate_id = r.id
    RETURNING r.ord, e.status
)
SELECT {GATES.columns("r")}, r.ord, coalesce(f.status = 'received', false) AS event_freed
  FROM resolved r LEFT JOIN freed f ON f.ord = r.ord
"""


async def insert_gates(connection: Connection, gates: Sequence[Gate]) -> None:
    """Add new gates; none is a call for nothing."""
    if gates:
        await connection.execute(_INSERT, *GATES.arrays(gates))


async def open_gates(
    connection: Connection, writes: Sequence[tuple[int, OpenGate]], answers: list[Any], frames: NumberedFrames
) -> None:
    rows = await connection.fetch(_FENCE, *_OPENED.arrays([w for _, w in writes]))
    opened: list[Gate] = []
    adopted: list[Gate] = []
    for row in rows:
        ord_, write = writes[row["ord"] - 1]
        if not row["held"]:
            answers[ord_] = Lost(FENCED)
        elif row["id"] is not None:
            gate = GATES.record(row)
            if gate.status is GateStatus.PENDING and gate.lease_id != write.gate.lease_id:
                gate = replace(gate, lease_id=write.gate.lease_id)
                adopted.append(gate)
            answers[ord_] = GateOpened(gate, existed=True)
        else:
            gate = storable_gate(write.gate)
            opened.append(gate)
            answers[ord_] = GateOpened(gate, existed=False)
            frames.add(ord_, write.frames)
    await insert_gates(connection, opened)
    if adopted:
        await connection.execute(_ADOPT, *_ADOPTED.arrays(adopted))


async def resolve_gates(
    connection: Connection,
    writes: Sequence[tuple[int, ResolveGate]],
    answers: list[Any],
    frames: NumberedFrames,
) -> None:
    rows = await connection.fetch(_RESOLVE, *_RESOLUTIONS.arrays([w for _, w in writes]))
    resolved = {row["ord"]: row for row in rows}
    for position, (ord_, write) in enumerate(writes, 1):
        row = resolved.get(position)
        if row is None:
            answers[ord_] = Lost(STALE)
            continue
        answers[ord_] = GateResolved(GATES.record(row), row["event_freed"])
        frames.add(ord_, write.frames)
