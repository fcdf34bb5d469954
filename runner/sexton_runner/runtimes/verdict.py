"""Decides, from what was seen of a command, how its run ended."""

import signal
from dataclasses import dataclass

from sexton_runner.output import Output
from sexton_runner.redact import Redactor
from sexton_runner.run import Ending, Outcome

# The shell's and prlimit's way to say that a signal ended the program.
RESOURCE_STATUSES = frozenset(128 + number for number in (signal.SIGXCPU, signal.SIGXFSZ))
REFUSALS = {"denied": "approval_denied", "timed_out": "approval_expired", "auto_killed": "policy_deny"}


@dataclass(slots=True)
class Observed:
    """What the runner saw, filled in as it happens.

    ``refusal`` is the status of the last gate that was not approved; ``flood`` says of what
    there was too much.
    """

    started: bool = False
    exit_status: int | None = None
    timed_out: bool = False
    flooded: bool = False
    flood: str = ""
    out_of_memory: bool = False
    refusal: str | None = None
    first_output_ms: int | None = None


def failure_reason(seen: Observed) -> str | None:
    """Name the failure; None when the command did well.

    >>> failure_reason(Observed(started=True, exit_status=0)) is None
    True
    >>> failure_reason(Observed(exit_status=1))
    'startup_posture'
    """
    match seen:
        case Observed(flooded=True):
            return "resource_kill"
        case Observed(started=False):
            return "startup_posture"
        case Observed(timed_out=True):
            return "timeout_kill"
        case Observed(exit_status=0):
            return None
        case Observed(out_of_memory=True):
            return "oom_kill"
        case Observed(refusal=str(refusal)):
            return REFUSALS.get(refusal, "approval_denied")
        case Observed(exit_status=status) if status in RESOURCE_STATUSES:
            return "resource_kill"
        case _:
            return "agent_run"


def judge(seen: Observed, out: Output, err: Output, redactor: Redactor) -> Ending:
    """Give the ending.

    The outputs are redacted already; within JSON a secret may have been spelt with escapes.
    """
    reason = failure_reason(seen)
    text = out.text()
    if reason is not None:
        text = _explained(seen, reason, text, err.text())
    return Ending(
        outcome=Outcome.PROCESSED if reason is None else Outcome.AGENT_ERROR,
        failure_reason=reason,
        response_text=text,
        evidence=redactor.json(out.evidence()),
        first_output_ms=seen.first_output_ms,
    )


def _explained(seen: Observed, reason: str, out: str, err: str) -> str:
    if reason == "startup_posture":
        return f"UZ-RUN-007: the sandbox could not be established: {err.strip() or 'no reason was given'}"
    status = "was stopped" if seen.exit_status is None else f"ended with status {seen.exit_status}"
    cause = f", since {seen.flood}" if seen.flood else ""
    parts = [out.rstrip("\n"), f"[the command {status}: {reason}{cause}]", err.rstrip("\n")]
    return "\n".join(part for part in parts if part)
