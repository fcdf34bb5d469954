"""Makes a proposal of a draft, or says why it is none."""

from uuid import UUID

import msgspec

from sexton_actors.manifest.front_matter import MAX_FILE_BYTES
from sexton_actors.proposal.diff import diff_files
from sexton_actors.refusal import Refusal
from sexton_storage.records.configs import ConfigVersion
from sexton_storage.records.improvement import Proposal, ProposalStatus

TITLE_CHARS = 200
RATIONALE_CHARS = 8192
PROPOSALS_A_RUN = 8
BY_RUN = "run"


class Draft(msgspec.Struct, frozen=True):
    """A file that is None stays as it is; at least one is given."""

    title: str
    rationale: str
    source_markdown: str | None = None
    trigger_markdown: str | None = None


class Origin(msgspec.Struct, frozen=True):
    """Say whose proposal it is, and which event it comes from if a run makes it."""

    workspace_id: UUID
    tenant_id: UUID
    by: str
    event_id: UUID | None = None


def draft_fault(draft: Draft, pointer: str = "") -> Refusal | None:
    """None when it can be a proposal; ``pointer`` is where it stands in the body.

    >>> draft_fault(Draft("t", "r"), "/proposals/0").detail
    '/proposals/0: give source_markdown, trigger_markdown, or both.'
    """
    files = {"source_markdown": draft.source_markdown, "trigger_markdown": draft.trigger_markdown}
    if all(text is None for text in files.values()):
        return Refusal("UZ-REQ-001", f"{pointer or '/'}: give source_markdown, trigger_markdown, or both.")
    for name, text in files.items():
        if text is not None and not 1 <= len(text.encode("utf-8", "surrogatepass")) <= MAX_FILE_BYTES:
            return Refusal("UZ-REQ-001", f"{pointer}/{name}: between 1 and {MAX_FILE_BYTES} bytes.")
    return None


def proposed(draft: Draft, base: ConfigVersion, origin: Origin, proposal_id: UUID, now: int) -> Proposal:
    """A pending proposal on top of ``base``; the draft has no fault."""
    return Proposal(
        id=proposal_id,
        zombie_id=base.zombie_id,
        workspace_id=origin.workspace_id,
        tenant_id=origin.tenant_id,
        status=ProposalStatus.PENDING,
        title=draft.title,
        rationale=draft.rationale,
        diff=diff_files(_files(base), files_after(draft, base)),
        base_config_version_id=base.id,
        created_by=origin.by,
        created_at=now,
        source_markdown=draft.source_markdown,
        trigger_markdown=draft.trigger_markdown,
        event_id=origin.event_id,
    )


def files_after(draft: Draft | Proposal, base: ConfigVersion) -> tuple[str, str]:
    """The two files as they would be."""
    source, trigger = draft.source_markdown, draft.trigger_markdown
    return (
        base.source_markdown if source is None else source,
        base.trigger_markdown if trigger is None else trigger,
    )


def _files(base: ConfigVersion) -> tuple[str, str]:
    return base.source_markdown, base.trigger_markdown
