"""When a run may have its agent woken again, and as what that is kept."""

from uuid import UUID

from sexton_actors.refusal import Refusal
from sexton_storage.records.follow_ups import FollowUp
from sexton_storage.records.leases import Lease

MESSAGE_BYTES = 8192
DELAY_MIN_S = 60
DELAY_MAX_S = 30 * 24 * 3600


def moment(delay_s: int | None, at: int | None, now: int) -> int | Refusal:
    """The time that is meant, in Unix ms: a minute from now at the earliest, thirty days at the latest.

    >>> moment(60, None, 5), moment(None, 60_005, 5)
    (60005, 60005)
    >>> moment(None, 60_004, 5).code, moment(60, 60_005, 5).code, moment(None, None, 5).code
    ('UZ-REQ-001', 'UZ-REQ-001', 'UZ-REQ-001')
    """
    if (delay_s is None) == (at is None):
        return Refusal("UZ-REQ-001", "/at: give either delay_s or at, not both.")
    if delay_s is not None:
        at, pointer = now + 1000 * delay_s, "/delay_s"
    else:
        pointer = "/at"
    if at is None or not now + 1000 * DELAY_MIN_S <= at <= now + 1000 * DELAY_MAX_S:
        return Refusal("UZ-REQ-001", f"{pointer}: {DELAY_MIN_S} to {DELAY_MAX_S} seconds from now.")
    return at


def follow_up(
    lease: Lease, follow_up_id: UUID, call_id: str, message: str, *, at: int, now: int
) -> FollowUp | Refusal:
    """What is kept; the message has 1 to 8,192 bytes."""
    if not 1 <= len(message.encode("utf-8", "surrogatepass")) <= MESSAGE_BYTES:
        return Refusal("UZ-REQ-001", f"/message: between 1 and {MESSAGE_BYTES} bytes.")
    return FollowUp(follow_up_id, lease.zombie_id, lease.event_id, call_id, message, at, now)
