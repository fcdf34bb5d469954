"""What can be said of a webhook: that it is genuine or not, and what it brings."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import msgspec

Headers = Mapping[str, str]
"""Names in lower case."""

BAD_SIGNATURE = "UZ-WH-010"
STALE_TIMESTAMP = "UZ-WH-011"
NO_CREDENTIAL = "UZ-WH-020"
MALFORMED = "UZ-WH-002"


class Reason(StrEnum):
    """What the activity stream shows after ``webhook_rejected:``."""

    SIGNATURE_MISMATCH = "signature_mismatch"
    SIGNATURE_MISSING = "signature_missing"
    SIGNATURE_MALFORMED = "signature_malformed"
    STALE_TIMESTAMP = "stale_timestamp"
    CREDENTIAL_MISSING = "credential_missing"


_CODES = {
    Reason.SIGNATURE_MISMATCH: BAD_SIGNATURE,
    Reason.SIGNATURE_MISSING: BAD_SIGNATURE,
    Reason.SIGNATURE_MALFORMED: BAD_SIGNATURE,
    Reason.STALE_TIMESTAMP: STALE_TIMESTAMP,
    Reason.CREDENTIAL_MISSING: NO_CREDENTIAL,
}


class Genuine(msgspec.Struct, frozen=True):
    """Sent by one who knows the secret."""


class Rejected(msgspec.Struct, frozen=True):
    """``detail`` may be shown to the sender: it tells neither the secret nor the right signature."""

    reason: str
    code: str
    detail: str


def rejected(reason: Reason, detail: str) -> Rejected:
    """With the code that belongs to the reason."""
    return Rejected(reason, _CODES[reason], detail)


class Delivery(msgspec.Struct, frozen=True):
    """Something for an agent, unless it has it already."""

    event_type: str
    """1 to 128 printable characters."""
    dedup_key: bytes
    """32 bytes, equal for deliveries that are the same; without an id of the sender's it is ``body_key``."""
    body_key: bytes
    """32 bytes, made from the body. Keep it with the first delivery too: one that comes again stripped of
    its id is then known by it."""
    source_event_id: str | None
    payload: dict[str, Any]
    """A JSON object, no deeper than the limit."""
    text: str
    """The text that is kept: exactly what the sender wrote, numbers to the last digit."""


class Ping(msgspec.Struct, frozen=True):
    """The sender says hello; nothing happens."""


class Challenge(msgspec.Struct, frozen=True):
    """The sender checks the address: answer with its own word."""

    challenge: str


class Malformed(msgspec.Struct, frozen=True):
    """Genuine, yet unreadable; answered with ``UZ-WH-002``."""

    detail: str


Reading = Delivery | Ping | Challenge | Malformed
