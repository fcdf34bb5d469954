"""Groups of failures in memory."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from msgspec.structs import replace

from sexton_storage.documents import storable
from sexton_storage.memory.base import MemoryStore
from sexton_storage.memory.tables import Tables
from sexton_storage.paging import Page
from sexton_storage.records.failures import (
    HOUR_MS,
    Failure,
    FailureGroup,
    FailureStatus,
    Sorted,
    ends_of,
    status_of,
)
from sexton_storage.terms import HOURS_KEEP


class MemoryFailures(MemoryStore):
    async def unsorted(self, *, limit: int) -> Sequence[Failure]:
        await self._round_trip()
        found = [self._failure(event_id) for event_id in self._tables.unsorted_failures]
        return sorted(found, key=lambda failure: failure.at)[:limit]

    async def sort(self, failures: Sequence[Sorted]) -> int:
        await self._round_trip()
        mine = [one for one in failures if one.failure.event_id in self._tables.unsorted_failures]
        for one in mine:
            self._sort(one)
        return len(mine)

    async def load(self, failure_id: UUID) -> FailureGroup | None:
        await self._round_trip()
        return self._tables.failure_groups.get(failure_id)

    async def list(
        self,
        workspace_id: UUID,
        *,
        limit: int,
        now: int,
        before: Page | None = None,
        zombie_id: UUID | None = None,
        status: FailureStatus | None = None,
    ) -> Sequence[FailureGroup]:
        await self._round_trip()
        found = [
            group
            for group in self._tables.failure_groups.values()
            if group.workspace_id == workspace_id
            and (before is None or (group.last_seen_at, group.id) < (before.created_at, before.id))
            and zombie_id in {None, group.zombie_id}
            and status in {None, status_of(group, now)}
        ]
        return sorted(found, key=lambda group: (group.last_seen_at, group.id), reverse=True)[:limit]

    async def hours(
        self, failure_ids: Sequence[UUID], *, since_hour: int
    ) -> Mapping[UUID, Mapping[int, int]]:
        if not failure_ids:
            return {}
        await self._round_trip()
        kept = self._tables.failure_hours
        return {
            one: {hour: n for (group_id, hour), n in kept.items() if group_id == one and hour >= since_hour}
            for one in failure_ids
        }

    async def acknowledge(self, failure_id: UUID, by: str, now: int) -> FailureGroup | None:
        await self._round_trip()
        group = self._tables.failure_groups.get(failure_id)
        return None if group is None else self._put(replace(group, acknowledged_by=by, acknowledged_at=now))

    async def mute(self, failure_id: UUID, by: str, until: int | None) -> FailureGroup | None:
        await self._round_trip()
        group = self._tables.failure_groups.get(failure_id)
        return None if group is None else self._put(replace(group, muted_by=by, muted_until=until))

    def _put(self, group: FailureGroup) -> FailureGroup:
        self._tables.failure_groups[group.id] = group
        return group

    def _failure(self, event_id: UUID) -> Failure:
        event = self._tables.events[event_id]
        at = event.updated_at if event.completed_at is None else event.completed_at
        text = ends_of(event.response_text or "")
        return Failure(event.id, event.zombie_id, at, event.failure_label, event.error_code, text)

    def _sort(self, one: Sorted) -> None:
        tables, failure = self._tables, one.failure
        event = tables.events[failure.event_id]
        group = next(
            (
                found
                for found in tables.failure_groups.values()
                if (found.zombie_id, found.digest) == (failure.zombie_id, one.digest)
            ),
            FailureGroup(
                id=one.new_id,
                tenant_id=event.tenant_id,
                workspace_id=event.workspace_id,
                zombie_id=failure.zombie_id,
                digest=one.digest,
                failure_label=failure.failure_label,
                error_code=failure.error_code,
                message=storable(one.message),
                sample_event_id=failure.event_id,
                first_seen_at=failure.at,
                last_seen_at=failure.at,
                count=0,
            ),
        )
        is_latest = failure.at >= group.last_seen_at
        tables.failure_groups[group.id] = replace(
            group,
            count=group.count + 1,
            first_seen_at=min(group.first_seen_at, failure.at),
            last_seen_at=max(group.last_seen_at, failure.at),
            sample_event_id=failure.event_id if is_latest else group.sample_event_id,
        )
        tables.failure_of[failure.event_id] = group.id
        del tables.unsorted_failures[failure.event_id]
        hour = group.id, failure.at // HOUR_MS
        tables.failure_hours[hour] = tables.failure_hours.get(hour, 0) + 1


def sweep_failures(tables: Tables, now: int) -> int:
    """Delete the counts of hours that nobody asks for any more; how many."""
    before, since = len(tables.failure_hours), now // HOUR_MS - HOURS_KEEP
    tables.failure_hours = {key: count for key, count in tables.failure_hours.items() if key[1] >= since}
    return before - len(tables.failure_hours)
