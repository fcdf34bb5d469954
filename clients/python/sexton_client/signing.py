"""Signs a delivery as its sender would, to try a webhook without the sender."""

import base64
import binascii
import hmac
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from sexton_client.errors import SextonError


class Delivery(NamedTuple):
    """What is to be signed. ``at_s`` is Unix seconds; ``delivery_id`` is what tells it from all others."""

    secret: str
    body: bytes
    event_type: str
    at_s: int
    delivery_id: str


def sign(source: str, delivery: Delivery) -> dict[str, str]:
    """The headers that a sender of this kind sends. Raises SextonError for a source that is not known.

    >>> sign("github", Delivery("s", b"{}", "push", 0, "d1"))["x-hub-signature-256"][:15]
    'sha256=143ca8d5'
    """
    signer = SIGNERS.get(source)
    if signer is None:
        known = ", ".join(sorted(SIGNERS))
        raise SextonError(f"It is not known how {source!r} signs.", f"Known are: {known}.")
    return signer(delivery)


def sign_with_header(
    delivery: Delivery, *, header: str, prefix: str = "", ts_header: str | None = None
) -> dict[str, str]:
    """The headers that a trigger names itself: HMAC-SHA256 in hex over the body, or over time and body."""
    if ts_header is None:
        return {header: prefix + _hex(delivery.secret, delivery.body)}
    stamped = f"{delivery.at_s}.".encode() + delivery.body
    return {header: prefix + _hex(delivery.secret, stamped), ts_header: str(delivery.at_s)}


def _hex(secret: str, signed: bytes) -> str:
    return hmac.digest(secret.encode(), signed, "sha256").hex()


def _github(delivery: Delivery) -> dict[str, str]:
    return {
        "x-github-event": delivery.event_type,
        "x-github-delivery": delivery.delivery_id,
        "x-hub-signature-256": f"sha256={_hex(delivery.secret, delivery.body)}",
    }


def _slack(delivery: Delivery) -> dict[str, str]:
    signed = f"v0:{delivery.at_s}:".encode() + delivery.body
    return {
        "x-slack-signature": f"v0={_hex(delivery.secret, signed)}",
        "x-slack-request-timestamp": str(delivery.at_s),
    }


def _linear(delivery: Delivery) -> dict[str, str]:
    return {
        "linear-signature": _hex(delivery.secret, delivery.body),
        "linear-delivery": delivery.delivery_id,
    }


def _stripe(delivery: Delivery) -> dict[str, str]:
    signed = f"{delivery.at_s}.".encode() + delivery.body
    return {"stripe-signature": f"t={delivery.at_s},v1={_hex(delivery.secret, signed)}"}


def _sentry(delivery: Delivery) -> dict[str, str]:
    return {
        "sentry-hook-resource": delivery.event_type,
        "request-id": delivery.delivery_id,
        "sentry-hook-signature": _hex(delivery.secret, delivery.body),
    }


def _standard(family: str) -> Callable[[Delivery], dict[str, str]]:
    def headers(delivery: Delivery) -> dict[str, str]:
        try:
            key = base64.b64decode(delivery.secret.removeprefix("whsec_"), validate=True)
        except (binascii.Error, ValueError):
            key = b""
        if not key:
            raise SextonError("The secret does not read whsec_<base64>.", "Give the sender's own secret.")
        signed = f"{delivery.delivery_id}.{delivery.at_s}.".encode() + delivery.body
        return {
            f"{family}-id": delivery.delivery_id,
            f"{family}-timestamp": str(delivery.at_s),
            f"{family}-signature": f"v1,{base64.b64encode(hmac.digest(key, signed, 'sha256')).decode()}",
        }

    return headers


SIGNERS: Final[Mapping[str, Callable[[Delivery], dict[str, str]]]] = {
    "github": _github,
    "slack": _slack,
    "linear": _linear,
    "stripe": _stripe,
    "sentry": _sentry,
    "svix": _standard("svix"),
    "standard-webhooks": _standard("webhook"),
}
"""By the source that a trigger names."""
