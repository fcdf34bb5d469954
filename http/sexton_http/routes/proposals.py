"""Proposals: what an agent, or a person, would change in the agent's files, and what people decide."""

from typing import Annotated
from uuid import UUID

import msgspec

from sexton_actors.proposal.drafts import RATIONALE_CHARS, TITLE_CHARS, Draft
from sexton_actors.proposal.transitions import REASON_CHARS
from sexton_actors.protocol.zombie import ApproveProposal, Decided, Propose, RejectProposal
from sexton_actors.refusal import Refusal
from sexton_http.answers import Problem
from sexton_http.bodies.cursors import Place, decode, encode, fingerprint
from sexton_http.bodies.shapes import Body, Cursor, Query, Shape
from sexton_http.gateway.audit_entries import ask
from sexton_http.gateway.call import Call
from sexton_http.gateway.operations import MAX_FILES_BYTES, Creates, NoBody, NoQuery, operation
from sexton_http.identity.principals import may_grant
from sexton_http.routes.agents import AGENT, UNKNOWN_AGENT, require_agent
from sexton_http.routes.shared.agent_files import MARKDOWN_CHARS, NewUrls, bounded, new_urls
from sexton_http.routes.shared.plan_limits import FULL, leave_room
from sexton_storage.records.holdings import Holding
from sexton_storage.records.improvement import Proposal, ProposalStatus
from sexton_storage.records.users import Role

TAG = "Proposals"
PROPOSALS = AGENT + "/proposals"
ONE = PROPOSALS + "/{proposal_id}"
Markdown = Annotated[str, msgspec.Meta(min_length=1, max_length=MARKDOWN_CHARS)]


class ProposalDraft(Body):
    """A file that is left out stays as it is; one of the two is needed."""

    title: Annotated[str, msgspec.Meta(min_length=1, max_length=TITLE_CHARS)]
    rationale: Annotated[str, msgspec.Meta(max_length=RATIONALE_CHARS)]
    source_markdown: Markdown | None = None
    trigger_markdown: Markdown | None = None


class ProposalView(Shape):
    proposal_id: UUID
    agent_id: UUID
    title: str
    rationale: str
    status: ProposalStatus
    base_config_version_id: UUID
    config_version_id: UUID | None
    """What it became, when it was applied."""
    rejection_reason: str | None
    diff: str
    """Unified, from the base's files to the proposed ones."""
    created_by: str
    event_id: UUID | None
    """The event of the run that made the proposal."""
    created_at: int
    decided_at: int | None
    approved_at: int | None
    """When the proposal was applied; null unless it was."""
    decided_by: str | None


class ProposalPage(Shape):
    items: list[ProposalView]
    next_cursor: str | None


class ProposalQuery(Query):
    status: ProposalStatus | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=100)] = 20
    cursor: Cursor | None = None


class RejectionBody(Body):
    rejection_reason: Annotated[str, msgspec.Meta(min_length=1, max_length=REASON_CHARS)]
    """Told to the agent with its next lease."""


class ProposalApproved(Shape):
    agent_id: UUID
    proposal_id: UUID
    status: ProposalStatus
    config_version_id: UUID | None
    rejection_reason: str | None
    webhook_urls: NewUrls = msgspec.UNSET


class ProposalRejected(Shape):
    agent_id: UUID
    proposal_id: UUID
    status: ProposalStatus
    rejection_reason: str


@operation(
    "POST",
    PROPOSALS,
    tag=TAG,
    role=Role.OPERATOR,
    status=201,
    creates=Creates.ONCE,
    codes=(*UNKNOWN_AGENT, "UZ-ZMB-010", *FULL),
    max_body=MAX_FILES_BYTES,
)
async def create_proposal(call: Call[ProposalDraft, NoQuery]) -> ProposalView | Refusal:
    """Propose a change of an agent's files, on top of its active configuration."""
    agent_id, body = await require_agent(call), call.body
    await leave_room(call, Holding.PROPOSALS)
    message = Propose(draft_of(body), call.member.by)
    match await ask(call.ctx.system, "zombie", agent_id, message):
        case Refusal() as refusal:
            return _as_here(refusal)
        case Proposal() as proposal:
            return _view(proposal)


@operation("GET", PROPOSALS, tag=TAG, codes=UNKNOWN_AGENT)
async def list_proposals(call: Call[NoBody, ProposalQuery]) -> ProposalPage:
    """List an agent's proposals, newest first."""
    query, agent_id = call.query, await require_agent(call)
    filters = fingerprint("proposals", agent_id, query.status)
    place = None if query.cursor is None else decode(query.cursor, filters)
    rows = await call.ctx.world.storage.improvement.list(
        agent_id,
        limit=query.limit + 1,
        before=None if place is None else place.page,
        status=query.status,
    )
    shown = rows[: query.limit]
    more = len(rows) > query.limit
    following = encode(Place(shown[-1].created_at, shown[-1].id, filters)) if more else None
    return ProposalPage([_view(proposal) for proposal in shown], following)


