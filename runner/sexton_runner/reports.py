"""Writes the report of a run, within the size limit, and again when it was refused."""

from collections.abc import Mapping
from typing import Any

import orjson

from sexton_runner.errors import Refused
from sexton_runner.lease import CACHE_WRITES, FALLBACKS, LiveLease
from sexton_runner.run import Ending, Outcome

MAX_REPORT_BYTES = (2 << 20) - 8192  # The control plane takes bodies of 2 MiB; the note about a cut has room.
STALE = frozenset({"UZ-RUN-005", "UZ-RUN-006", "UZ-RUN-011"})
KEPT_CHARS = 16_384

Report = Mapping[str, Any]


def report_body(live: LiveLease, ending: Ending, wall_ms: int) -> Report:
    """Spell a report; what is not known is left out."""
    first = wall_ms if ending.first_output_ms is None else ending.first_output_ms
    body: dict[str, Any] = {
        "lease_id": live.lease.lease_id,
        "event_id": live.lease.event.event_id,
        "fencing_token": live.lease.fencing_token,
        "outcome": ending.outcome.value,
        "response_text": ending.response_text,
        **live.usage.tokens(),
        "telemetry": {"time_to_first_token_ms": first, "wall_ms": wall_ms},
    }
    if ending.failure_reason is not None:
        body["failure_reason"] = ending.failure_reason
    if ending.evidence is not None:
        body["evidence"] = ending.evidence
    if ending.checkpoint is not None:
        body["checkpoint"] = ending.checkpoint
    if ending.proposals:
        body["proposals"] = list(ending.proposals)
    return body


def fitted(body: Report) -> Report:
    """Leave out what makes a report too large, and say so in it.

    >>> fitted({"response_text": "done", "evidence": {"n": 1}})
    {'response_text': 'done', 'evidence': {'n': 1}}
    """
    if not _too_large(body):
        return body
    proposals, text = list(body.get("proposals", ())), str(body["response_text"])
    count, said = len(proposals), []
    while proposals and _too_large({**body, "proposals": proposals}):
        proposals.pop()
    body = {**body, "proposals": proposals}
    if count > len(proposals):
        said.append(f"{count - len(proposals)} of {count} proposals")
    if "evidence" in body and _too_large(body):
        body = {name: value for name, value in body.items() if name != "evidence"}
        said.append("the evidence")
    if _too_large(body):
        text = text[:KEPT_CHARS]
        said.append("the end of this text")
    note = f"[the report was too large, so this was left out of it: {', '.join(said)}]"
    return {**body, "response_text": f"{text}\n{note}".lstrip()}


def _too_large(body: Report) -> bool:
    return len(orjson.dumps(body)) > MAX_REPORT_BYTES


def told_again(body: Report, refusal: Refused) -> Report | None:
    """Give the report that follows a refused one; None where the lease is not ours any more.

    It ends the event: what is refused once would be refused after each further attempt as well.
    """
    if refusal.code in STALE:
        return None
    outcome, reason = body["outcome"], body.get("failure_reason")
    if outcome == Outcome.PROCESSED:
        outcome, reason = Outcome.AGENT_ERROR.value, "agent_run"
    why = f"{refusal.code or refusal.status}: {refusal.detail}"
    note = f"[the control plane refused the report of this run: {why}]"
    kept = ("lease_id", "event_id", "fencing_token", "telemetry")
    tokens = ("input_tokens", "cached_input_tokens", "output_tokens", CACHE_WRITES, FALLBACKS)
    plain = {name: body[name] for name in (*kept, *tokens) if name in body}
    text = f"{note}\n{str(body['response_text'])[:KEPT_CHARS]}"
    return {**plain, "outcome": outcome, "failure_reason": reason, "response_text": text}
