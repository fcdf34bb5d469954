"""On which side of a trial an event is: the candidate's, or that of the stable version."""

import hashlib
from typing import Final, NamedTuple
from uuid import UUID

from sexton_actors.canaries.record import Canary
from sexton_storage.records.events import Event

PARTS: Final = 100


class Side(NamedTuple):
    trial_id: UUID
    asked_version: int | None
    """The candidate's number; None on the stable side."""


def side_of(canary: Canary, key: bytes, repeats: Event | None = None) -> Side:
    """Choose by a hash of what names the event, so that the same one is always on the same side.

    ``key`` is what repeats of a delivery have in common, or the event's id. The replay of an event of this
    trial is on that event's side, whatever it is called by.
    """
    if repeats is not None and repeats.trial_id == canary.id:
        return Side(canary.id, repeats.asked_version)
    return Side(canary.id, canary.version if place_of(canary.id, key) < canary.share else None)


def place_of(trial_id: UUID, key: bytes) -> int:
    """From 0 to 99, evenly; another trial of the agent has another order.

    >>> place_of(UUID(int=1), b"a"), place_of(UUID(int=2), b"a")
    (46, 92)
    """
    digest = hashlib.sha256(trial_id.bytes + key).digest()
    return int.from_bytes(digest[:8]) % PARTS
