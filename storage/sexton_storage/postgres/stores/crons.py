"""Cron triggers in PostgreSQL."""

from collections.abc import Sequence
from uuid import UUID

from sexton_storage.documents import storable
from sexton_storage.postgres.connections.connection import Connection
from sexton_storage.postgres.sql.rows import Rows
from sexton_storage.postgres.stores.base import PostgresStore
from sexton_storage.records.crons import CronEntry, Fired, ScheduleNote
from sexton_storage.records.events import EventStatus

CRONS = Rows(CronEntry)
NOTES = Rows(ScheduleNote)
_ENTRY = f"SELECT {CRONS.columns()} FROM cron_triggers"
_THIS = "zombie_id = $1 AND schedule = $2 AND timezone = $3"
# Two statements' worth of one index: NULLs stand first in it.
_DUE = f"""
(SELECT {CRONS.columns()} FROM cron_triggers WHERE next_at IS NULL LIMIT $2)
UNION ALL
(SELECT {CRONS.columns()} FROM cron_triggers WHERE next_at <= $1 ORDER BY next_at LIMIT $2)
LIMIT $2
"""
_LOCK_HEAD = "SELECT FROM agent_heads WHERE zombie_id = $1 FOR NO KEY UPDATE"
_PLAN = f"UPDATE cron_triggers SET next_at = $5 WHERE {_THIS} AND next_at IS NOT DISTINCT FROM $4"
# What stays keeps its plan: a change of the instructions or of the message moves no firing.
_KEEP = """
WITH wanted AS (
    SELECT DISTINCT t ->> 'schedule' AS schedule, coalesce(t ->> 'timezone', 'UTC') AS timezone
      FROM zombies z JOIN config_versions c ON c.id = z.config_version_id
     CROSS JOIN LATERAL json_array_elements(
           CASE json_typeof(c.compiled -> 'triggers') WHEN 'array' THEN c.compiled -> 'triggers'
                ELSE '[]'::json END) t
     WHERE z.id = $1 AND z.status = 'active' AND t ->> 'type' = 'cron'
), gone AS (
    DELETE FROM cron_triggers k
     WHERE k.zombie_id = $1 AND NOT EXISTS (
           SELECT FROM wanted w WHERE w.schedule = k.schedule AND w.timezone = k.timezone)
)
INSERT INTO cron_triggers (zombie_id, schedule, timezone, since)
SELECT $1, schedule, timezone, $2 FROM wanted
ON CONFLICT (zombie_id, schedule, timezone) DO NOTHING
"""


async def keep_crons(connection: Connection, zombie_id: UUID, since: int) -> None:
    """Have an entry for each cron trigger of an active agent, in the transaction that saved it."""
    await connection.execute(_KEEP, zombie_id, since)


_PAUSE = """
INSERT INTO schedule_notes (zombie_id, schedule, timezone, paused_at, paused_by) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (zombie_id, schedule, timezone) DO UPDATE
   SET paused_at = excluded.paused_at, paused_by = excluded.paused_by
"""
_MISSED = """
INSERT INTO schedule_notes AS n
       (zombie_id, schedule, timezone, missed, missed_from, missed_until, missed_why)
VALUES ($1, $2, $3, $4, $5, $6, $7)
ON CONFLICT (zombie_id, schedule, timezone) DO UPDATE
   SET missed = n.missed + excluded.missed, missed_from = excluded.missed_from,
       missed_until = excluded.missed_until, missed_why = excluded.missed_why
 WHERE coalesce(n.missed_until, -1) < excluded.missed_until
"""
_FIRED = """
SELECT id, status, created_at, request_json FROM events
 WHERE workspace_id = $1 AND actor = $2 AND zombie_id = $3 ORDER BY created_at DESC, arrival DESC LIMIT $4
"""


class PostgresCrons(PostgresStore):
    async def of_agents(self, zombie_ids: Sequence[UUID]) -> Sequence[CronEntry]:
        return CRONS.many(await self._rows(f"{_ENTRY} WHERE zombie_id = ANY($1)", list(zombie_ids)))

    async def notes(self, zombie_ids: Sequence[UUID]) -> Sequence[ScheduleNote]:
        query = f"SELECT {NOTES.columns()} FROM schedule_notes WHERE zombie_id = ANY($1)"
        return NOTES.many(await self._rows(query, list(zombie_ids)))

    async def pause(self, note: ScheduleNote) -> None:
        key = (note.zombie_id, note.schedule, note.timezone)
        by = None if note.paused_by is None else storable(note.paused_by)
        await self._database.change(lambda c: c.execute(_PAUSE, *key, note.paused_at, by))

    async def note_missed(self, note: ScheduleNote) -> None:
        key = (note.zombie_id, note.schedule, note.timezone)
        what = (note.missed, note.missed_from, note.missed_until, note.missed_why)
        await self._database.change(lambda c: c.execute(_MISSED, *key, *what))

    async def fired(
        self, workspace_id: UUID, zombie_id: UUID, schedule: str, *, limit: int
    ) -> Sequence[Fired]:
        rows = await self._rows(_FIRED, workspace_id, f"cron:{schedule}", zombie_id, limit)
        return [Fired(row[0], EventStatus(row[1]), row[2], row[3]) for row in rows]

    async def due(self, *, before: int, limit: int) -> Sequence[CronEntry]:
        return CRONS.many(await self._rows(_DUE, before, limit))

    async def next_at(self) -> int | None:
        earliest: int | None = await self._value("SELECT min(next_at) FROM cron_triggers")
        return earliest

    async def load(self, zombie_id: UUID, schedule: str, timezone: str) -> CronEntry | None:
        return CRONS.maybe(await self._row(f"{_ENTRY} WHERE {_THIS}", zombie_id, schedule, timezone))

    async def plan(self, seen: CronEntry, next_at: int) -> bool:
        async def work(connection: Connection) -> bool:
            # The agent's head first, as the journal has it: an event of this firing is before us or after us.
            await connection.execute(_LOCK_HEAD, seen.zombie_id)
            done = await connection.execute(
                _PLAN, seen.zombie_id, seen.schedule, seen.timezone, seen.next_at, next_at
            )
            return done.endswith(" 1")

        return await self._database.change(work)
