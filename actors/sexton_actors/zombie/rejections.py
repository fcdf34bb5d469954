"""Lets so many rejected deliveries into an agent's stream that a person sees them, and no flood can fill it."""

BURST = 10
REFILL_MS = 6_000
"""One more each so many milliseconds: ten a minute for each reason."""
REASONS_MAX = 32


class RejectionMeter:
    """A token bucket for each reason.

    >>> meter = RejectionMeter()
    >>> sum(meter.admits("signature_mismatch", 0) for _ in range(1000))
    10
    >>> meter.admits("stale_timestamp", 0), meter.admits("signature_mismatch", REFILL_MS)
    (True, True)
    """

    def __init__(self) -> None:
        self._full_at: dict[str, int] = {}

    def admits(self, reason: str, now: int) -> bool:
        """Whether this one may be written; ``now`` in ms."""
        full_at = max(self._full_at.get(reason, now), now)
        if full_at - now > (BURST - 1) * REFILL_MS or (reason not in self._full_at and len(self._full_at) >= REASONS_MAX):
            return False
        self._full_at[reason] = full_at + REFILL_MS
        return True
