"""Keeps proposals, and decisions on them."""

from collections.abc import Sequence
from uuid import UUID

from msgspec.structs import replace

from sexton_storage.documents import storable
from sexton_storage.errors import Conflict
from sexton_storage.memory.tables import Tables
from sexton_storage.records.improvement import DISPLACED_BY, DISPLACED_REASON, Proposal, ProposalStatus
from sexton_storage.terms import PENDING_KEPT


def add_proposals(tables: Tables, proposals: Sequence[Proposal]) -> None:
    """Keep new ones; of each agent the oldest that are too many are rejected."""
    for proposal in proposals:
        tables.proposals[proposal.id] = replace(
            proposal,
            title=storable(proposal.title),
            rationale=storable(proposal.rationale),
            diff=storable(proposal.diff),
            source_markdown=storable(proposal.source_markdown),
            trigger_markdown=storable(proposal.trigger_markdown),
        )
    now = max(proposal.created_at for proposal in proposals)
    for zombie_id in {proposal.zombie_id for proposal in proposals}:
        _displace(tables, zombie_id, now)


def _displace(tables: Tables, zombie_id: UUID, now: int) -> None:
    pending = sorted(
        (
            p
            for p in tables.proposals.values()
            if p.zombie_id == zombie_id and p.status is ProposalStatus.PENDING
        ),
        key=lambda p: (p.created_at, p.id),
        reverse=True,
    )
    for proposal in pending[PENDING_KEPT:]:
        tables.proposals[proposal.id] = replace(
            proposal,
            status=ProposalStatus.REJECTED,
            rejection_reason=DISPLACED_REASON,
            decided_by=DISPLACED_BY,
            decided_at=now,
        )


def check_pending(tables: Tables, proposal: Proposal) -> None:
    """Raises Conflict when it is not pending any more."""
    old = tables.proposals.get(proposal.id)
    if old is None or old.status is not ProposalStatus.PENDING:
        raise Conflict(f"proposal {proposal.id} is not pending")


def put_decision(tables: Tables, proposal: Proposal) -> None:
    """Keep the decision on one that is pending."""
    tables.proposals[proposal.id] = replace(
        tables.proposals[proposal.id],
        status=proposal.status,
        config_version_id=proposal.config_version_id,
        rejection_reason=storable(proposal.rejection_reason),
        decided_at=proposal.decided_at,
        decided_by=proposal.decided_by,
    )
