"""Linear: signs the body, names the delivery in a header."""

from typing import Any

from sexton_actors.manifest.model import Signature
from sexton_actors.webhooks import hex_hmac
from sexton_actors.webhooks.model import Headers, Malformed, Rejected
from sexton_actors.webhooks.source import Attempt, Said, Sending, Signed, Source, dotted, normalised, text_at

HEADER = "linear-signature"
DELIVERY_HEADER = "linear-delivery"


def verify(attempt: Attempt) -> Signed | Rejected:
    return hex_hmac.verify(_scheme(attempt.signature), attempt)


def sign(sending: Sending) -> dict[str, str]:
    return {DELIVERY_HEADER: sending.delivery} | hex_hmac.sign(_scheme(sending.signature), sending)


def _scheme(signature: Signature) -> hex_hmac.Scheme:
    return hex_hmac.Scheme(signature.header or HEADER, signature.prefix or "", None, lambda _, body: body)


def read(label: str, headers: Headers, document: dict[str, Any]) -> Said | Malformed:
    kind = text_at(document, "type")
    if kind is None:
        return Malformed("`type` is missing")
    action = text_at(document, "action")
    payload = normalised(
        label,
        kind,
        action,
        document,
        team=text_at(document, "data", "team", "key") or text_at(document, "data", "teamId"),
        actor=text_at(document, "actor", "name") or text_at(document, "actor", "id"),
        url=text_at(document, "url"),
    )
    return Said(dotted(kind, action), headers.get(DELIVERY_HEADER), payload)


SOURCE = Source(verify, read, sign, HEADER)
