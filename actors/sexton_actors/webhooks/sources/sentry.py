"""Sentry: signs the body, tells in headers what the event is about and names the delivery there."""

from typing import Any

from sexton_actors.manifest.model import Signature
from sexton_actors.webhooks import hex_hmac
from sexton_actors.webhooks.model import Headers, Malformed, Rejected
from sexton_actors.webhooks.source import Attempt, Said, Sending, Signed, Source, dotted, text_at

HEADER = "sentry-hook-signature"
RESOURCE_HEADER = "sentry-hook-resource"
DELIVERY_HEADER = "request-id"


def verify(attempt: Attempt) -> Signed | Rejected:
    return hex_hmac.verify(_scheme(attempt.signature), attempt)


def sign(sending: Sending) -> dict[str, str]:
    named = {RESOURCE_HEADER: sending.event, DELIVERY_HEADER: sending.delivery}
    return named | hex_hmac.sign(_scheme(sending.signature), sending)


def _scheme(signature: Signature) -> hex_hmac.Scheme:
    return hex_hmac.Scheme(
        signature.header or HEADER,
        signature.prefix or "",
        signature.ts_header,
        lambda at, body: f"{at}.".encode() + body if at else body,
    )


def read(label: str, headers: Headers, document: dict[str, Any]) -> Said | Malformed:
    if not document:
        return Malformed("the body is empty")
    event = headers.get(RESOURCE_HEADER) or label
    return Said(dotted(event, text_at(document, "action")), headers.get(DELIVERY_HEADER), document)


SOURCE = Source(verify, read, sign, HEADER)
