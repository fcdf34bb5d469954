"""What waiting for the end of an event needs to decide: how long to ask for, and when to give up."""

from typing import Final

from sexton_client.errors import ConnectionFailed, WaitedTooLong
from sexton_client.retries import Patience

LONGEST_POLL_MS: Final = 30_000
"""A server answers a long poll after so long at the latest."""


class LongWait:
    """One wait, over as many long polls and outages as it takes. Times are in seconds of one steady clock.

    >>> wait = LongWait("e", 40.0, Patience(), now_s=0.0)
    >>> wait.poll_ms(now_s=0.0), wait.poll_ms(now_s=30.0), wait.poll_ms(now_s=41.0)
    (30000, 10000, 0)
    """

    def __init__(self, event_id: str, timeout_s: float | None, patience: Patience, *, now_s: float) -> None:
        self._event_id = event_id
        self._timeout_s = timeout_s
        self._patience = patience
        self._began_s = now_s
        self._away_since_s: float | None = None

    def __repr__(self) -> str:
        return f"<LongWait for {self._event_id}>"

    def poll_ms(self, *, now_s: float) -> int:
        """How long the next poll may take."""
        if self._timeout_s is None:
            return LONGEST_POLL_MS
        left_ms = (self._began_s + self._timeout_s - now_s) * 1000
        return max(0, min(LONGEST_POLL_MS, round(left_ms)))

    def has_not_ended(self, status: str, *, now_s: float) -> None:
        """Raise WaitedTooLong when the time is over."""
        self._away_since_s = None
        if self._timeout_s is not None and now_s >= self._began_s + self._timeout_s:
            raise WaitedTooLong(
                f"Event {self._event_id} has not ended after {self._timeout_s:g} s; it is {status}.",
                "Ask events.why what it waits for.",
            )

    def is_away(self, fault: ConnectionFailed, *, now_s: float) -> None:
        """Raise the fault when the server has been away for longer than is borne."""
        self._away_since_s = now_s if self._away_since_s is None else self._away_since_s
        if now_s - self._away_since_s > self._patience.outage_s or self.poll_ms(now_s=now_s) == 0:
            raise fault
