"""What an event's run starts from, and which snapshots stay."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from sexton_storage.records.blobs import Blob, BlobState
from sexton_storage.records.events import Event
from sexton_storage.records.kept_workspaces import SNAPSHOTS_KEPT, Snapshot, Start
from sexton_storage.records.leases import Lease, LeaseStatus

LEFT = frozenset({LeaseStatus.ACTIVE, LeaseStatus.CANCELLING, LeaseStatus.REPORTED, LeaseStatus.PARKED})
"""Leases whose snapshot counts, or may come to count."""


class StartRows(NamedTuple):
    """What a start depends on, as it stands when it is settled."""

    event: Event
    settled: Start | None
    """What is settled of this event."""
    parked: Snapshot | None
    """The newest that this event left when it was parked."""
    resumed: Start | None
    """What the event that this one replays or continues started from."""
    left: Snapshot | None
    """The newest that the event left which this one replays or continues."""
    newest: Snapshot | None
    """The agent's."""


def start(rows: StartRows) -> Start:
    """Settle what a run starts from.

    An event that was parked goes on with what it had. A further attempt and a replay start from what the
    first started from. What continues a replay goes on with what that left. All others start from the
    newest.

    >>> from uuid import UUID
    >>> from sexton_storage.records.events import EventStatus
    >>> agent, one, two, three = (UUID(int=n) for n in range(4))
    >>> event = Event(one, agent, agent, agent, "a", "t", EventStatus.RUNNING, "{}", 0, 0)
    >>> shot = lambda lease: Snapshot(lease, agent, agent, one, 1, False, lease, bytes(32), 9, 0)
    >>> begun = Start(agent, one, two, False)
    >>> fresh = StartRows(event, None, None, None, None, shot(three))
    >>> start(fresh).snapshot_id == three, start(fresh._replace(settled=begun)).snapshot_id == two
    (True, True)
    >>> start(fresh._replace(settled=begun, parked=shot(one))).snapshot_id == one
    True
    >>> from msgspec.structs import replace
    >>> replay = fresh._replace(event=replace(event, id=two, resumes_event_id=one), resumed=begun)
    >>> start(replay).snapshot_id == two, start(replay).is_fork
    (True, True)
    """
    event = rows.event
    if rows.settled is not None:
        snapshot_id = rows.settled.snapshot_id if rows.parked is None else rows.parked.lease_id
        return Start(event.zombie_id, event.id, snapshot_id, rows.settled.is_fork)
    if event.resumes_event_id is None:
        return _from(event, rows.newest, is_fork=False)
    if event.checkpoint is None:
        # A replay begins at the beginning: what it started from is what its original started from.
        snapshot_id = None if rows.resumed is None else rows.resumed.snapshot_id
        return Start(event.zombie_id, event.id, snapshot_id, is_fork=True)
    if rows.resumed is not None and rows.resumed.is_fork:
        return _from(event, rows.left, is_fork=True)
    return _from(event, rows.newest, is_fork=False)


def _from(event: Event, snapshot: Snapshot | None, *, is_fork: bool) -> Start:
    return Start(event.zombie_id, event.id, None if snapshot is None else snapshot.lease_id, is_fork)


def snapshot_of(
    lease: Lease, settled: Start | None, blob: Blob | None, now: int, *, held: bool
) -> Snapshot | None:
    """Give the snapshot of a lease, if it may leave one: it is held, has started, and sent the content."""
    if not held or settled is None or blob is None:
        return None
    if blob.state is not BlobState.KEPT or blob.lease_id != lease.id:
        return None
    return Snapshot(
        lease.id,
        lease.zombie_id,
        lease.workspace_id,
        lease.event_id,
        lease.fencing_token,
        settled.is_fork,
        blob.id,
        blob.sha256,
        blob.size,
        now,
    )


def newest(found: Iterable[tuple[Snapshot, LeaseStatus]], reset: int) -> Snapshot | None:
    """Give an agent's newest: reported, of no replay, and of a lease after the last reset."""
    counted = [
        snapshot
        for snapshot, status in found
        if status is LeaseStatus.REPORTED and not snapshot.is_fork and snapshot.fencing_token > reset
    ]
    return max(counted, key=lambda one: one.fencing_token, default=None)


def outdated(found: Sequence[tuple[Snapshot, LeaseStatus]], reset: int) -> list[Snapshot]:
    """Give the snapshots of an agent that nobody will start from.

    Those of lost leases, those before a reset, and all but the newest that are kept for replays.
    """
    ordered = sorted(found, key=lambda pair: -pair[0].fencing_token)
    over = [one for one, status in ordered if status not in LEFT or one.fencing_token <= reset]
    staying = [one for one, status in ordered if status in LEFT and one.fencing_token > reset]
    first = newest(found, reset)
    return over + [one for one in staying[SNAPSHOTS_KEPT:] if one != first]