@operation("GET", ONE, tag=TAG, codes=UNKNOWN_AGENT)
async def get_proposal(call: Call[NoBody, NoQuery]) -> ProposalView:
    """Show one proposal with its diff."""
    agent_id, proposal_id = await require_agent(call), call.id("proposal_id")
    proposal = await call.ctx.world.storage.improvement.load(proposal_id)
    if proposal is None or proposal.zombie_id != agent_id:
        raise Problem("UZ-AGENT-001", f"the agent has no proposal {proposal_id}")
    return _view(proposal)


@operation(
    "POST",
    ONE + ":approve",
    tag=TAG,
    role=Role.OPERATOR,
    codes=(
        *UNKNOWN_AGENT,
        "UZ-AGENT-002",
        "UZ-HARNESS-004",
        "UZ-ZMB-006",
        "UZ-ZMB-010",
        *FULL,
        "UZ-ENTL-004",
    ),
)
async def approve_proposal(call: Call[NoBody, NoQuery]) -> ProposalApproved | Refusal:
    """Apply a proposal: its files become the active configuration.

    `CONFIG_CHANGED` when the configuration is not the one any more that it was based on; `REJECTED` when its
    files make no agent.
    """
    agent_id = await require_agent(call)
    message = ApproveProposal(call.id("proposal_id"), call.member.by, may_grant(call.member))
    match await ask(call.ctx.system, "zombie", agent_id, message):
        case Refusal() as refusal:
            return _as_here(refusal)
        case Decided(proposal=proposal, configured=configured):
            return ProposalApproved(
                agent_id=agent_id,
                proposal_id=proposal.id,
                status=proposal.status,
                config_version_id=proposal.config_version_id,
                rejection_reason=proposal.rejection_reason,
                webhook_urls=new_urls(call.ctx, configured),
            )


@operation("POST", ONE + ":reject", tag=TAG, role=Role.OPERATOR, codes=(*UNKNOWN_AGENT, "UZ-AGENT-002"))
async def reject_proposal(call: Call[RejectionBody, NoQuery]) -> ProposalRejected | Refusal:
    """Turn a proposal down; the agent is told why with its next lease."""
    agent_id, reason = await require_agent(call), call.body.rejection_reason
    message = RejectProposal(call.id("proposal_id"), reason, call.member.by)
    match await ask(call.ctx.system, "zombie", agent_id, message):
        case Refusal() as refusal:
            return _as_here(refusal)
        case Decided(proposal=proposal):
            return ProposalRejected(agent_id, proposal.id, proposal.status, reason)


def draft_of(body: ProposalDraft, pointer: str = "") -> Draft:
    """Raises Problem UZ-REQ-001 for a file that is too large, or none at all."""
    if body.source_markdown is None and body.trigger_markdown is None:
        detail = f"{pointer or '/'}: give source_markdown, trigger_markdown, or both"
        raise Problem("UZ-REQ-001", detail, facts={"pointer": pointer})
    bounded(f"{pointer}/source_markdown".lstrip("/"), body.source_markdown)
    bounded(f"{pointer}/trigger_markdown".lstrip("/"), body.trigger_markdown)
    return Draft(body.title, body.rationale, body.source_markdown, body.trigger_markdown)


def _as_here(refusal: Refusal) -> Refusal:
    """An agent that went away meanwhile is unknown here by this route's own code."""
    if refusal.code != "UZ-ZMB-009":
        return refusal
    return msgspec.structs.replace(refusal, code="UZ-AGENT-001")


def _view(proposal: Proposal) -> ProposalView:
    return ProposalView(
        proposal_id=proposal.id,
        agent_id=proposal.zombie_id,
        title=proposal.title,
        rationale=proposal.rationale,
        status=proposal.status,
        base_config_version_id=proposal.base_config_version_id,
        config_version_id=proposal.config_version_id,
        rejection_reason=proposal.rejection_reason,
        diff=proposal.diff,
        created_by=proposal.created_by,
        event_id=proposal.event_id,
        created_at=proposal.created_at,
        decided_at=proposal.decided_at,
        approved_at=proposal.decided_at if proposal.status is ProposalStatus.APPLIED else None,
        decided_by=proposal.decided_by,
    )
