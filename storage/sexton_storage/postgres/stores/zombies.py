"""Agents in PostgreSQL: the wide record, its configurations and its head."""

from collections.abc import Collection, Mapping, Sequence
from uuid import UUID

from msgspec.structs import replace

from sexton_storage.documents import from_json
from sexton_storage.errors import Conflict, NameTaken
from sexton_storage.globs import like_pattern
from sexton_storage.paging import Page
from sexton_storage.periods import day_of, month_of
from sexton_storage.postgres.connections.connection import Connection
from sexton_storage.postgres.connections.database import Database
from sexton_storage.postgres.journal.frames import NumberedFrames
from sexton_storage.postgres.journal.journal import PostgresJournal
from sexton_storage.postgres.sql.schema import CONFIGS, ZOMBIES
from sexton_storage.postgres.stores.base import Conditions, PostgresStore
from sexton_storage.postgres.stores.chats import put_notice
from sexton_storage.postgres.stores.crons import keep_crons
from sexton_storage.postgres.stores.follow_ups import drop_follow_ups
from sexton_storage.postgres.stores.improvement import decide_proposal
from sexton_storage.postgres.stores.purge import purge
from sexton_storage.records.canaries import Tallies, Tally, Trial
from sexton_storage.records.chats import ChatNotice
from sexton_storage.records.configs import ConfigStatus, ConfigVersion
from sexton_storage.records.frames import NewFrame
from sexton_storage.records.gates import GateStatus
from sexton_storage.records.grants import GrantStatus
from sexton_storage.records.improvement import Proposal
from sexton_storage.records.tenants import PlanTier
from sexton_storage.records.zombies import AgentStanding, AgentSummary, SeenAgent, Zombie, ZombieStatus
from sexton_storage.rules import ACTIVE_CONFIG, CANCELLED_LABEL, KILLED_BY, SUPERSEDED_CONFIG
from sexton_storage.streams import GateKey, cancelled_frame, closed_frame
from sexton_storage.terms import CONFIGS_KEPT, KILL_FRAMES_MAX

NAMES = {"zombies_name_taken": NameTaken, "config_versions_revision_taken": Conflict}
_OF_JOIN = {"compiled": "c.compiled", "last_event_at": "h.last_event_at"}
_COLUMNS = ", ".join(_OF_JOIN.get(name, f"z.{name}") for name in Zombie.__struct_fields__)
AGENT = f"""
SELECT {_COLUMNS}
  FROM zombies z JOIN config_versions c ON c.id = z.config_version_id JOIN agent_heads h ON h.zombie_id = z.id
"""
# A version never changes, and may be large: who has it is not sent it again.
_UNLESS_KNOWN = {**_OF_JOIN, "compiled": "CASE WHEN c.id IS DISTINCT FROM $2::uuid THEN c.compiled END"}
_WITH_PAUSE = f"""
SELECT {", ".join(_UNLESS_KNOWN.get(name, f"z.{name}") for name in Zombie.__struct_fields__)},
       coalesce(w.paused, true) AS paused
  FROM zombies z JOIN config_versions c ON c.id = z.config_version_id JOIN agent_heads h ON h.zombie_id = z.id
  LEFT JOIN workspaces w ON w.id = z.workspace_id
 WHERE z.id = $1
"""
_STANDING = """
SELECT z.workspace_id, z.tenant_id, t.plan_tier, z.status
  FROM zombies z JOIN tenants t ON t.id = z.tenant_id WHERE z.id = $1
"""
_LOOK = """
SELECT z.id, z.version, w.paused
  FROM zombies z JOIN workspaces w ON w.id = z.workspace_id WHERE z.id = ANY($1)
"""
# The whole configuration of an agent may be large, and a list shows its triggers.
_SUMMARY = """
SELECT z.id, z.name, z.status, z.required_tags,
       CASE json_typeof(c.compiled -> 'triggers') WHEN 'array' THEN c.compiled -> 'triggers' END,
       z.created_at, z.updated_at, h.last_event_at
  FROM zombies z JOIN config_versions c ON c.id = z.config_version_id JOIN agent_heads h ON h.zombie_id = z.id
"""
_NEW_HEAD = "INSERT INTO agent_heads (zombie_id, workspace_id, tenant_id, status) VALUES ($1, $2, $3, $4)"
_LOCK_HEAD = "SELECT live_lease_id FROM agent_heads WHERE zombie_id = $1 FOR UPDATE"
_UPDATED = tuple(
    n for n in ZOMBIES.names if n not in {"id", "workspace_id", "tenant_id", "created_at", "version"}
)
_SAVE = (
    f"UPDATE zombies SET version = $2, {', '.join(f'{n} = ${i}' for i, n in enumerate(_UPDATED, 3))}"
    " WHERE id = $1 AND version = $2 - 1 RETURNING id"
)
_SUPERSEDE = "UPDATE config_versions SET status = $2 WHERE zombie_id = $1 AND status = $3"
_PUT_CONFIG = (
    f"{CONFIGS.insert('config_versions')}"
    " ON CONFLICT (id) DO UPDATE SET status = excluded.status, compiled = excluded.compiled"
)
_COMPILED_CONFIG = """
UPDATE config_versions SET status = $3, compiled = $4, findings = $5
 WHERE id = $1 AND status = $2 RETURNING id
"""
_DROP_OLD_CONFIGS = "DELETE FROM config_versions WHERE zombie_id = $1 AND revision <= $2 AND status <> $3"
_CANCEL_EVENTS = """
UPDATE events
   SET status = 'cancelled', failure_label = $3, completed_at = $2, updated_at = $2, waiting_gate_id = NULL
 WHERE zombie_id = $1 AND completed_at IS NULL AND status <> 'running'
RETURNING id
"""
_KILL_GATES = """
UPDATE gates SET status = 'auto_killed', updated_at = $2, resolved_by = $3
 WHERE zombie_id = $1 AND status = 'pending'
RETURNING requested_at, id, event_id, action_id
"""
_MARK_LEASE = """
UPDATE leases SET status = 'cancelling', version = version + 1 WHERE id = $1 AND status = 'active'
"""
_TRIALS = """
SELECT id, (canary ->> 'id')::uuid FROM zombies
 WHERE (canary ->> 'status') = 'on_trial' AND id > $1 ORDER BY id LIMIT $2
"""
_TALLIES = """
SELECT r.candidate, count(*), count(*) FILTER (WHERE r.failed), coalesce(sum(r.charged_nanos), 0)::bigint,
       count(s.score), coalesce(sum(s.score), 0)
  FROM canary_runs r LEFT JOIN scores s ON s.event_id = r.event_id
 WHERE r.zombie_id = $1 AND r.trial_id = $2 GROUP BY r.candidate
"""
_BEFORE_ALL = UUID(int=0)
_NEWEST = "ORDER BY z.created_at DESC, z.id DESC"
_SPEND = """
SELECT coalesce(sum(nanos) FILTER (WHERE day = $2), 0)::bigint, coalesce(sum(nanos), 0)::bigint
  FROM spend WHERE zombie_id = $1 AND day >= $3 AND day < $4
"""


