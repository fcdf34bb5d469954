"""Any other sender: the trigger tells where the signature stands, the agent gets the body as it is."""

from typing import Any

from sexton_actors.manifest.model import Signature
from sexton_actors.webhooks import hex_hmac
from sexton_actors.webhooks.model import Headers, Malformed, Reason, Rejected, rejected
from sexton_actors.webhooks.source import (
    MAX_EVENT_TYPE_CHARS,
    MAX_SENDER_ID_CHARS,
    Attempt,
    Said,
    Sending,
    Signed,
    Source,
    is_line,
    text_at,
)

NO_HEADER = "the trigger does not name the header with the signature"


def verify(attempt: Attempt) -> Signed | Rejected:
    header = attempt.signature.header
    if header is None:
        return rejected(Reason.CREDENTIAL_MISSING, NO_HEADER)
    return hex_hmac.verify(_scheme(attempt.signature, header), attempt)


def sign(sending: Sending) -> dict[str, str]:
    header = sending.signature.header
    if header is None:
        raise ValueError(NO_HEADER)
    return hex_hmac.sign(_scheme(sending.signature, header), sending)


def _scheme(signature: Signature, header: str) -> hex_hmac.Scheme:
    return hex_hmac.Scheme(header, signature.prefix or "", signature.ts_header, _signed)


def read(label: str, headers: Headers, document: dict[str, Any]) -> Said | Malformed:
    """The service's own envelope where all three fields are there and well formed, else the sender's body.

    Many senders have a ``data`` or an ``event_id`` of their own, so neither alone tells the envelope.
    """
    said = read_envelope(label, headers, document)
    return said if isinstance(said, Said) else read_raw(label, headers, document)


def read_envelope(_label: str, _headers: Headers, document: dict[str, Any]) -> Said | Malformed:
    """The envelope and nothing else: ``event_id``, ``type`` and ``data``."""
    event_id, kind = text_at(document, "event_id"), text_at(document, "type")
    if event_id is None or kind is None:
        field = "event_id" if event_id is None else "type"
        return Malformed(f"`{field}` must be text of at least one character")
    if not isinstance(document.get("data"), dict):
        return Malformed("`data` must be an object")
    return Said(kind, event_id, document)


def read_raw(label: str, _headers: Headers, document: dict[str, Any]) -> Said | Malformed:
    """The sender's own body, of which nothing is demanded but that it is not empty.

    A member ``id`` is no event's id: as often it is that of the thing that the event is about, and two events
    about one thing are no repeat.
    """
    if not document:
        return Malformed("the body is empty: send an object with at least one member")
    kind, event_id = text_at(document, "type") or "", text_at(document, "event_id") or ""
    return Said(
        kind if is_line(kind, MAX_EVENT_TYPE_CHARS) else label,
        event_id if is_line(event_id, MAX_SENDER_ID_CHARS) else None,
        document,
    )


def _signed(at: str, body: bytes) -> bytes:
    return at.encode() + b"." + body if at else body


SOURCE = Source(verify, read, sign)
