"""The ids of the events that bulk jobs make."""

import hashlib
from typing import Final
from uuid import UUID

_VERSION: Final = 7
_VARIANT: Final = 2


def replay_id(job_id: UUID, event_id: UUID, asked_at: int) -> UUID:
    """The id of the event that a bulk job makes of another: a UUIDv7 of the time when the job was made.

    It can be made once only, whichever node tries, and however long after.

    >>> one = replay_id(UUID(int=1), UUID(int=2), 1_700_000_000_000)
    >>> one.version, one == replay_id(UUID(int=1), UUID(int=2), 1_700_000_000_000), one.int >> 80
    (7, True, 1700000000000)
    """
    random = int.from_bytes(hashlib.sha256(job_id.bytes + event_id.bytes).digest())
    high, low = random >> 62 & 0xFFF, random & (1 << 62) - 1
    return UUID(int=asked_at << 80 | _VERSION << 76 | high << 64 | _VARIANT << 62 | low)
