"""What ends with an agent that is killed."""

from collections.abc import Sequence
from uuid import UUID

import msgspec

from sexton_storage.decisions.cancel import close_gates, ended, marked
from sexton_storage.decisions.follow_ups import closed
from sexton_storage.decisions.rows import Decided, EventRow, Row
from sexton_storage.records.events import EventStatus
from sexton_storage.records.follow_ups import FollowUp, FollowUpStatus
from sexton_storage.records.frames import NewFrame
from sexton_storage.records.gates import Gate, GateStatus
from sexton_storage.records.leases import Lease
from sexton_storage.rules import KILLED_BY
from sexton_storage.streams import cancelled_frame
from sexton_storage.terms import KILL_FRAMES_MAX


class KillRows(msgspec.Struct, frozen=True, gc=False):
    """All that may be open of an agent."""

    zombie_id: UUID
    events: Sequence[EventRow]
    gates: Sequence[Gate]
    follow_ups: Sequence[FollowUp]
    lease: Lease | None
    """The live one."""


def kill(rows: KillRows, frames: Sequence[NewFrame], now: int) -> Decided[tuple[UUID, ...]]:
    """End what waits, and mark what runs; answers the leases that are to be told.

    The agent's own record is saved beside this, at its version. ``frames`` come after those of the ends.
    """
    waiting = [row for row in rows.events if _waits(row)]
    newest = sorted(row.event.id for row in waiting)[-KILL_FRAMES_MAX:]
    gates, gate_frames = close_gates(rows.gates, GateStatus.AUTO_KILLED, KILLED_BY, now)
    dropped = [f for f in rows.follow_ups if f.status is FollowUpStatus.PENDING]
    changed: list[Row] = [
        *gates,
        *(ended(row, now) for row in waiting),
        *(closed(follow_up, FollowUpStatus.DROPPED, now) for follow_up in dropped),
    ]
    if rows.lease is not None:
        changed.append(marked(rows.lease))
    ends = (cancelled_frame(rows.zombie_id, event_id, now) for event_id in newest)
    leases = () if rows.lease is None else (rows.lease.id,)
    return Decided(leases, tuple(changed), (*gate_frames, *ends, *frames))


def _waits(row: EventRow) -> bool:
    return row.event.completed_at is None and row.event.status is not EventStatus.RUNNING
