"""Workspaces that stay, in memory."""

from uuid import UUID

from msgspec.structs import replace

from sexton_storage.decisions import kept_workspaces as decide
from sexton_storage.memory.apply_gates import holds
from sexton_storage.memory.base import MemoryStore
from sexton_storage.memory.tables import Tables
from sexton_storage.records.kept_workspaces import Snapshot, Start, Started
from sexton_storage.records.leases import Lease, LeaseStatus, LeaseToken


class MemoryKeptWorkspaces(MemoryStore):
    async def start(self, lease: Lease) -> Started | None:
        await self._round_trip()
        tables = self._tables
        if not holds(tables, lease.zombie_id, lease.id, lease.fencing_token):
            return None
        event = tables.events[lease.event_id]
        resumed = event.resumes_event_id
        rows = decide.StartRows(
            event,
            tables.workspace_starts.get((lease.zombie_id, event.id)),
            self._left(event.id, LeaseStatus.PARKED),
            None if resumed is None else tables.workspace_starts.get((lease.zombie_id, resumed)),
            None if resumed is None else self._left(resumed, LeaseStatus.REPORTED),
            decide.newest(self._of(lease.zombie_id), self._reset(lease.zombie_id)),
        )
        start = decide.start(rows)
        if rows.settled is None:
            tables.workspace_starts[lease.zombie_id, event.id] = start
        return Started(start, self._named(start))

    async def keep(self, lease: Lease, held: LeaseToken, blob_id: UUID, now: int) -> Snapshot | None:
        await self._round_trip()
        tables = self._tables
        snapshot = decide.snapshot_of(
            lease,
            tables.workspace_starts.get((lease.zombie_id, lease.event_id)),
            tables.blobs.get(blob_id),
            now,
            held=holds(tables, lease.zombie_id, held.lease_id, held.fencing_token),
        )
        if snapshot is not None:
            let_go(tables, tables.workspace_snapshots.get(lease.id))
            tables.workspace_snapshots[lease.id] = snapshot
            _count(tables, snapshot, 1)
        return snapshot

    async def newest(self, zombie_id: UUID) -> Snapshot | None:
        await self._round_trip()
        return decide.newest(self._of(zombie_id), self._reset(zombie_id))

    async def load(self, lease_id: UUID) -> Snapshot | None:
        await self._round_trip()
        return self._tables.workspace_snapshots.get(lease_id)

    async def reset(self, zombie_id: UUID) -> bool:
        await self._round_trip()
        head = self._tables.heads.get(zombie_id)
        if head is None:
            return False
        self._tables.workspace_resets[zombie_id] = head.fence
        return True

    async def prune(self, *, limit: int) -> int:
        await self._round_trip()
        agents = {one.zombie_id for one in self._tables.workspace_snapshots.values()}
        over = [
            one for agent in sorted(agents) for one in decide.outdated(self._of(agent), self._reset(agent))
        ]
        for one in over[:limit]:
            let_go(self._tables, one)
        return len(over[:limit])

    def _of(self, zombie_id: UUID) -> list[tuple[Snapshot, LeaseStatus]]:
        tables = self._tables
        mine = [one for one in tables.workspace_snapshots.values() if one.zombie_id == zombie_id]
        return [(one, tables.leases[one.lease_id].status) for one in mine]

    def _left(self, event_id: UUID, status: LeaseStatus) -> Snapshot | None:
        found = [one for one in self._tables.workspace_snapshots.values() if one.event_id == event_id]
        fit = [one for one in found if self._tables.leases[one.lease_id].status is status]
        return max(fit, key=lambda one: one.fencing_token, default=None)

    def _reset(self, zombie_id: UUID) -> int:
        return self._tables.workspace_resets.get(zombie_id, 0)

    def _named(self, start: Start) -> Snapshot | None:
        found = self._tables.workspace_snapshots.get(start.snapshot_id) if start.snapshot_id else None
        return None if found is None or found.fencing_token <= self._reset(start.zombie_id) else found


def let_go(tables: Tables, snapshot: Snapshot | None) -> None:
    """Delete a snapshot; its content is owned by one less."""
    if snapshot is not None:
        del tables.workspace_snapshots[snapshot.lease_id]
        _count(tables, snapshot, -1)


def _count(tables: Tables, snapshot: Snapshot, more: int) -> None:
    blob = tables.blobs[snapshot.blob_id]
    touched = tables.now() if more < 0 else blob.touched_at
    tables.blobs[snapshot.blob_id] = replace(blob, owners=blob.owners + more, touched_at=touched)
