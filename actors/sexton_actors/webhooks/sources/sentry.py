"""Sentry: signs the body, tells in headers what the event is about and names the delivery there."""

from typing import Any

from sexton_actors.webhooks import hex_hmac
from sexton_actors.webhooks.model import Headers, Malformed, Rejected
from sexton_actors.webhooks.source import Attempt, Said, Signed, Source, dotted, text_at

HEADER = "sentry-hook-signature"
RESOURCE_HEADER = "sentry-hook-resource"
DELIVERY_HEADER = "request-id"


def verify(attempt: Attempt) -> Signed | Rejected:
    signature = attempt.signature
    scheme = hex_hmac.Scheme(
        signature.header or HEADER,
        signature.prefix or "",
        signature.ts_header,
        lambda at, body: f"{at}.".encode() + body if at else body,
    )
    return hex_hmac.verify(scheme, attempt)


def read(label: str, headers: Headers, document: dict[str, Any]) -> Said | Malformed:
    if not document:
        return Malformed("the body is empty")
    event = headers.get(RESOURCE_HEADER) or label
    return Said(dotted(event, text_at(document, "action")), headers.get(DELIVERY_HEADER), document)


SOURCE = Source(verify, read, HEADER)
