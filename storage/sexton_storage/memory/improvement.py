"""Proposals and scores, in memory."""

from collections.abc import Sequence
from uuid import UUID

from msgspec.structs import replace

from sexton_storage.memory.apply_improvement import add_proposals, check_pending, put_decision
from sexton_storage.memory.base import MemoryStore
from sexton_storage.paging import Page
from sexton_storage.records.events import EventStatus
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


class MemoryImprovement(MemoryStore):
    async def propose(self, proposal: Proposal) -> bool:
        await self._round_trip()
        if proposal.zombie_id not in self._tables.zombies:
            return False
        add_proposals(self._tables, (proposal,))
        return True

    async def load(self, proposal_id: UUID) -> Proposal | None:
        await self._round_trip()
        return self._tables.proposals.get(proposal_id)

    async def list(
        self,
        zombie_id: UUID,
        *,
        limit: int,
        before: Page | None = None,
        status: ProposalStatus | None = None,
    ) -> Sequence[Proposal]:
        await self._round_trip()
        found = [
            p
            for p in self._tables.proposals.values()
            if p.zombie_id == zombie_id
            and (status is None or p.status is status)
            and (before is None or (p.created_at, p.id) < (before.created_at, before.id))
        ]
        return sorted(found, key=lambda p: (p.created_at, p.id), reverse=True)[:limit]

    async def decide(self, proposal: Proposal) -> None:
        await self._round_trip()
        self._faults.may_conflict()
        check_pending(self._tables, proposal)
        put_decision(self._tables, proposal)

    async def scores(self, zombie_id: UUID, *, limit: int, before: Page | None = None) -> Sequence[Score]:
        await self._round_trip()
        rows = self._scores(zombie_id)
        if before is not None:
            rows = [s for s in rows if (s.created_at, s.event_id) < (before.created_at, before.id)]
        return rows[:limit]

    def _scores(self, zombie_id: UUID) -> Sequence[Score]:
        rows = [s for s in self._tables.scores.values() if s.zombie_id == zombie_id]
        return sorted(rows, key=lambda s: (s.created_at, s.event_id), reverse=True)

    async def trust(self, zombie_id: UUID) -> Trust:
        await self._round_trip()
        head = self._tables.heads.get(zombie_id)
        decided = sorted(
            (
                (p.decided_at, p.id, p.status)
                for p in self._tables.proposals.values()
                if p.zombie_id == zombie_id and p.decided_at is not None
            ),
            reverse=True,
        )
        applied_at = next((at for at, _, status in decided if status is ProposalStatus.APPLIED), None)
        counted = [s for s in self._scores(zombie_id) if s.outcome is not EventStatus.CANCELLED]
        before = [] if applied_at is None else [s for s in counted if s.created_at <= applied_at]
        after = [] if applied_at is None else [s for s in counted if s.created_at > applied_at]
        return Trust(
            streak=0 if head is None else head.streak,
            last_decided=tuple(status for _, _, status in decided[:LAST_DECIDED]),
            before=_rate(before[:RATE_EVENTS]),
            after=_rate(after[-RATE_EVENTS:]),
        )

    async def lessons(self, zombie_id: UUID, workspace_id: UUID, lease_id: UUID) -> Lessons:
        await self._round_trip()
        unheard = sorted(
            (
                p
                for p in self._tables.proposals.values()
                if p.zombie_id == zombie_id and p.status is ProposalStatus.REJECTED and p.heard_at is None
            ),
            key=lambda p: (p.decided_at or 0, p.id),
        )[:REJECTIONS_TOLD]
        lease = self._tables.leases.get(lease_id)
        # A server that comes late does not take what a later lease was handed.
        for proposal in unheard if lease is not None and lease.ended_at is None else ():
            self._tables.proposals[proposal.id] = replace(proposal, handed_lease_id=lease_id)
        tokens = self._tables.context_tokens.get(workspace_id, DEFAULT_CONTEXT_TOKENS)
        return Lessons(tuple(unheard), tuple(self._scores(zombie_id)[: tokens // TOKENS_A_SCORE]), tokens)

    async def context_tokens(self, workspace_id: UUID) -> int | None:
        await self._round_trip()
        return self._tables.context_tokens.get(workspace_id)

    async def put_context_tokens(self, workspace_id: UUID, tokens: int, now: int) -> None:  # noqa: ARG002 - only a row says when
        await self._round_trip()
        self._tables.context_tokens[workspace_id] = tokens


def _rate(scores: Sequence[Score]) -> Rate:
    return Rate(len(scores), sum(s.outcome is EventStatus.PROCESSED for s in scores))
