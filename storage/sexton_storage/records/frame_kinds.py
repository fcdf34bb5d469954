"""The kinds of frames: the one list of them."""

from enum import StrEnum
from typing import Final


class FrameKind(StrEnum):
    """What a frame tells of; docs/reference/events.md says what stands in each."""

    EVENT_RECEIVED = "event_received"
    EVENT_LEASED = "event_leased"
    TOOL_CALL_STARTED = "tool_call_started"
    TOOL_CALL_PROGRESS = "tool_call_progress"
    TOOL_CALL_COMPLETED = "tool_call_completed"
    CONNECTION = "connection"
    CHUNK = "chunk"
    GATE_PENDING = "gate_pending"
    GATE_RESOLVED = "gate_resolved"
    GRANT_PENDING = "grant_pending"
    GRANT_CHANGED = "grant_changed"
    GRANT_USED = "grant_used"
    LEASE_RECLAIMED = "lease_reclaimed"
    EVENT_COMPLETE = "event_complete"
    STATUS_CHANGED = "status_changed"
    CONFIG_UPDATED = "config_updated"
    CANARY_CHANGED = "canary_changed"
    PIN_CHANGED = "pin_changed"
    WEBHOOK_REJECTED = "webhook_rejected"


RUN_KINDS: Final = frozenset(
    {
        FrameKind.TOOL_CALL_STARTED,
        FrameKind.TOOL_CALL_PROGRESS,
        FrameKind.TOOL_CALL_COMPLETED,
        FrameKind.CONNECTION,
        FrameKind.CHUNK,
    }
)
"""What runners may send; all others are the control plane's own."""
QUIET_KINDS: Final = (FrameKind.CHUNK, FrameKind.CONNECTION, FrameKind.TOOL_CALL_PROGRESS)
"""What a run says and does in between: many, and no record changes with them."""
