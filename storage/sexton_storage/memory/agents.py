"""Agents in memory."""

from collections.abc import Sequence
from uuid import UUID

from msgspec.structs import replace

from sexton_storage.documents import copied
from sexton_storage.globs import matches
from sexton_storage.memory.apply_events import end_as_cancelled, mark_cancelling
from sexton_storage.memory.base import MemoryStore
from sexton_storage.memory.tables import Head
from sexton_storage.records import ConfigVersion, EventStatus, GateStatus, Zombie, ZombieStatus
from sexton_storage.rules import ACTIVE_CONFIG, KILLED_BY, SUPERSEDED_CONFIG
from sexton_storage.stores import Conflict, NameTaken, Page
from sexton_storage.writes import NewFrame


class MemoryZombies(MemoryStore):
    async def create(self, zombie: Zombie, config: ConfigVersion) -> None:
        await self._round_trip()
        self._check_name(zombie)
        self._tables.heads[zombie.id] = Head()
        self._put_config(config)
        self._put(zombie)

    def _check_name(self, zombie: Zombie) -> None:
        for other in self._tables.zombies.values():
            same = (other.workspace_id, other.name) == (zombie.workspace_id, zombie.name)
            if same and other.id != zombie.id:
                raise NameTaken(zombie.name)

    def _put(self, zombie: Zombie) -> None:
        compiled = self._tables.configs[zombie.config_version_id].compiled
        self._tables.zombies[zombie.id] = replace(zombie, compiled=compiled)

    def _put_config(self, config: ConfigVersion) -> None:
        for other in list(self._tables.configs.values()):
            if other.zombie_id == config.zombie_id and other.status == ACTIVE_CONFIG:
                self._tables.configs[other.id] = replace(other, status=SUPERSEDED_CONFIG)
        active = replace(config, status=ACTIVE_CONFIG, compiled=copied(config.compiled))
        self._tables.configs[config.id] = active

    async def load(self, zombie_id: UUID) -> Zombie | None:
        await self._round_trip()
        return self._tables.zombies.get(zombie_id)

    async def load_config(self, config_version_id: UUID) -> ConfigVersion | None:
        await self._round_trip()
        return self._tables.configs.get(config_version_id)

    async def list(
        self,
        workspace_id: UUID,
        *,
        limit: int,
        after: Page | None = None,
        status: ZombieStatus | None = None,
        name_glob: str | None = None,
    ) -> Sequence[Zombie]:
        await self._round_trip()
        found = [
            z
            for z in self._tables.zombies.values()
            if z.workspace_id == workspace_id
            and (status is None or z.status is status)
            and (name_glob is None or matches(name_glob, z.name))
            and (after is None or (z.created_at, z.id) < (after.created_at, after.id))
        ]
        return sorted(found, key=lambda z: (z.created_at, z.id), reverse=True)[:limit]

    async def count(self, workspace_id: UUID) -> int:
        await self._round_trip()
        return sum(z.workspace_id == workspace_id for z in self._tables.zombies.values())

    async def save(
        self, zombie: Zombie, frames: Sequence[NewFrame], config: ConfigVersion | None = None
    ) -> None:
        await self._round_trip()
        self._replace(zombie, config)
        self._tables.append_frames(frames)
        self._journal.announce_frames()

    def _replace(self, zombie: Zombie, config: ConfigVersion | None) -> None:
        self._faults.may_conflict()
        old = self._tables.zombies.get(zombie.id)
        if old is None or old.version != zombie.version - 1:
            raise Conflict(f"agent {zombie.id} is not at version {zombie.version - 1}")
        self._check_name(zombie)
        if config is not None:
            self._put_config(config)
        self._put(replace(zombie, last_event_at=old.last_event_at, created_at=old.created_at))

    async def kill(self, zombie: Zombie, frames: Sequence[NewFrame], now: int) -> Sequence[UUID]:
        await self._round_trip()
        self._replace(replace(zombie, status=ZombieStatus.KILLED), None)
        self._end_events(zombie.id, now)
        self._end_gates(zombie.id, now)
        lease_id = mark_cancelling(self._tables, zombie.id)
        self._tables.append_frames(frames)
        self._journal.announce_frames()
        return () if lease_id is None else (lease_id,)

    def _end_events(self, zombie_id: UUID, now: int) -> None:
        for event in list(self._tables.events.values()):
            mine = event.zombie_id == zombie_id and event.completed_at is None
            if mine and event.status is not EventStatus.RUNNING:
                end_as_cancelled(self._tables, event, now)

    def _end_gates(self, zombie_id: UUID, now: int) -> None:
        for gate in list(self._tables.gates.values()):
            if gate.zombie_id == zombie_id and gate.status is GateStatus.PENDING:
                self._tables.gates[gate.id] = replace(
                    gate, status=GateStatus.AUTO_KILLED, updated_at=now, resolved_by=KILLED_BY
                )

    async def delete(self, zombie_id: UUID) -> bool:
        await self._round_trip()
        tables = self._tables
        if tables.zombies.pop(zombie_id, None) is None:
            return False
        del tables.heads[zombie_id]
        tables.frames.pop(zombie_id, None)
        tables.waiting.pop(zombie_id, None)
        events = {e.id for e in tables.events.values() if e.zombie_id == zombie_id}
        for event_id in events:
            del tables.events[event_id]
            tables.waits_at.pop(event_id, None)
            tables.lease_counts.pop(event_id, None)
        tables.leases = {i: row for i, row in tables.leases.items() if row.zombie_id != zombie_id}
        tables.gates = {i: row for i, row in tables.gates.items() if row.zombie_id != zombie_id}
        tables.configs = {i: row for i, row in tables.configs.items() if row.zombie_id != zombie_id}
        tables.dedup = {key: row for key, row in tables.dedup.items() if key[0] != zombie_id}
        tables.spend = {key: row for key, row in tables.spend.items() if key[0] != zombie_id}
        return True

    async def spend(self, zombie_id: UUID, now: int) -> tuple[int, int]:
        await self._round_trip()
        return self._tables.spent(zombie_id, now)
