"""Keeps the proposals and scores of runs that end in a batch."""

from collections.abc import Sequence
from uuid import UUID

import msgspec

from sexton_storage.postgres.connections.connection import Connection
from sexton_storage.postgres.sql.columns import Columns
from sexton_storage.postgres.sql.fragments import insert_from, opaque_to_planner
from sexton_storage.postgres.sql.schema import PROPOSALS, SCORES
from sexton_storage.records.improvement import DISPLACED_BY, DISPLACED_REASON, Proposal, Score
from sexton_storage.terms import PENDING_KEPT

_DISPLACE = f"""
UPDATE proposals p SET status = 'REJECTED', rejection_reason = $2, decided_by = $3, decided_at = $4
  FROM unnest($1::uuid[]) AS v(zombie_id)
 CROSS JOIN LATERAL (SELECT id FROM proposals WHERE zombie_id = v.zombie_id AND status = 'PENDING'
                      ORDER BY created_at DESC, id DESC OFFSET {PENDING_KEPT}) u
 WHERE p.id = u.id AND {opaque_to_planner("u.id", "p.status = 'PENDING'")}
"""
# Scores of the runs that end in a batch, and what those that were processed have heard.


class _Settled(msgspec.Struct, frozen=True, gc=False):
    """A score with the lease whose run it is of."""

    score: Score
    lease_id: UUID


_SCORES = Columns(_Settled, *(f"score.{name}" for name in SCORES.names), "lease_id")
_SCORE = f"""
WITH v AS (
    SELECT * FROM {_SCORES.rows}
), heard AS (
    UPDATE proposals p SET heard_at = v.score_created_at
      FROM v CROSS JOIN LATERAL (
        SELECT id FROM proposals
         WHERE zombie_id = v.score_zombie_id AND handed_lease_id = v.lease_id AND status = 'REJECTED'
           AND heard_at IS NULL OFFSET 0) u
     WHERE p.id = u.id AND v.score_outcome = 'processed'
)
{insert_from("scores", {name: f"score_{name}" for name in SCORES.names}, "v")}
ON CONFLICT (event_id) DO NOTHING
"""


PREPARE_SCORES = f"PREPARE sexton_scores ({', '.join(_SCORES.argument_types)}) AS {_SCORE};"


async def insert_proposals(connection: Connection, proposals: Sequence[Proposal]) -> None:
    """Keep new ones; of each agent the oldest that are too many are rejected. Their heads are locked."""
    await connection.executemany(PROPOSALS.insert("proposals"), [PROPOSALS.values(p) for p in proposals])
    zombies = list({p.zombie_id for p in proposals})
    now = max(p.created_at for p in proposals)
    await connection.execute(_DISPLACE, zombies, DISPLACED_REASON, DISPLACED_BY, now)


def keep_scores(scores: Sequence[tuple[Score, UUID]]) -> str:
    """Spell what keeps the scores of runs that end, each with the lease that ended."""
    settled = [_Settled(score, lease_id) for score, lease_id in scores]
    return f"EXECUTE sexton_scores ({_SCORES.constants(settled)})"
