"""Writes of the journal in words, for the tale of a run."""

from typing import Any

from sexton_storage.writes import (
    AppendEvent,
    CancelEvent,
    ClaimEvent,
    EndLease,
    OpenGate,
    RenewLease,
    ResolveGate,
)
from tests.simulation.product.requests import seconds
from tests.simulation.world.timeline import START_S


def describe(write: Any, answer: Any, start_s: float = START_S) -> str:
    """One line, with the ids of what it is about; empty for what nobody asks about, as activity."""
    match write:
        case None:
            return str(answer)
        case AppendEvent():
            what = f"keeps event {write.event.id} of agent {write.event.zombie_id}"
        case ClaimEvent():
            what = f"looks for an event of agent {write.zombie_id} for runner {write.runner_id}"
        case RenewLease():
            what = f"renews lease {write.lease.id} until {seconds(write.lease.expires_at, start_s)}"
        case EndLease():
            what = f"ends lease {write.lease_id} as {write.status}, its event as {write.event.status}"
        case OpenGate():
            what = f"opens gate {write.gate.id} of event {write.gate.event_id}"
        case ResolveGate():
            what = f"closes gate {write.gate_id} as {write.status}"
        case CancelEvent():
            what = f"cancels event {write.event_id}"
        case _:
            return ""
    return f"{what}: {_answered(answer, start_s)}"


def _answered(answer: Any, start_s: float) -> str:
    lease, event = getattr(answer, "lease", None), getattr(answer, "event", None)
    if lease is not None and event is not None:
        until = seconds(lease.expires_at, start_s)
        return f"event {event.id}, lease {lease.id}, token {lease.fencing_token}, until {until}"
    reason = getattr(answer, "reason", "")
    return f"{type(answer).__name__}{f' ({reason})' if reason else ''}"
