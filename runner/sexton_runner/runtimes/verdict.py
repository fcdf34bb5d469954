"""Decides, from what was seen of a command, how its run ended."""

import signal
from dataclasses import dataclass

from sexton_runner.output import Output
from sexton_runner.redact import Redactor
from sexton_runner.run import Ending, Outcome

# What the kernel ends a program with that takes more than it may. A shell says so of its last command by a
# status above 128.
RESOURCE_SIGNALS = (signal.SIGXCPU, signal.SIGXFSZ, signal.SIGKILL)
RESOURCE_STATUSES = frozenset(status for number in RESOURCE_SIGNALS for status in (128 + number, -number))
# Programs that handle a limit themselves end as they like. Nothing but their last words tells of it.
LIMIT_WORDS = (
    "File too large",
    "MemoryError",
    "Cannot allocate memory",
    "Too many open files",
    "Resource temporarily unavailable",
    "No space left on device",
)
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
    met_limit: bool = False
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
        case Observed(met_limit=True):
            return "resource_kill"
        case _:
            return "agent_run"


def met_limit(errors: str) -> bool:
    r"""Tell whether a program's last line of errors says that it met a limit.

    >>> met_limit("Traceback ...\nOSError: [Errno 27] File too large\n"), met_limit("MemoryError: no\nbye\n")
    (True, False)
    """
    last = errors.rstrip().rpartition("\n")[2]
    return any(words in last for words in LIMIT_WORDS)


def judge(seen: Observed, out: Output, err: Output, redactor: Redactor) -> Ending:
    """Give the ending.

    The outputs are redacted already; within JSON a secret may have been spelt with escapes.
    """
    seen.met_limit = met_limit(err.text())
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
