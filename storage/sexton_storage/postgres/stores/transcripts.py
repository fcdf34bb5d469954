"""Transcripts in PostgreSQL."""

from collections.abc import Sequence
from uuid import UUID

from sexton_storage.decisions.transcripts import begun, take
from sexton_storage.periods import DAY_MS
from sexton_storage.postgres.connections.connection import Connection
from sexton_storage.postgres.sql.rows import Rows
from sexton_storage.postgres.sql.schema import LEASES
from sexton_storage.postgres.stores.agent_lock import Hold, lock_agent
from sexton_storage.postgres.stores.base import PostgresStore
from sexton_storage.records.leases import LeaseToken
from sexton_storage.records.transcripts import (
    WHOLE_BYTES,
    EntryQuery,
    NewEntry,
    Transcript,
    TranscriptBounds,
    TranscriptEntry,
)

TRANSCRIPTS = Rows(Transcript)
ENTRIES = Rows(TranscriptEntry)
_KEY = "zombie_id, event_id, attempt"
_OF = "zombie_id = $1 AND event_id = $2 AND attempt = $3"
_LEASE = f"SELECT {LEASES.columns()} FROM leases WHERE id = $1"
_KEPT = f"SELECT {TRANSCRIPTS.columns()} FROM transcripts WHERE {_OF}"
_KNOWN = f"SELECT number FROM transcript_entries WHERE {_OF} AND number = ANY($4)"
_SAVE = f"""
{TRANSCRIPTS.insert("transcripts")}
ON CONFLICT ({_KEY}) DO UPDATE SET entries = excluded.entries, bytes = excluded.bytes,
    last_number = excluded.last_number, is_cut = excluded.is_cut
"""
_ATTEMPTS = f"""
SELECT {TRANSCRIPTS.columns()} FROM transcripts WHERE zombie_id = $1 AND event_id = $2
 ORDER BY attempt DESC LIMIT $3
"""
# What is left out is not unpacked: the sizes stand beside the data.
_READ = f"""
SELECT {ENTRIES.columns("p")} FROM (
    SELECT e.*, sum(e.shown) OVER (ORDER BY e.attempt, e.number ROWS UNBOUNDED PRECEDING) AS upto FROM (
        SELECT {_KEY}, number, kind, at_ms, size,
               CASE WHEN size <= $6 THEN data ELSE '{{}}'::json END AS data,
               CASE WHEN size <= $6 THEN size ELSE 0 END AS shown
          FROM transcript_entries
         WHERE zombie_id = $1 AND event_id = $2 AND (attempt, number) > ($3, $4)
           AND ($5::int IS NULL OR attempt = $5) ORDER BY attempt, number LIMIT $7) e) p
 WHERE p.upto <= $8 OR p.upto = p.shown
 ORDER BY p.attempt, p.number
"""
_PRUNE_OLD = f"""
WITH gone AS (
    DELETE FROM transcripts WHERE ({_KEY}) IN (
        SELECT {_KEY} FROM transcripts WHERE began_at < sexton_now_ms() - $1 ORDER BY began_at LIMIT $2)
    RETURNING {_KEY}),
entries AS (
    DELETE FROM transcript_entries e USING gone g
     WHERE e.zombie_id = g.zombie_id AND e.event_id = g.event_id AND e.attempt = g.attempt)
SELECT count(*) FROM gone
"""
# Only of workspaces that are over their bound are the rows sorted.
_PRUNE_MANY = f"""
WITH full_ones AS (
    SELECT workspace_id FROM transcripts WHERE NOT is_removed
     GROUP BY workspace_id HAVING sum(bytes) > $1),
over AS (
    SELECT {_KEY} FROM (
        SELECT {_KEY}, sum(bytes) OVER (
                   PARTITION BY workspace_id ORDER BY began_at DESC, event_id DESC, attempt DESC) AS upto
          FROM transcripts WHERE NOT is_removed AND workspace_id IN (SELECT workspace_id FROM full_ones)) t
     WHERE upto > $1 LIMIT $2),
gone AS (
    UPDATE transcripts t SET is_removed = true FROM over o
     WHERE t.zombie_id = o.zombie_id AND t.event_id = o.event_id AND t.attempt = o.attempt
    RETURNING t.zombie_id, t.event_id, t.attempt),
entries AS (
    DELETE FROM transcript_entries e USING gone g
     WHERE e.zombie_id = g.zombie_id AND e.event_id = g.event_id AND e.attempt = g.attempt)
SELECT count(*) FROM gone
"""
_ANY_SIZE = 2**31 - 1


class PostgresTranscripts(PostgresStore):
    async def append(
        self, zombie_id: UUID, held: LeaseToken, entries: Sequence[NewEntry], bounds: TranscriptBounds
    ) -> Transcript | None:
        async def work(connection: Connection) -> Transcript | None:
            if await lock_agent(connection, zombie_id, held) is not Hold.HELD:
                return None
            lease = LEASES.maybe(await connection.fetchrow(_LEASE, held.lease_id))
            if lease is None:
                return None
            fresh = begun(lease)
            key = (zombie_id, fresh.event_id, fresh.attempt)
            kept = TRANSCRIPTS.maybe(await connection.fetchrow(_KEPT, *key)) or fresh
            numbers = [entry.number for entry in entries]
            known = {row[0] for row in await connection.fetch(_KNOWN, *key, numbers)}
            now = await connection.fetchval("SELECT sexton_now_ms()")
            taken = take(kept, known, entries, bounds, now)
            await connection.execute(_SAVE, *TRANSCRIPTS.values(taken.transcript))
            if taken.entries:
                insert = ENTRIES.insert_many("transcript_entries")
                await connection.execute(insert, *ENTRIES.arrays(taken.entries))
            return taken.transcript

        return await self._database.change(work)

    async def attempts(self, zombie_id: UUID, event_id: UUID, *, limit: int) -> Sequence[Transcript]:
        rows = await self._rows(_ATTEMPTS, zombie_id, event_id, limit)
        return TRANSCRIPTS.many(rows)[::-1]

    async def read(self, zombie_id: UUID, event_id: UUID, query: EntryQuery) -> Sequence[TranscriptEntry]:
        after, longest = query.after, _ANY_SIZE if query.whole else WHOLE_BYTES
        return ENTRIES.many(
            await self._rows(
                _READ,
                zombie_id,
                event_id,
                after.attempt,
                after.number,
                query.attempt,
                longest,
                query.limit,
                query.max_bytes,
            )
        )

    async def prune(self, bounds: TranscriptBounds, *, limit: int) -> int:
        # Deleting what is past keeping may be done twice: no mark is needed.
        pruned: int = await self._value(_PRUNE_OLD, bounds.days * DAY_MS, limit)
        if pruned < limit:
            pruned += await self._value(_PRUNE_MANY, bounds.workspace_bytes, limit - pruned)
        return pruned
