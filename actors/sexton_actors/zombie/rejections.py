"""Shows rejected deliveries in an agent's stream, enough for a person to see, too few to flood it."""

from msgspec.structs import replace

from sexton_actors.refusal import Refusal
from sexton_actors.zombie.record import HeldZombie
from sexton_storage.records.frame_kinds import FrameKind
from sexton_storage.records.frames import NewFrame
from sexton_storage.writes import AppendFrames

BURST = 10
REFILL_MS = 6_000
"""Milliseconds for each further one: ten a minute for each reason."""
TOO_LARGE, RATE_LIMITED, NOT_ACTIVE, ENCODED = "too_large", "rate_limited", "not_active", "encoded"
"""What needs no look at the delivery."""
REASONS_MAX = 32
SOURCE_CHARS = 64
"""The bound of a source's name in the frame."""


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

    def __repr__(self) -> str:
        return f"<RejectionMeter {sorted(self._full_at)}>"

    def admits(self, reason: str, now: int) -> bool:
        """Whether this one may be written; ``now`` in ms."""
        if reason not in self._full_at and len(self._full_at) >= REASONS_MAX:
            return False
        full_at = max(self._full_at.get(reason, now), now)
        if full_at - now > (BURST - 1) * REFILL_MS:
            return False
        self._full_at[reason] = full_at + REFILL_MS
        return True


class Rejections:
    """Writes what was turned away to the agent's stream."""

    def __init__(self, held: HeldZombie) -> None:
        self._held = held
        self._meter = RejectionMeter()

    def __repr__(self) -> str:
        return f"<Rejections {self._meter!r}>"

    def refuse(self, refusal: Refusal, reason: str, source: str) -> Refusal:
        """Show it, and tell the sender the reason beside the code."""
        self.show(reason, source)
        return replace(refusal, facts={**refusal.facts, "reason": reason_code(reason)})

    def show(self, reason: str, source: str) -> None:
        """Nothing is written for an agent that does not exist, nor beyond the meter.

        ``source`` is a label that the agent declares, or nothing: what a sender named may be a secret.
        """
        held, now = self._held, self._held.world.now_ms()
        if held.record is None or not self._meter.admits(reason, now):
            return
        data = {"reason": reason_code(reason), "source": source[:SOURCE_CHARS]}
        frame = NewFrame(held.id, None, FrameKind.WEBHOOK_REJECTED, now, data)
        held.world.storage.journal.submit(AppendFrames(held.id, (frame,)), _ignore)


def reason_code(reason: str) -> str:
    """As frames and answers bear it.

    >>> reason_code("too_large")
    'webhook_rejected: too_large'
    """
    return f"webhook_rejected: {reason}"


def _ignore(_outcome: object) -> None:
    """A frame about a refused delivery is worth no retry: the refusal itself was answered."""
