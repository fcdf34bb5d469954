"""Stripe: signs time and body, with the time and all signatures in one header."""

import hmac
import re
from typing import Any

from sexton_actors.webhooks import hex_hmac
from sexton_actors.webhooks.model import Headers, Malformed, Reason, Rejected, rejected
from sexton_actors.webhooks.source import Attempt, Said, Sending, Signed, Source, text_at
from sexton_actors.webhooks.sources import generic

HEADER = "stripe-signature"
FORM = "t=<Unix seconds>,v1=<64 hexadecimal digits>"

_TIME = re.compile("[0-9]{1,12}")
_DIGEST = re.compile("[0-9a-fA-F]{64}")


def verify(attempt: Attempt) -> Signed | Rejected:
    """Right as soon as one ``v1`` fits one secret: while a secret is rolled, Stripe signs with both."""
    signature = attempt.signature
    if signature.header not in {None, HEADER}:
        # Somebody else's sender, who happens to be called so and signs as the trigger says.
        return generic.verify(attempt)
    value = attempt.headers.get(HEADER)
    if not value:
        return rejected(Reason.SIGNATURE_MISSING, f"the header {HEADER} is missing")
    parts = [part.strip().partition("=") for part in value.split(",")]
    times = [text for name, _, text in parts if name == "t" and _TIME.fullmatch(text)]
    given = [bytes.fromhex(text) for name, _, text in parts if name == "v1" and _DIGEST.fullmatch(text)]
    if len(times) != 1 or not given:
        return rejected(Reason.SIGNATURE_MALFORMED, f"the header {HEADER} must read {FORM}")
    signed = f"{times[0]}.".encode() + attempt.body
    expected = [hex_hmac.digest(secret, signed) for secret in attempt.secrets]
    matches = [hmac.compare_digest(one, other) for one in expected for other in given]
    if not any(matches):
        detail = "no signature fits the time, the body and the secret"
        return rejected(Reason.SIGNATURE_MISMATCH, detail)
    return Signed(int(times[0]))


def sign(sending: Sending) -> dict[str, str]:
    if sending.signature.header not in {None, HEADER}:
        return generic.sign(sending)
    signature = hex_hmac.digest(sending.secret, f"{sending.at_s}.".encode() + sending.body).hex()
    return {HEADER: f"t={sending.at_s},v1={signature}"}


def read(label: str, headers: Headers, document: dict[str, Any]) -> Said | Malformed:
    kind = text_at(document, "type")
    if kind is None:
        return generic.read_raw(label, headers, document)
    return Said(kind, text_at(document, "id"), document)


SOURCE = Source(verify, read, sign, HEADER)
