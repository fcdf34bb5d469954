"""Agents in memory."""

from collections.abc import Collection, Mapping, Sequence
from uuid import UUID

from msgspec.structs import replace

from sexton_storage.decisions.kill import KillRows, kill
from sexton_storage.decisions.rows import Head
from sexton_storage.documents import copied
from sexton_storage.errors import Conflict, NameTaken
from sexton_storage.globs import matches
from sexton_storage.memory.apply_improvement import check_pending, put_decision
from sexton_storage.memory.base import MemoryStore
from sexton_storage.memory.chats import put_notice
from sexton_storage.memory.crons import keep_crons
from sexton_storage.memory.purge import purge
from sexton_storage.paging import Page
from sexton_storage.records.canaries import ON_TRIAL, Tallies, Tally, Trial, counts_in_trial
from sexton_storage.records.chats import ChatNotice
from sexton_storage.records.configs import ConfigStatus, ConfigVersion
from sexton_storage.records.events import Event, EventStatus
from sexton_storage.records.frames import NewFrame
from sexton_storage.records.grants import GrantStatus
from sexton_storage.records.improvement import Proposal
from sexton_storage.records.zombies import (
    AgentStanding,
    AgentSummary,
    SeenAgent,
    Zombie,
    ZombieStatus,
    summary_of,
)
from sexton_storage.rules import ACTIVE_CONFIG, SUPERSEDED_CONFIG
from sexton_storage.terms import CONFIGS_KEPT


