"""Proposals and scores in PostgreSQL."""

from collections.abc import Sequence
from uuid import UUID

from sexton_storage.errors import Conflict
from sexton_storage.paging import Page
from sexton_storage.postgres.connections.connection import Connection
from sexton_storage.postgres.journal.improvement import insert_proposals
from sexton_storage.postgres.sql.schema import PROPOSALS, SCORES
from sexton_storage.postgres.stores.base import Conditions, PostgresStore
from sexton_storage.records.improvement import (
    LAST_DECIDED,
    TOKENS_A_SCORE,
    Lessons,
    Proposal,
    ProposalStatus,
    Rate,
    Score,
    Trust,
)
from sexton_storage.terms import DEFAULT_CONTEXT_TOKENS, RATE_EVENTS, REJECTIONS_TOLD

_PROPOSAL = f"SELECT {PROPOSALS.columns()} FROM proposals"
_LOCK_HEAD = "SELECT zombie_id FROM agent_heads WHERE zombie_id = $1 FOR UPDATE"
_DECIDED = ("status", "config_version_id", "rejection_reason", "decided_at", "decided_by")
_DECIDE = (
    f"UPDATE proposals SET {', '.join(f'{name} = ${i}' for i, name in enumerate(_DECIDED, 2))}"
    " WHERE id = $1 AND status = 'PENDING' RETURNING id"
)
# Each part steps through an index from one place, so that neither grows with the history.
_TRUST = f"""
WITH last AS MATERIALIZED (
    SELECT (SELECT decided_at FROM proposals WHERE zombie_id = $1 AND status = 'APPLIED'
             ORDER BY decided_at DESC, id DESC LIMIT 1) AS at
)
SELECT coalesce((SELECT streak FROM agent_heads WHERE zombie_id = $1), 0),
       array(SELECT status FROM proposals WHERE zombie_id = $1 AND decided_at IS NOT NULL
              ORDER BY decided_at DESC, id DESC LIMIT {LAST_DECIDED}),
       b.runs, b.processed, a.runs, a.processed
  FROM last
 CROSS JOIN LATERAL (
    SELECT count(*) AS runs, count(*) FILTER (WHERE outcome = 'processed') AS processed
      FROM (SELECT outcome FROM scores
             WHERE zombie_id = $1 AND created_at <= last.at AND outcome <> 'cancelled'
             ORDER BY created_at DESC, event_id DESC LIMIT {RATE_EVENTS}) s) b
 CROSS JOIN LATERAL (
    SELECT count(*) AS runs, count(*) FILTER (WHERE outcome = 'processed') AS processed
      FROM (SELECT outcome FROM scores
             WHERE zombie_id = $1 AND created_at > last.at AND outcome <> 'cancelled'
             ORDER BY created_at, event_id LIMIT {RATE_EVENTS}) s) a
"""
_UNHEARD = f"""
{_PROPOSAL} WHERE zombie_id = $1 AND status = 'REJECTED' AND heard_at IS NULL
 ORDER BY decided_at, id LIMIT {REJECTIONS_TOLD}
"""
# A server that comes late does not take what a later lease was handed.
_HAND = """
UPDATE proposals SET handed_lease_id = $2
 WHERE id = ANY($1) AND EXISTS (SELECT FROM leases WHERE id = $2 AND ended_at IS NULL)
"""
_RECENT = f"""
SELECT {SCORES.columns()} FROM scores WHERE zombie_id = $1 ORDER BY created_at DESC, event_id DESC LIMIT $2
"""
_TOKENS = "SELECT context_tokens FROM workspace_scoring WHERE workspace_id = $1"
_PUT_TOKENS = """
INSERT INTO workspace_scoring (workspace_id, context_tokens, updated_at) VALUES ($1, $2, $3)
ON CONFLICT (workspace_id)
DO UPDATE SET context_tokens = excluded.context_tokens, updated_at = excluded.updated_at
"""


class PostgresImprovement(PostgresStore):
    async def propose(self, proposal: Proposal) -> bool:
        async def work(connection: Connection) -> bool:
            if await connection.fetchval(_LOCK_HEAD, proposal.zombie_id) is None:
                return False
            await insert_proposals(connection, (proposal,))
            return True

        return await self._database.change(work)

    async def load(self, proposal_id: UUID) -> Proposal | None:
        return PROPOSALS.maybe(await self._row(f"{_PROPOSAL} WHERE id = $1", proposal_id))

    async def list(
        self,
        zombie_id: UUID,
        *,
        limit: int,
        before: Page | None = None,
        status: ProposalStatus | None = None,
    ) -> Sequence[Proposal]:
        where = Conditions("zombie_id = $1", zombie_id)
        if before is not None:
            where.add("(created_at, id) < ({}, {})", before.created_at, before.id)
        if status is not None:
            where.add("status = {}", status)
        query = f"{_PROPOSAL} WHERE {where} ORDER BY created_at DESC, id DESC LIMIT {int(limit)}"
        return PROPOSALS.many(await self._rows(query, *where.args))

    async def decide(self, proposal: Proposal) -> None:
        await self._database.change(lambda c: decide_proposal(c, proposal))

    async def scores(self, zombie_id: UUID, *, limit: int, before: Page | None = None) -> Sequence[Score]:
        where = Conditions("zombie_id = $1", zombie_id)
        if before is not None:
            where.add("(created_at, event_id) < ({}, {})", before.created_at, before.id)
        newest = "ORDER BY created_at DESC, event_id DESC"
        query = f"SELECT {SCORES.columns()} FROM scores WHERE {where} {newest} LIMIT {int(limit)}"
        return SCORES.many(await self._rows(query, *where.args))

    async def trust(self, zombie_id: UUID) -> Trust:
        row = await self._row(_TRUST, zombie_id)
        if row is None:
            return Trust(0, (), Rate(0, 0), Rate(0, 0))
        decided = tuple(ProposalStatus(status) for status in row[1])
        return Trust(row[0], decided, Rate(row[2], row[3]), Rate(row[4], row[5]))

    async def lessons(self, zombie_id: UUID, workspace_id: UUID, lease_id: UUID) -> Lessons:
        async def work(connection: Connection) -> Lessons:
            tokens = await connection.fetchval(_TOKENS, workspace_id) or DEFAULT_CONTEXT_TOKENS
            rejections = PROPOSALS.many(await connection.fetch(_UNHEARD, zombie_id))
            recent = SCORES.many(await connection.fetch(_RECENT, zombie_id, tokens // TOKENS_A_SCORE))
            return Lessons(tuple(rejections), tuple(recent), tokens)

        lessons = await self._database.read(work)
        if lessons.rejections:
            ids = [proposal.id for proposal in lessons.rejections]
            await self._database.change(lambda c: c.execute(_HAND, ids, lease_id))
        return lessons

    async def context_tokens(self, workspace_id: UUID) -> int | None:
        found: int | None = await self._value(_TOKENS, workspace_id)
        return found

    async def put_context_tokens(self, workspace_id: UUID, tokens: int, now: int) -> None:
        await self._database.change(lambda c: c.execute(_PUT_TOKENS, workspace_id, tokens, now))


async def decide_proposal(connection: Connection, proposal: Proposal) -> None:
    """Raises Conflict when it is not pending any more."""
    values = dict(zip(PROPOSALS.names, PROPOSALS.values(proposal), strict=True))
    if await connection.fetchval(_DECIDE, proposal.id, *(values[name] for name in _DECIDED)) is None:
        raise Conflict(f"proposal {proposal.id} is not pending")
