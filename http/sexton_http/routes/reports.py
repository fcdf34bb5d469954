"""Takes a run's own word on how it ended."""

import hashlib
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Annotated, Any, ClassVar, TypeVar
from uuid import UUID

import msgspec

from sexton_actors.proposal.drafts import PROPOSALS_A_RUN, Draft
from sexton_actors.protocol.lease import Report, Reported
from sexton_actors.refusal import Refusal
from sexton_http.bodies.fencing_token import FENCED, HOT_S, TAG
from sexton_http.bodies.memories import (
    CATEGORY_CHARS,
    CONTENT_BYTES,
    DEFAULT_CATEGORY,
    KEY_CHARS,
    MAX_CHANGES,
    MemoryEntry,
    change_of,
)
from sexton_http.bodies.shapes import Body, Count, Shape
from sexton_http.bodies.token_counts import Fallbacks, tokens_of
from sexton_http.gateway.call import Call
from sexton_http.gateway.operations import MAX_BODY_BYTES, Auth, NoQuery, operation
from sexton_http.routes.proposals import ProposalDraft, draft_of
from sexton_storage.records.memories import MemoryChange

TEXT_CHARS = 1_000_000
CUT_MARK = "\n[truncated]"

P = TypeVar("P")
R = TypeVar("R")


class Telemetry(Shape):
    """Fields beside these are passed over."""

    wall_ms: Count = 0
    time_to_first_token_ms: Count | None = None


class Outcome(StrEnum):
    PROCESSED = "processed"
    AGENT_ERROR = "agent_error"
    CANCELLED = "cancelled"


class RunMemory(Body):
    """An entry as the memory route takes it; what is over a limit is refused by itself."""

    key: Annotated[str, msgspec.Meta(min_length=1)]
    content: Annotated[str, msgspec.Meta(min_length=1)] | None = None
    category: Annotated[str, msgspec.Meta(min_length=1)] = DEFAULT_CATEGORY
    delete: bool = False


class ReportBody(Body):
    mends_nul: ClassVar[bool] = True
    max_escapes: ClassVar[int] = MAX_BODY_BYTES
    """What a run leaves may be quotes from end to end; only runners send it, at the end of a run."""

    lease_id: UUID
    event_id: UUID
    fencing_token: Count
    outcome: Outcome
    input_tokens: Count
    cached_input_tokens: Count
    output_tokens: Count
    response_text: str | None = None
    """Cut to a million characters, with a mark at its end."""
    failure_reason: Annotated[str, msgspec.Meta(max_length=4096)] | None = None
    evidence: dict[str, Any] | None = None
    telemetry: Telemetry | None = None
    checkpoint: dict[str, Any] | None = None
    memory: Annotated[tuple[RunMemory, ...], msgspec.Meta(max_length=MAX_CHANGES)] | None = None
    proposals: Annotated[tuple[ProposalDraft, ...], msgspec.Meta(max_length=PROPOSALS_A_RUN)] | None = None
    """What the run would change in the agent's own files."""
    cache_write_tokens: Count = 0
    """Written to a prompt cache; not among ``input_tokens``."""
    fallbacks: Fallbacks = ()
    """What each model after the first has used of those counts, in the order of ``policy.fallbacks``."""


class RefusedPart(Shape):
    field: str
    """As a JSON pointer."""
    reason: str


class ReportAnswer(Shape):
    duplicate: bool
    status: str
    """The event's, after the report."""
    charged_nanos: int
    """The price of the last slice."""
    refused: list[RefusedPart]
    """Memory and proposals that were not kept; the report counts without them."""


@operation(
    "POST",
    "/v1/runners/me/reports",
    tag=TAG,
    auth=Auth.RUNNER,
    hot=True,
    codes=FENCED,
    max_body=MAX_BODY_BYTES,
)
async def report_run(call: Call[ReportBody, NoQuery]) -> ReportAnswer | Refusal:
    """Say how the run ended; the same report again is answered with `duplicate`.

    A `processed` one that leaves a `checkpoint` could not finish: a new event goes on from there, in the same
    commit.
    """
    message, refused = report_of(call.body, call.host.runner.id)
    reply = await call.ctx.system.ask("lease", call.body.lease_id, message, timeout=HOT_S)
    return reply if isinstance(reply, Refusal) else answer_of(reply, refused)


def report_of(body: ReportBody, runner_id: UUID) -> tuple[Report, list[RefusedPart]]:
    """What the lease is told, and the parts that are not."""
    refused: list[RefusedPart] = []
    memory = _kept("memory", body.memory or (), _change_of, refused)
    proposals = _kept("proposals", body.proposals or (), _draft_of, refused)
    telemetry = body.telemetry or Telemetry()
    message = Report(
        runner_id=runner_id,
        event_id=body.event_id,
        fencing_token=body.fencing_token,
        outcome=body.outcome.value,
        failure_reason=body.failure_reason,
        response_text=cut(body.response_text),
        evidence=body.evidence,
        input_tokens=body.input_tokens,
        cached_input_tokens=body.cached_input_tokens,
        output_tokens=body.output_tokens,
        time_to_first_token_ms=telemetry.time_to_first_token_ms,
        wall_ms=telemetry.wall_ms,
        checkpoint=body.checkpoint,
        digest=hashlib.sha256(msgspec.json.encode(body, order="deterministic")).digest(),
        memory=memory,
        proposals=proposals,
        cache_write_tokens=body.cache_write_tokens,
        fallbacks=tokens_of(body.fallbacks),
    )
    return message, refused


def answer_of(reported: Reported, refused: list[RefusedPart]) -> ReportAnswer:
    return ReportAnswer(reported.duplicate, reported.status, reported.charged_nanos, refused)


def cut(text: str | None) -> str | None:
    r"""At most a million characters; what was longer ends with a mark that says so.

    >>> cut("a" * 1_000_001)[-13:]
    'a\n[truncated]'
    """
    if text is None or len(text) <= TEXT_CHARS:
        return text
    return text[: TEXT_CHARS - len(CUT_MARK)] + CUT_MARK


def _kept(
    field: str, parts: Sequence[P], read: Callable[[P, str], R], refused: list[RefusedPart]
) -> tuple[R, ...]:
    """Those that can be kept; of the others it is told why not."""
    kept = []
    for place, part in enumerate(parts):
        pointer = f"/{field}/{place}"
        try:
            kept.append(read(part, pointer))
        except _PartOnly as fault:
            refused.append(RefusedPart(fault.pointer, fault.reason))
    return tuple(kept)


class _PartOnly(Exception):
    """A fault that costs its own part of a report, and not the report."""

    def __init__(self, pointer: str, reason: str) -> None:
        super().__init__(f"{pointer}: {reason}")
        self.pointer = pointer
        self.reason = reason


def _draft_of(draft: ProposalDraft, pointer: str) -> Draft:
    if draft.source_markdown is None and draft.trigger_markdown is None:
        raise _PartOnly(pointer, "neither source_markdown nor trigger_markdown is given")
    return draft_of(draft, pointer)


def _change_of(entry: RunMemory, pointer: str) -> MemoryChange:
    sizes = (
        ("key", len(entry.key), KEY_CHARS, "characters"),
        ("category", len(entry.category), CATEGORY_CHARS, "characters"),
        ("content", len((entry.content or "").encode()), CONTENT_BYTES, "bytes"),
    )
    for name, size, limit, unit in sizes:
        if size > limit:
            raise _PartOnly(f"{pointer}/{name}", f"{size} {unit}, {limit} may be")
    return change_of(MemoryEntry(entry.key, entry.content, entry.category, entry.delete), pointer)