class PostgresZombies(PostgresStore):
    """Saves lock the agent's head first, as the journal's batches do."""

    def __init__(self, database: Database, journal: PostgresJournal) -> None:
        super().__init__(database)
        self._journal = journal

    async def create(self, zombie: Zombie, config: ConfigVersion) -> None:
        async def work(connection: Connection) -> None:
            await _put_config(connection, config)
            await connection.execute(ZOMBIES.insert("zombies"), *ZOMBIES.values(zombie))
            await connection.execute(
                _NEW_HEAD, zombie.id, zombie.workspace_id, zombie.tenant_id, zombie.status
            )
            await keep_crons(connection, zombie.id, zombie.updated_at)

        await self._database.change(work, NAMES)

    async def load(self, zombie_id: UUID) -> Zombie | None:
        return ZOMBIES.maybe(await self._row(f"{AGENT} WHERE z.id = $1", zombie_id))

    async def load_with_pause(
        self, zombie_id: UUID, known: Zombie | None = None
    ) -> tuple[Zombie, bool] | None:
        version_id = None if known is None else known.config_version_id
        row = await self._row(_WITH_PAUSE, zombie_id, version_id)
        if row is None:
            return None
        zombie = ZOMBIES.record(row)
        if known is not None and zombie.config_version_id == known.config_version_id:
            zombie = replace(zombie, compiled=known.compiled)
        return zombie, row["paused"]

    async def standing(self, zombie_id: UUID) -> AgentStanding | None:
        row = await self._row(_STANDING, zombie_id)
        if row is None:
            return None
        workspace_id, tenant_id, plan_tier, status = row.values()
        return AgentStanding(workspace_id, tenant_id, PlanTier(plan_tier), ZombieStatus(status))

    async def load_many(self, zombie_ids: Sequence[UUID]) -> Sequence[Zombie]:
        if not zombie_ids:
            return ()
        rows = await self._rows(f"{AGENT} WHERE z.id = ANY($1)", list(zombie_ids))
        found = {zombie.id: zombie for zombie in ZOMBIES.many(rows)}
        return [found[one] for one in zombie_ids if one in found]

    async def names(self, zombie_ids: Collection[UUID]) -> Mapping[UUID, str]:
        if not zombie_ids:
            return {}
        query = "SELECT id, name FROM zombies WHERE id = ANY($1)"
        return {row[0]: row[1] for row in await self._rows(query, list(zombie_ids))}

    async def look(self, zombie_ids: Collection[UUID]) -> Mapping[UUID, SeenAgent]:
        return {row[0]: SeenAgent(row[1], row[2]) for row in await self._rows(_LOOK, list(zombie_ids))}

    async def load_config(self, config_version_id: UUID) -> ConfigVersion | None:
        query = f"SELECT {CONFIGS.columns()} FROM config_versions WHERE id = $1"
        return CONFIGS.maybe(await self._row(query, config_version_id))

    async def load_version(self, zombie_id: UUID, revision: int) -> ConfigVersion | None:
        query = f"SELECT {CONFIGS.columns()} FROM config_versions WHERE zombie_id = $1 AND revision = $2"
        return CONFIGS.maybe(await self._row(query, zombie_id, revision))

    async def list_configs(
        self, zombie_id: UUID, *, limit: int, before: Page | None = None
    ) -> Sequence[ConfigVersion]:
        where = Conditions("zombie_id = $1", zombie_id)
        if before is not None:
            where.add("(created_at, id) < ({}, {})", before.created_at, before.id)
        newest = f"ORDER BY created_at DESC, id DESC LIMIT {int(limit)}"
        query = f"SELECT {CONFIGS.columns()} FROM config_versions WHERE {where} {newest}"
        return CONFIGS.many(await self._rows(query, *where.args))

    async def newest_revision(self, zombie_id: UUID) -> int:
        query = "SELECT coalesce(max(revision), 0) FROM config_versions WHERE zombie_id = $1"
        newest: int = await self._value(query, zombie_id)
        return newest

    async def keep_config(self, config: ConfigVersion, before: ConfigStatus | None) -> None:
        async def work(connection: Connection) -> None:
            if await connection.fetchrow(_LOCK_HEAD, config.zombie_id) is None:
                raise Conflict(f"agent {config.zombie_id} is gone")
            values = dict(zip(CONFIGS.names, CONFIGS.values(config), strict=True))
            if before is None:
                await connection.execute(CONFIGS.insert("config_versions"), *values.values())
                await _drop_old_configs(connection, config)
                return
            changed = (config.status, values["compiled"], values["findings"])
            if await connection.fetchval(_COMPILED_CONFIG, config.id, before, *changed) is None:
                raise Conflict(f"version {config.id} is not {before} any more")

        await self._database.change(work, NAMES)

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
        where = _listed(workspace_id, after, status, name_glob)
        if lending is not None:
            where.add("EXISTS (SELECT FROM json_each(z.lending) g WHERE g.value ->> 'status' = {})", lending)
        query = f"{AGENT} WHERE {where} {_NEWEST} LIMIT {int(limit)}"
        return ZOMBIES.many(await self._rows(query, *where.args))

    async def summaries(
        self,
        workspace_id: UUID,
        *,
        limit: int,
        after: Page | None = None,
        status: ZombieStatus | None = None,
        name_glob: str | None = None,
    ) -> Sequence[AgentSummary]:
        where = _listed(workspace_id, after, status, name_glob)
        query = f"{_SUMMARY} WHERE {where} {_NEWEST} LIMIT {int(limit)}"
        return [
            AgentSummary(
                id=row[0],
                name=row[1],
                status=ZombieStatus(row[2]),
                required_tags=tuple(row[3]),
                triggers=() if row[4] is None else from_json(row[4]),
                created_at=row[5],
                updated_at=row[6],
                last_event_at=row[7],
            )
            for row in await self._rows(query, *where.args)
        ]

    async def count(self, workspace_id: UUID) -> int:
        found: int = await self._value("SELECT count(*) FROM zombies WHERE workspace_id = $1", workspace_id)
        return found

    async def save(
        self,
        zombie: Zombie,
        frames: Sequence[NewFrame],
        config: ConfigVersion | None = None,
        proposal: Proposal | None = None,
        notice: ChatNotice | None = None,
    ) -> None:
        async def work(connection: Connection) -> Sequence[tuple[UUID, int]]:
            await connection.fetchval(_LOCK_HEAD, zombie.id)
            if config is not None:
                await _put_config(connection, config)
            await _save(connection, zombie)
            if proposal is not None:
                await decide_proposal(connection, proposal)
            if notice is not None:
                await put_notice(connection, notice)
            return await _stream(connection, frames)

        self._journal.announce(await self._database.change(work, NAMES))

    async def kill(self, zombie: Zombie, frames: Sequence[NewFrame], now: int) -> Sequence[UUID]:
        killed = replace(zombie, status=ZombieStatus.KILLED)

        async def work(connection: Connection) -> tuple[UUID | None, Sequence[tuple[UUID, int]]]:
            lease_id = await connection.fetchval(_LOCK_HEAD, zombie.id)
            await _save(connection, killed)
            ends = await _end_all(connection, zombie.id, now)
            await drop_follow_ups(connection, zombie.id, now)
            await connection.execute(_MARK_LEASE, lease_id)
            return lease_id, await _stream(connection, (*ends, *frames))

        # An agent may have a long queue, all of which ends here.
        lease_id, news = await self._database.change(work, NAMES, long=True)
        self._journal.announce(news)
        return () if lease_id is None else (lease_id,)

    async def delete(self, zombie_id: UUID) -> bool:
        return await purge(self._database, zombie_id)

    async def trials(self, *, after: UUID | None, limit: int) -> Sequence[Trial]:
        rows = await self._rows(_TRIALS, after or _BEFORE_ALL, limit)
        return [Trial(row[0], row[1]) for row in rows]

    async def tallies(self, zombie_id: UUID, trial_id: UUID) -> Tallies:
        rows = await self._rows(_TALLIES, zombie_id, trial_id)
        sides = {row[0]: Tally(*tuple(row)[1:]) for row in rows}
        return Tallies(sides.get(True, Tally()), sides.get(False, Tally()))

    async def spend(self, zombie_id: UUID, now: int) -> tuple[int, int]:
        day = day_of(now)
        month = month_of(day)
        row = await self._row(_SPEND, zombie_id, day, month.first_day, month.end_day)
        return (0, 0) if row is None else (row[0], row[1])


