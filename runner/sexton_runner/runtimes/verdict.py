"""Decides, from what was seen of a command, how its run ended."""

import signal
from dataclasses import dataclass

from sexton_runner.output import Output
from sexton_runner.redact import Redactor
from sexton_runner.run import Ending, Outcome
from sexton_runner.sandbox.limits import Limits

# What the kernel ends a program with that takes more than it may. A shell says so of its last command by a
# status above 128.
SIGNAL_REASONS = {
    signal.SIGXCPU: "cpu_kill",
    signal.SIGXFSZ: "resource_kill",
    signal.SIGKILL: "resource_kill",
}
STATUS_REASONS = {
    status: reason for number, reason in SIGNAL_REASONS.items() for status in (128 + number, -number)
}
# Programs that handle a limit themselves end as they like. Nothing but their last words tells of it.
LIMIT_WORDS = {
    "File too large": "resource_kill",
    "MemoryError": "resource_kill",
    "Cannot allocate memory": "resource_kill",
    "Too many open files": "resource_kill",
    "Resource temporarily unavailable": "pids_kill",
    "Cannot fork": "pids_kill",
    "can't start new thread": "pids_kill",
    "No space left on device": "disk_kill",
}
MIB = 1 << 20
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
    out_of_disk: bool = False
    met_limit: str | None = None
    """The reason that the program's own last words give."""
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
        case Observed(out_of_disk=True):
            return "disk_kill"
        case Observed(refusal=str(refusal)):
            return REFUSALS.get(refusal, "approval_denied")
        case Observed(exit_status=int(status)) if status in STATUS_REASONS:
            return STATUS_REASONS[status]
        case Observed(met_limit=str(reason)):
            return reason
        case _:
            return "agent_run"


def met_limit(errors: str) -> str | None:
    r"""Give the reason, when a program's last line of errors says that it met a limit.

    >>> met_limit("Traceback ...\nOSError: [Errno 28] No space left on device\n")
    'disk_kill'
    >>> met_limit("MemoryError: no\nbye\n")
    """
    last = errors.rstrip().rpartition("\n")[2]
    return next((reason for words, reason in LIMIT_WORDS.items() if words in last), None)


def bound_hit(reason: str, limits: Limits) -> str:
    """Say which bound a run met, by the key that an author sets it with, and what it was.

    >>> bound_hit("oom_kill", Limits(wall_s=60, memory_bytes=256 * MIB, pids=64))
    'its memory was bounded to 256 MiB (resources.memory)'
    """
    match reason:
        case "oom_kill":
            return f"its memory was bounded to {limits.memory_bytes // MIB} MiB (resources.memory)"
        case "disk_kill":
            return f"/workspace and /tmp hold {limits.disk_bytes // MIB} MiB each (resources.disk)"
        case "pids_kill":
            return f"it may have {limits.pids} processes and threads (resources.pids)"
        case "timeout_kill" | "agent_timeout":
            return f"it may take {limits.wall_s:g} s (resources.wall)"
        case "cpu_kill":
            share = "" if limits.cpu is None else f" on {limits.cpu:g} processors"
            return f"a process may use its processors for {limits.wall_s:g} s{share} (resources.cpu)"
        case _:
            return ""


def judge(seen: Observed, out: Output, err: Output, redactor: Redactor, limits: Limits) -> Ending:
    """Give the ending.

    The outputs are redacted already; within JSON a secret may have been spelt with escapes.
    """
    seen.met_limit = met_limit(err.text())
    reason = failure_reason(seen)
    text = out.text()
    if reason is not None:
        seen.flood = seen.flood or bound_hit(reason, limits)
        text = _explained(seen, reason, text, err.text(), limits)
    return Ending(
        outcome=Outcome.PROCESSED if reason is None else Outcome.AGENT_ERROR,
        failure_reason=reason,
        response_text=text,
        evidence=redactor.json(out.evidence()),
        first_output_ms=seen.first_output_ms,
    )


def _explained(seen: Observed, reason: str, out: str, err: str, limits: Limits) -> str:
    if reason == "startup_posture":
        late = f"it was not ready within {limits.wall_s:g} s, all that the run may take (resources.wall)"
        why = err.strip() or (late if seen.timed_out else "no reason was given")
        return f"UZ-RUN-007: the sandbox could not be established: {why}"
    status = "was stopped" if seen.exit_status is None else f"ended with status {seen.exit_status}"
    cause = f", since {seen.flood}" if seen.flood else ""
    parts = [out.rstrip("\n"), f"[the command {status}: {reason}{cause}]", err.rstrip("\n")]
    return "\n".join(part for part in parts if part)
