"""The kinds of frames: the one list of them."""

from enum import StrEnum


class FrameKind(StrEnum):
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
    LEASE_RECLAIMED = "lease_reclaimed"
    EVENT_COMPLETE = "event_complete"
    STATUS_CHANGED = "status_changed"
    CONFIG_UPDATED = "config_updated"
    WEBHOOK_REJECTED = "webhook_rejected"
