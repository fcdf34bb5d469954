"""Deletes what is past keeping, in memory, and says beforehand what that would be."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from sexton_storage.documents import to_json
from sexton_storage.memory import artefacts, event_files
from sexton_storage.memory.base import MemoryStore
from sexton_storage.memory.deliveries import delete_delivery
from sexton_storage.memory.tables import Tables
from sexton_storage.periods import DAY_MS
from sexton_storage.records.artefacts import Artefact
from sexton_storage.records.events import Event
from sexton_storage.records.retention import Due, KeptClass, RetentionPolicy
from sexton_storage.records.tenants import PlanTier

Old = list[tuple[int, int, Any]]
"""When each row came to be, its size, and the row."""


class MemoryRetention(MemoryStore):
    async def load(self, workspace_id: UUID) -> RetentionPolicy | None:
        await self._round_trip()
        return self._tables.retention_policies.get(workspace_id)

    async def save(self, policy: RetentionPolicy) -> None:
        await self._round_trip()
        self._tables.retention_policies[policy.workspace_id] = policy

    async def due(self, workspace_id: UUID, kept: KeptClass, *, keep_ms: int, limit: int) -> Due:
        await self._round_trip()
        tables = self._tables
        old = _old(tables, workspace_id, kept, tables.now() - keep_ms)[:limit]
        charged = sum(tables.metered(row.id) for _, _, row in old if isinstance(row, Event))
        oldest_at = min((at for at, _, _ in old), default=None)
        return Due(len(old), sum(size for _, size, _ in old), oldest_at, charged, len(old) >= limit)

    async def drop(self, kept: KeptClass, plans: Mapping[PlanTier, int], *, limit: int) -> int:
        await self._round_trip()
        tables, dropped = self._tables, 0
        for workspace in list(tables.workspaces.values()):
            policy = tables.retention_policies.get(workspace.id)
            days = None if policy is None else policy.of(kept)
            bounds = [] if days is None else [days * DAY_MS]
            bound = plans.get(tables.tenants[workspace.tenant_id].plan_tier)
            bounds += [] if bound is None else [bound]
            if bounds:
                old = _old(tables, workspace.id, kept, tables.now() - min(bounds))[: limit - dropped]
                for _, _, row in old:
                    _drop(tables, kept, row)
                dropped += len(old)
        return dropped


def _old(tables: Tables, workspace_id: UUID, kept: KeptClass, since: int) -> Old:
    found: Old = []
    match kept:
        case KeptClass.EVENTS:
            found += [
                (row.created_at, _size(row), row)
                for row in tables.events.values()
                if row.workspace_id == workspace_id and _ended_before(row, since)
            ]
        case KeptClass.TRANSCRIPTS:
            found += [
                (one.began_at, one.bytes, one)
                for one in tables.transcripts.values()
                if one.workspace_id == workspace_id and one.began_at < since
            ]
        case KeptClass.FILES:
            found += [
                (left.created_at, left.size, left)
                for left in tables.artefacts.values()
                if left.workspace_id == workspace_id and left.created_at < since
            ]
            found += [
                (brought.created_at, brought.size, brought)
                for brought in tables.event_files.values()
                if brought.workspace_id == workspace_id
                and brought.created_at < since
                and (event := tables.events.get(brought.event_id)) is not None
                and event.completed_at is not None
            ]
        case KeptClass.DELIVERIES:
            found += [
                (came.at, came.body_bytes, came)
                for came in tables.deliveries.values()
                if came.workspace_id == workspace_id and came.at < since
            ]
    return sorted(found, key=lambda one: one[0])


def _ended_before(event: Event, since: int) -> bool:
    return event.completed_at is not None and max(event.created_at, event.completed_at) < since


def _size(event: Event) -> int:
    documents = [to_json(one) for one in (event.evidence, event.checkpoint) if one is not None]
    return sum(map(len, (event.request_json, event.response_text or "", *documents)))


def _drop(tables: Tables, kept: KeptClass, row: Any) -> None:
    match kept:
        case KeptClass.EVENTS:
            _drop_event(tables, row.id)
        case KeptClass.TRANSCRIPTS:
            key = row.zombie_id, row.event_id, row.attempt
            del tables.transcripts[key]
            tables.transcript_entries.pop(key, None)
        case KeptClass.FILES:
            if isinstance(row, Artefact):
                artefacts.let_go(tables, [row])
            else:
                event_files.let_go(tables, [row])
        case KeptClass.DELIVERIES:
            delete_delivery(tables, row.id)


def _drop_event(tables: Tables, event_id: UUID) -> None:
    del tables.events[event_id]
    for followed in (tables.waits_at, tables.lease_counts, tables.unsorted_failures, tables.failure_of):
        followed.pop(event_id, None)
    tables.scores.pop(event_id, None)
    tables.leases = {i: row for i, row in tables.leases.items() if row.event_id != event_id}
    tables.gates = {i: row for i, row in tables.gates.items() if row.event_id != event_id}
    artefacts.let_go(tables, [row for row in tables.artefacts.values() if row.event_id == event_id])
    event_files.let_go(tables, [one for one in tables.event_files.values() if one.event_id == event_id])
    tables.transcripts = {key: row for key, row in tables.transcripts.items() if key[1] != event_id}
    tables.transcript_entries = {
        key: rows for key, rows in tables.transcript_entries.items() if key[1] != event_id
    }
    tables.workspace_starts = {key: row for key, row in tables.workspace_starts.items() if key[1] != event_id}
