"""Linear: signs the body, names the delivery in a header."""

from typing import Any

from sexton_actors.webhooks import hex_hmac
from sexton_actors.webhooks.model import Headers, Malformed, Rejected
from sexton_actors.webhooks.source import Attempt, Said, Signed, Source, dotted, normalised, text_at

HEADER = "linear-signature"
DELIVERY_HEADER = "linear-delivery"


def verify(attempt: Attempt) -> Signed | Rejected:
    signature = attempt.signature
    scheme = hex_hmac.Scheme(signature.header or HEADER, signature.prefix or "", None, lambda _, body: body)
    return hex_hmac.verify(scheme, attempt)


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


SOURCE = Source(verify, read, HEADER)