class MemoryZombies(MemoryStore):
    async def create(self, zombie: Zombie, config: ConfigVersion) -> None:
        await self._round_trip()
        self._check_name(zombie)
        self._tables.heads[zombie.id] = Head(zombie.id)
        self._put_config(config)
        self._put(zombie)

    def _check_name(self, zombie: Zombie) -> None:
        for other in self._tables.zombies.values():
            same = (other.workspace_id, other.name) == (zombie.workspace_id, zombie.name)
            if same and other.id != zombie.id:
                raise NameTaken(zombie.name)

    def _put(self, zombie: Zombie) -> None:
        compiled = self._tables.configs[zombie.config_version_id].compiled
        self._tables.zombies[zombie.id] = agent = replace(zombie, compiled=compiled)
        keep_crons(self._tables, agent)

    def _put_config(self, config: ConfigVersion) -> None:
        self._check_revision(config)
        for other in list(self._tables.configs.values()):
            if other.zombie_id == config.zombie_id and other.status == ACTIVE_CONFIG:
                self._tables.configs[other.id] = replace(other, status=SUPERSEDED_CONFIG)
        active = replace(config, status=ACTIVE_CONFIG, compiled=copied(config.compiled))
        self._tables.configs[config.id] = active
        self._drop_old(config)

    def _check_revision(self, config: ConfigVersion) -> None:
        for other in self._tables.configs.values():
            same = (other.zombie_id, other.revision) == (config.zombie_id, config.revision)
            if same and other.id != config.id:
                raise Conflict(f"revision {config.revision} of agent {config.zombie_id} is taken")

    def _drop_old(self, newest: ConfigVersion) -> None:
        for other in list(self._tables.configs.values()):
            old = other.zombie_id == newest.zombie_id and other.revision <= newest.revision - CONFIGS_KEPT
            if old and other.status is not ACTIVE_CONFIG:
                del self._tables.configs[other.id]

    async def load(self, zombie_id: UUID) -> Zombie | None:
        await self._round_trip()
        return self._tables.zombies.get(zombie_id)

    async def load_with_pause(
        self, zombie_id: UUID, known: Zombie | None = None
    ) -> tuple[Zombie, bool] | None:
        del known
        await self._round_trip()
        zombie = self._tables.zombies.get(zombie_id)
        if zombie is None:
            return None
        workspace = self._tables.workspaces.get(zombie.workspace_id)
        return zombie, workspace is None or workspace.paused

    async def standing(self, zombie_id: UUID) -> AgentStanding | None:
        await self._round_trip()
        zombie = self._tables.zombies.get(zombie_id)
        tenant = None if zombie is None else self._tables.tenants.get(zombie.tenant_id)
        if zombie is None or tenant is None:
            return None
        return AgentStanding(zombie.workspace_id, zombie.tenant_id, tenant.plan_tier, zombie.status)

    async def load_many(self, zombie_ids: Sequence[UUID]) -> Sequence[Zombie]:
        if not zombie_ids:
            return ()
        await self._round_trip()
        kept = self._tables.zombies
        return [kept[one] for one in zombie_ids if one in kept]

    async def names(self, zombie_ids: Collection[UUID]) -> Mapping[UUID, str]:
        if not zombie_ids:
            return {}
        await self._round_trip()
        kept = self._tables.zombies
        return {one: kept[one].name for one in zombie_ids if one in kept}

    async def look(self, zombie_ids: Collection[UUID]) -> Mapping[UUID, SeenAgent]:
        await self._round_trip()
        agents, workspaces = self._tables.zombies, self._tables.workspaces
        known = [agents[one] for one in zombie_ids if one in agents]
        return {one.id: SeenAgent(one.version, workspaces[one.workspace_id].paused) for one in known}

    async def load_config(self, config_version_id: UUID) -> ConfigVersion | None:
        await self._round_trip()
        return self._tables.configs.get(config_version_id)

    async def load_version(self, zombie_id: UUID, revision: int) -> ConfigVersion | None:
        await self._round_trip()
        wanted = (zombie_id, revision)
        return next((c for c in self._tables.configs.values() if (c.zombie_id, c.revision) == wanted), None)

    async def trials(self, *, after: UUID | None, limit: int) -> Sequence[Trial]:
        await self._round_trip()
        found = [
            Trial(zombie.id, UUID(zombie.canary["id"]))
            for zombie in self._tables.zombies.values()
            if zombie.canary.get("status") == ON_TRIAL and (after is None or zombie.id > after)
        ]
        return sorted(found, key=lambda trial: trial.zombie_id)[:limit]

    async def tallies(self, zombie_id: UUID, trial_id: UUID) -> Tallies:
        await self._round_trip()
        runs = [
            event
            for event in self._tables.events.values()
            if (event.zombie_id, event.trial_id) == (zombie_id, trial_id) and counts_in_trial(event)
        ]
        return Tallies(
            self._tally([event for event in runs if event.asked_version is not None]),
            self._tally([event for event in runs if event.asked_version is None]),
        )

    def _tally(self, runs: Sequence[Event]) -> Tally:
        scores = [self._tables.scores[event.id].score for event in runs if event.id in self._tables.scores]
        return Tally(
            runs=len(runs),
            failed=sum(event.status is not EventStatus.PROCESSED for event in runs),
            charged_nanos=sum(event.charged_nanos for event in runs),
            scored=len(scores),
            score_sum=sum(scores),
        )

    async def list_configs(
        self, zombie_id: UUID, *, limit: int, before: Page | None = None
    ) -> Sequence[ConfigVersion]:
        await self._round_trip()
        found = [
            c
            for c in self._tables.configs.values()
            if c.zombie_id == zombie_id
            and (before is None or (c.created_at, c.id) < (before.created_at, before.id))
        ]
        return sorted(found, key=lambda c: (c.created_at, c.id), reverse=True)[:limit]

    async def newest_revision(self, zombie_id: UUID) -> int:
        await self._round_trip()
        mine = (c.revision for c in self._tables.configs.values() if c.zombie_id == zombie_id)
        return max(mine, default=0)

    async def keep_config(self, config: ConfigVersion, before: ConfigStatus | None) -> None:
        await self._round_trip()
        self._faults.may_conflict()
        if config.zombie_id not in self._tables.zombies:
            raise Conflict(f"agent {config.zombie_id} is gone")
        self._check_revision(config)
        old = self._tables.configs.get(config.id)
        if (None if old is None else old.status) != before:
            raise Conflict(f"version {config.id} is not {before} any more")
        self._tables.configs[config.id] = replace(
            config, compiled=copied(config.compiled), findings=copied(config.findings)
        )
        self._drop_old(config)

    async def list(
        self,
        workspace_id: UUID,
        *,
        limit: int,
        after: Page | None = None,
        status: ZombieStatus | None = None,
        name_glob: str | None = None,
        lending: GrantStatus | None = None,
    ) -> Sequence[Zombie]:
        await self._round_trip()
        found = [
            z
            for z in self._tables.zombies.values()
            if z.workspace_id == workspace_id
            and (status is None or z.status is status)
            and (name_glob is None or matches(name_glob, z.name))
            and (lending is None or any(one["status"] == lending for one in z.lending.values()))
            and (after is None or (z.created_at, z.id) < (after.created_at, after.id))
        ]
        return sorted(found, key=lambda z: (z.created_at, z.id), reverse=True)[:limit]

    async def summaries(
        self,
        workspace_id: UUID,
        *,
        limit: int,
        after: Page | None = None,
        status: ZombieStatus | None = None,
        name_glob: str | None = None,
    ) -> Sequence[AgentSummary]:
        found = await self.list(workspace_id, limit=limit, after=after, status=status, name_glob=name_glob)
        return [summary_of(zombie) for zombie in found]

    async def count(self, workspace_id: UUID) -> int:
        await self._round_trip()
        return sum(z.workspace_id == workspace_id for z in self._tables.zombies.values())

    async def save(
        self,
        zombie: Zombie,
        frames: Sequence[NewFrame],
        config: ConfigVersion | None = None,
        proposal: Proposal | None = None,
        notice: ChatNotice | None = None,
    ) -> None:
        await self._round_trip()
        if proposal is not None:
            check_pending(self._tables, proposal)
        self._replace(zombie, config)
        if proposal is not None:
            put_decision(self._tables, proposal)
        if notice is not None:
            put_notice(self._tables, notice)
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
        lease_ids = self._tables.put(kill(self._open_rows(zombie.id), frames, now))
        self._journal.announce_frames()
        return lease_ids

    def _open_rows(self, zombie_id: UUID) -> KillRows:
        tables = self._tables
        rows = [
            tables.event_row(event.id) for event in tables.events.values() if event.zombie_id == zombie_id
        ]
        return KillRows(
            zombie_id,
            events=[row for row in rows if row is not None],
            gates=[gate for gate in tables.gates.values() if gate.zombie_id == zombie_id],
            follow_ups=[f for f in tables.follow_ups.values() if f.zombie_id == zombie_id],
            lease=tables.live_lease(zombie_id),
        )

    async def delete(self, zombie_id: UUID) -> bool:
        await self._round_trip()
        return purge(self._tables, zombie_id)

    async def spend(self, zombie_id: UUID, now: int) -> tuple[int, int]:
        await self._round_trip()
        spent = self._tables.spent(zombie_id, now)
        return spent.day, spent.month
