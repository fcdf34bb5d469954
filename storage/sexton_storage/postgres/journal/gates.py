"""Opens and resolves the gates of a batch."""

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from sexton_storage.documents import storable
from sexton_storage.postgres.connections.connection import Connection
from sexton_storage.postgres.journal.frames import NumberedFrames
from sexton_storage.postgres.sql.fragments import beside, unnest
from sexton_storage.postgres.sql.schema import GATES
from sexton_storage.records.events import EventStatus
from sexton_storage.records.gates import Gate, GateStatus
from sexton_storage.refusals import FENCED, STALE, Lost
from sexton_storage.rules import storable_gate
from sexton_storage.writes import GateOpened, GateResolved, OpenGate, ResolveGate

_INSERT = f"""
INSERT INTO gates ({", ".join(GATES.names)})
SELECT id, zombie_id, workspace_id, tenant_id, event_id, lease_id, action_id, status, requested_at,
       timeout_at, zombie_name, tool_name, action_name, gate_kind, proposed_action, evidence::json,
       blast_radius, detail, updated_at, resolved_by
  FROM {unnest("uuid " * 6 + "text text bigint bigint" + " text" * 8 + " bigint text")}
    AS v({", ".join(GATES.names)})
"""
# Whether the lease is held is read from the agent's head, which is locked: a lease that ends, ends there too.
_FENCE = f"""
SELECT v.ord,
       EXISTS (SELECT FROM agent_heads h JOIN leases l ON l.id = h.live_lease_id
                WHERE h.zombie_id = v.zombie_id AND h.live_lease_id = v.lease_id AND h.fence = v.token
                  AND l.status IN ('active', 'cancelling') AND l.expires_at > sexton_now_ms()),
       {GATES.columns("g")}
  FROM {unnest("int uuid uuid bigint uuid text")}
    AS v(ord, zombie_id, lease_id, token, event_id, action_id)
  LEFT JOIN gates g ON g.event_id = v.event_id AND g.action_id = v.action_id
"""
# A pending gate of an earlier lease is waited for by this one now.
_ADOPT = f"""
UPDATE gates g SET lease_id = v.lease_id
  FROM {unnest("uuid uuid")} AS v(id, lease_id)
 WHERE g.id = v.id AND {beside("v.id", "g.status = 'pending'")}
"""
_RESOLVE = f"""
WITH v AS (
    SELECT * FROM {unnest("int uuid text bigint text text text text bigint")}
        AS v(ord, id, status, now, resolved_by, detail, event_status, failure_label, completed_at)
), resolved AS (
    UPDATE gates g SET status = v.status, updated_at = v.now, resolved_by = v.resolved_by, detail = v.detail
      FROM v WHERE g.id = v.id AND {beside("v.ord", "g.status = 'pending'")}
    RETURNING v.ord, v.event_status, v.failure_label, v.completed_at, v.now, g.*
), freed AS (
    UPDATE events e SET status = r.event_status, failure_label = coalesce(r.failure_label, e.failure_label),
                        updated_at = r.now, completed_at = r.completed_at, waiting_gate_id = NULL
      FROM resolved r
     WHERE e.id = r.event_id AND e.status = 'waiting_approval' AND e.waiting_gate_id = r.id
    RETURNING r.ord, e.status
)
SELECT r.ord, coalesce(f.status = 'received', false), {GATES.columns("r")}
  FROM resolved r LEFT JOIN freed f ON f.ord = r.ord
"""


async def insert_gates(connection: Connection, gates: Sequence[Gate]) -> None:
    """Add new gates; none is a call for nothing."""
    if gates:
        await connection.execute(_INSERT, *GATES.arrays(gates))


async def open_gates(
    connection: Connection, writes: Sequence[tuple[int, OpenGate]], answers: list[Any], frames: NumberedFrames
) -> None:
    rows = await connection.fetch(
        _FENCE,
        [ord_ for ord_, _ in writes],
        [w.gate.zombie_id for _, w in writes],
        [w.gate.lease_id for _, w in writes],
        [w.fencing_token for _, w in writes],
        [w.gate.event_id for _, w in writes],
        [w.gate.action_id for _, w in writes],
    )
    asked = dict(writes)
    opened: list[Gate] = []
    adopted: list[Gate] = []
    for row in rows:
        ord_, held = row[0], row[1]
        if not held:
            answers[ord_] = Lost(FENCED)
        elif row[2] is not None:
            gate = GATES.record(row, 2)
            if gate.status is GateStatus.PENDING and gate.lease_id != asked[ord_].gate.lease_id:
                gate = replace(gate, lease_id=asked[ord_].gate.lease_id)
                adopted.append(gate)
            answers[ord_] = GateOpened(gate, existed=True)
        else:
            write = asked[ord_]
            gate = storable_gate(write.gate)
            opened.append(gate)
            answers[ord_] = GateOpened(gate, existed=False)
            frames.add(ord_, write.frames)
    await insert_gates(connection, opened)
    if adopted:
        await connection.execute(_ADOPT, [g.id for g in adopted], [g.lease_id for g in adopted])


async def resolve_gates(
    connection: Connection,
    writes: Sequence[tuple[int, ResolveGate]],
    answers: list[Any],
    frames: NumberedFrames,
) -> None:
    columns = zip(*(_resolution(ord_, w) for ord_, w in writes), strict=True)
    rows = await connection.fetch(_RESOLVE, *(list(c) for c in columns))
    resolved = {row[0]: row for row in rows}
    for ord_, write in writes:
        row = resolved.get(ord_)
        if row is None:
            answers[ord_] = Lost(STALE)
            continue
        answers[ord_] = GateResolved(GATES.record(row, 2), row[1])
        frames.add(ord_, write.frames)


def _resolution(ord_: int, write: ResolveGate) -> tuple[Any, ...]:
    received = write.event_status is EventStatus.RECEIVED
    return (
        ord_,
        write.gate_id,
        write.status,
        write.now,
        write.resolved_by,
        storable(write.detail),
        write.event_status,
        write.failure_label,
        None if received else write.now,
    )
