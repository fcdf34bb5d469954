"""Ends follow-ups."""

from uuid import UUID

from sexton_storage.decisions.follow_ups import closed
from sexton_storage.memory.tables import Tables
from sexton_storage.records.follow_ups import FollowUpStatus
from sexton_storage.terms import FOLLOW_UPS_KEEP_MS


def close_follow_up(tables: Tables, follow_up_id: UUID, status: FollowUpStatus, now: int) -> bool:
    """End one that is pending; False when it is over, or gone."""
    follow_up = tables.follow_ups.get(follow_up_id)
    if follow_up is None or follow_up.status is not FollowUpStatus.PENDING:
        return False
    tables.follow_ups[follow_up_id] = closed(follow_up, status, now)
    return True


def sweep_follow_ups(tables: Tables, now: int) -> int:
    """Delete those that are over for long; how many rows."""
    over = [
        follow_up.id
        for follow_up in tables.follow_ups.values()
        if follow_up.closed_at is not None and follow_up.closed_at <= now - FOLLOW_UPS_KEEP_MS
    ]
    for follow_up_id in over:
        del tables.follow_ups[follow_up_id]
    return len(over)
