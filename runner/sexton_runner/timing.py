"""Every interval of the runner, in seconds, with jitter and backoff."""

from collections.abc import Callable
from dataclasses import dataclass

Clock = Callable[[], float]

LEASE_TERM_S = 30.0
LEASE_SAFETY_S = 1.0  # Our clock may run slower than the database's; give up a little before it does.


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """The pace of one runner. Tests quicken it; the defaults are what the contract's 30 s term asks for."""

    renew_s: float = 10.0
    renew_retry_s: float = 1.0
    renew_timeout_s: float = 4.0
    renew_window_s: float = 1.0  # Leases due this soon share the call, so that many leases cost few calls.
    lease_term_s: float = LEASE_TERM_S
    poll_wait_s: float = 25.0
    heartbeat_s: float = 5.0
    flush_s: float = 0.1
    transcript_s: float = 1.0  # Nobody follows a transcript while it grows: fewer calls matter more.
    flush_patience_s: float = 5.0
    gather_s: float = 0.005  # Reports that are ready this soon after one another share a call.
    call_timeout_s: float = 15.0
    backoff_first_s: float = 0.2
    backoff_max_s: float = 5.0
    gate_wait_s: float = 20.0
    park_after_s: float = 60.0
    let_go_s: float = 3.0  # For releases after the drain is over, and for the last calls of a stop.


def jittered(interval_s: float, luck: float) -> float:
    """Spread ``interval_s`` by ±10 %; ``luck`` is in [0, 1).

    >>> jittered(10.0, 0.0), jittered(10.0, 0.5)
    (9.0, 10.0)
    """
    return interval_s * (0.9 + 0.2 * luck)


def backoff(attempt: int, luck: float, timing: Timing) -> float:
    """Seconds before try ``attempt + 1``: doubles, is capped, and is at least half of the cap's share so far.

    >>> backoff(0, 0.0, Timing()), backoff(30, 0.999, Timing()) < 5.0
    (0.1, True)
    """
    full = min(timing.backoff_max_s, timing.backoff_first_s * 2.0 ** min(attempt, 16))
    return full * (0.5 + 0.5 * luck)
