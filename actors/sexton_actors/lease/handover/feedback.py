"""What a run is told of the past: proposals that people turned down, and how earlier runs were scored."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from sexton_actors.amounts import NANOS_PER_DOLLAR
from sexton_actors.manifest.model import Runtime
from sexton_actors.protocol.queue import Grant
from sexton_actors.world import World
from sexton_storage.records.improvement import Lessons, Proposal, Score

BYTES_PER_TOKEN = 4
"""Models differ; this errs towards too few lines rather than too many."""


async def feedback(grant: Grant, world: World) -> list[dict[str, Any]]:
    """The lease's ``feedback``; empty for a command, which reads none. Raises StorageUnavailable."""
    if grant.manifest.runtime is not Runtime.AGENT:
        return []
    lease = grant.lease
    return feedback_of(await world.storage.improvement.lessons(lease.zombie_id, lease.workspace_id, lease.id))


def feedback_of(lessons: Lessons) -> list[dict[str, Any]]:
    """Rejections oldest first, then scores newest first, as many as the workspace's budget of tokens holds.

    Each has its facts, and a ``text`` that says them in a line.
    """
    scores = _within(map(_score, lessons.scores), lessons.context_tokens)
    return [*map(_rejection, lessons.rejections), *scores]


def _within(lines: Iterator[dict[str, Any]], tokens: int) -> Sequence[dict[str, Any]]:
    kept = []
    for line in lines:
        tokens -= token_count(line["text"])
        if tokens < 0:
            break
        kept.append(line)
    return kept


def token_count(text: str) -> int:
    """About as many as a model reads, the end of the line included.

    >>> token_count("score 1.0"), token_count("")
    (4, 1)
    """
    return -(-len(text.encode()) // BYTES_PER_TOKEN) + 1


def _rejection(proposal: Proposal) -> dict[str, Any]:
    return {
        "kind": "proposal_rejected",
        "proposal_id": proposal.id,
        "title": proposal.title,
        "rejection_reason": proposal.rejection_reason,
        "decided_at": proposal.decided_at,
        "text": f"Your proposal {proposal.title!r} was rejected: {proposal.rejection_reason}",
    }


def _score(score: Score) -> dict[str, Any]:
    return {
        "kind": "score",
        "event_id": score.event_id,
        "outcome": score.outcome,
        "score": score.score,
        "attempts": score.attempts,
        "denied_gates": score.denied_gates,
        "failed_checks": score.failed_checks,
        "charged_nanos": score.charged_nanos,
        "budget_nanos": score.budget_nanos,
        "at": score.created_at,
        "text": _line(score),
    }


def _line(score: Score) -> str:
    at = datetime.fromtimestamp(score.created_at / 1000, UTC).strftime("%Y-%m-%d %H:%M")
    spent = f"spent ${score.charged_nanos / NANOS_PER_DOLLAR:.4f}"
    if score.budget_nanos:
        spent += f" of ${score.budget_nanos / NANOS_PER_DOLLAR:.2f} a day"
    parts = [f"{at} {score.outcome} {score.score}", spent]
    parts += [
        f"{name} {count}"
        for name, count, none in (
            ("attempts", score.attempts, 1),
            ("denied gates", score.denied_gates, 0),
            ("failed checks", score.failed_checks, 0),
        )
        if count != none
    ]
    return ", ".join(parts)
