"""Whether what an event is made from is still what was read."""

import hashlib
from uuid import UUID

from sexton_storage.records.events import Event
from sexton_storage.records.follow_ups import FollowUp
from sexton_storage.records.sources import Source, SourceKind


def source_event(event: Event) -> Source:
    """What a replay takes from an event: its request, and the sender's id of it."""
    text = f"{event.request_json}\n{event.source_event_id or ''}"
    return Source(SourceKind.EVENT, event.id, _hash(text.encode()))


def source_follow_up(follow_up: FollowUp) -> Source:
    """What an event takes from the follow-up that it was asked for as: its message."""
    return Source(SourceKind.FOLLOW_UP, follow_up.id, _hash(follow_up.message.encode()))


def source_delivery(delivery_id: UUID, body: bytes) -> Source:
    """What an event takes from a delivery that was kept: its body."""
    return Source(SourceKind.DELIVERY, delivery_id, _hash(body))


def stands(source: Source | None, now: Source | None) -> bool:
    """Whether an event may be kept that was made from ``source``; ``now``: as it is; None: it is gone.

    >>> read = source_delivery(UUID(int=1), b"hello")
    >>> stands(None, None), stands(read, read), stands(read, None)
    (True, True, False)
    >>> stands(read, source_delivery(UUID(int=1), b"[erased]"))
    False
    """
    return source is None or source == now


def _hash(content: bytes) -> bytes:
    return hashlib.sha256(content).digest()
