"""How a follow-up ends."""

from msgspec.structs import replace

from sexton_storage.records.follow_ups import FollowUp, FollowUpStatus


def closed(follow_up: FollowUp, status: FollowUpStatus, now: int) -> FollowUp:
    """End one that is pending."""
    return replace(follow_up, status=status, closed_at=now)
