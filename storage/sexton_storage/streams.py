"""The stream frame that storage itself writes."""

from sexton_storage.records import Lease
from sexton_storage.writes import NewFrame


def leased_frame(lease: Lease) -> NewFrame:
    """Tell the agent's stream who runs the event now."""
    data = {
        "runner_id": str(lease.runner_id),
        "lease_id": str(lease.id),
        "attempt": lease.attempt,
        "fencing_token": lease.fencing_token,
    }
    return NewFrame(lease.zombie_id, lease.event_id, "event_leased", lease.granted_at, data)
