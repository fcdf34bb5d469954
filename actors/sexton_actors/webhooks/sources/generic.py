"""Any other sender: the trigger tells where the signature stands, the agent gets the body as it is."""

from typing import Any

from sexton_actors.webhooks import hex_hmac
from sexton_actors.webhooks.model import Headers, Malformed, Reason, Rejected, rejected
from sexton_actors.webhooks.source import Attempt, Said, Signed, Source, text_at

ENVELOPE = frozenset({"event_id", "data"})
"""The members that tell it; a ``type`` many a body has."""


def verify(attempt: Attempt) -> Signed | Rejected:
    signature = attempt.signature
    if signature.header is None:
        return rejected(Reason.CREDENTIAL_MISSING, "the trigger does not name the header with the signature")
    scheme = hex_hmac.Scheme(signature.header, signature.prefix or "", signature.ts_header, _signed)
    return hex_hmac.verify(scheme, attempt)


def read(label: str, _headers: Headers, document: dict[str, Any]) -> Said | Malformed:
    """A body with ``event_id`` or ``data`` is the service's own envelope, any other is the sender's own.

    The envelope is held to its three fields. The sender's own needs none: its event type is its ``type`` or,
    without one, the trigger's source.
    """
    if not document:
        return Malformed("the body is empty: event_id, type and data are missing")
    if not ENVELOPE & document.keys():
        return Said(text_at(document, "type") or label, None, document)
    for field in ("event_id", "type"):
        if text_at(document, field) is None:
            return Malformed(f"`{field}` must be text of at least one character")
    if not isinstance(document.get("data"), dict):
        return Malformed("`data` must be an object")
    return Said(text_at(document, "type") or label, text_at(document, "event_id"), document)


def _signed(at: str, body: bytes) -> bytes:
    return at.encode() + b"." + body if at else body


SOURCE = Source(verify, read)
