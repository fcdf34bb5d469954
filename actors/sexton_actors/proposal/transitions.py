"""How a proposal is decided: once, by one person, for good."""

from typing import assert_never
from uuid import UUID

from msgspec.structs import replace

from sexton_actors.refusal import Refusal
from sexton_storage.records.improvement import Proposal, ProposalStatus

REASON_CHARS = 4096
COMPILE_FAILED = "COMPILE_FAILED"


def reject(proposal: Proposal, reason: str, by: str, now: int) -> Proposal | Refusal:
    """The reason goes to the agent with its next lease."""
    return decided(proposal) or _decided(proposal, ProposalStatus.REJECTED, by, now, reason=reason)


def overtaken(proposal: Proposal, by: str, now: int) -> Proposal | Refusal:
    """Approved too late: the agent's configuration is not the one that it was based on."""
    return decided(proposal) or _decided(proposal, ProposalStatus.CONFIG_CHANGED, by, now)


def not_compiled(proposal: Proposal, detail: str, by: str, now: int) -> Proposal | Refusal:
    """Approved, but its files make no agent."""
    reason = f"{COMPILE_FAILED}: {detail}"[:REASON_CHARS]
    return decided(proposal) or _decided(proposal, ProposalStatus.REJECTED, by, now, reason=reason)


def apply(proposal: Proposal, config_version_id: UUID, by: str, now: int) -> Proposal | Refusal:
    """Approved; its files are the active configuration from the same commit on."""
    done = decided(proposal)
    return done or _decided(proposal, ProposalStatus.APPLIED, by, now, config_version_id=config_version_id)


def decided(proposal: Proposal) -> Refusal | None:
    """None while it is pending."""
    match proposal.status:
        case ProposalStatus.PENDING:
            return None
        case ProposalStatus.APPLIED | ProposalStatus.CONFIG_CHANGED | ProposalStatus.REJECTED:
            return already_decided(proposal)
        case _:
            assert_never(proposal.status)


def already_decided(proposal: Proposal) -> Refusal:
    """The answer to a second decider, with the first one's outcome."""
    facts = {
        "outcome": str(proposal.status),
        "decided_at": proposal.decided_at,
        "decided_by": proposal.decided_by,
    }
    return Refusal("UZ-AGENT-002", f"Proposal {proposal.id} is {proposal.status} already.", facts)


def _decided(
    proposal: Proposal,
    status: ProposalStatus,
    by: str,
    now: int,
    *,
    reason: str | None = None,
    config_version_id: UUID | None = None,
) -> Proposal:
    return replace(
        proposal,
        status=status,
        rejection_reason=reason,
        config_version_id=config_version_id,
        decided_by=by,
        decided_at=now,
    )
