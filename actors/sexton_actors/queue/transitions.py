"""What a cancellation writes, and what is answered to whoever asked for it."""

from uuid import UUID

from sexton_actors.protocol.queue import Cancelling
from sexton_actors.refusal import Refusal
from sexton_storage.records.frame_kinds import FrameKind
from sexton_storage.records.frames import NewFrame
from sexton_storage.refusals import Lost
from sexton_storage.rules import CANCELLED_LABEL
from sexton_storage.writes import CancelEvent, Cancelled, CancelOutcome


def cancel(zombie_id: UUID, event_id: UUID, by: str, now: int) -> CancelEvent:
    """End what waits, mark what runs; its frame stands for the first of the two."""
    data = {"status": "cancelled", "failure_label": CANCELLED_LABEL, "by": by}
    return CancelEvent(
        zombie_id, event_id, now, (NewFrame(zombie_id, event_id, FrameKind.EVENT_COMPLETE, now, data),)
    )


def answer(event_id: UUID, outcome: Cancelled | Lost) -> Cancelling | Refusal:
    """An event that is over stays as it is: what became of it is the answer."""
    if isinstance(outcome, Lost):
        return Refusal("UZ-EVENT-001", f"The agent has no event {event_id}.")
    if outcome.outcome is CancelOutcome.CLOSED:
        detail = f"The event is {outcome.status}; there is nothing left to cancel."
        return Refusal("UZ-REQ-009", detail, {"current_state": str(outcome.status)})
    ended = outcome.outcome is CancelOutcome.ENDED
    return Cancelling(event_id, "cancelled" if ended else "cancelling")