def _listed(
    workspace_id: UUID, after: Page | None, status: ZombieStatus | None, name_glob: str | None
) -> Conditions:
    where = Conditions("z.workspace_id = $1", workspace_id)
    if after is not None:
        where.add("(z.created_at, z.id) < ({}, {})", after.created_at, after.id)
    if status is not None:
        # Spelled out: of a parameter the planner could not tell that the index of the few has it.
        where.add(f"z.status = '{status.value}'")
    if name_glob is not None:
        where.add("z.name LIKE {}", like_pattern(name_glob))
    return where


async def _put_config(connection: Connection, config: ConfigVersion) -> None:
    await connection.execute(_SUPERSEDE, config.zombie_id, SUPERSEDED_CONFIG, ACTIVE_CONFIG)
    await connection.execute(_PUT_CONFIG, *CONFIGS.values(replace(config, status=ACTIVE_CONFIG)))
    await _drop_old_configs(connection, config)


async def _drop_old_configs(connection: Connection, newest: ConfigVersion) -> None:
    oldest_kept = newest.revision - CONFIGS_KEPT
    if oldest_kept > 0:
        await connection.execute(_DROP_OLD_CONFIGS, newest.zombie_id, oldest_kept, ACTIVE_CONFIG)


async def _save(connection: Connection, zombie: Zombie) -> None:
    values = dict(zip(ZOMBIES.names, ZOMBIES.values(zombie), strict=True))
    saved = await connection.fetchval(_SAVE, zombie.id, zombie.version, *(values[n] for n in _UPDATED))
    if saved is None:
        raise Conflict(f"agent {zombie.id} is not at version {zombie.version - 1}")
    await connection.execute(
        "UPDATE agent_heads SET status = $2 WHERE zombie_id = $1", zombie.id, zombie.status
    )
    await keep_crons(connection, zombie.id, zombie.updated_at)


async def _end_all(connection: Connection, zombie_id: UUID, now: int) -> Sequence[NewFrame]:
    """End what waits, with the frames that say so."""
    rows = await connection.fetch(_KILL_GATES, zombie_id, now, KILLED_BY)
    gates = [GateKey(row[1], zombie_id, row[2], row[3]) for row in sorted(rows, key=tuple)]
    events = await connection.fetch(_CANCEL_EVENTS, zombie_id, now, CANCELLED_LABEL)
    newest = sorted(row[0] for row in events)[-KILL_FRAMES_MAX:]
    killed = GateStatus.AUTO_KILLED
    return [
        *(closed_frame(gate, killed, KILLED_BY, now) for gate in gates),
        *(cancelled_frame(zombie_id, event_id, now) for event_id in newest),
    ]


async def _stream(connection: Connection, frames: Sequence[NewFrame]) -> Sequence[tuple[UUID, int]]:
    numbered = NumberedFrames()
    numbered.add(0, frames)
    return await numbered.save(connection)
