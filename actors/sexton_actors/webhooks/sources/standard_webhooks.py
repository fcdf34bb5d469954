"""Svix and all who follow Standard Webhooks: several signatures at once, over id, time and body."""

import base64
import binascii
import hmac
from collections.abc import Iterator
from functools import partial
from itertools import islice
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from sexton_actors.webhooks import hex_hmac
from sexton_actors.webhooks.model import Headers, Malformed, Reason, Rejected, rejected
from sexton_actors.webhooks.source import Attempt, Said, Sending, Signed, Source, text_at

MAX_PUBLIC_KEY_SIGNATURES = 64
"""The bound on private-key signatures in one header. Each costs a hash of the whole body, so a header full of
them would hold up everybody; shared secrets cost one hash each, however many signatures are compared."""

_SYMMETRIC = "whsec_"
_PUBLIC = "whpk_"
_ED25519_KEY_BYTES = 32


def verify(attempt: Attempt) -> Signed | Rejected:
    """Right as soon as one signature of the header fits one secret of the rotation.

    All secrets and all signatures count. Their number is bounded by the size of a credential in the vault and
    by that of a request's head.
    """
    family = _family(attempt.headers)
    message_id = attempt.headers.get(f"{family}-id")
    if not message_id:
        return rejected(Reason.SIGNATURE_MISSING, f"the header {family}-id is missing")
    at = hex_hmac.seconds(attempt, f"{family}-timestamp")
    if isinstance(at, Rejected):
        return at
    given = _signatures(attempt.headers.get(f"{family}-signature"), family)
    if isinstance(given, Rejected):
        return given
    keys = [key for secret in attempt.secrets for key in _key(secret)]
    if not keys:
        return rejected(
            Reason.CREDENTIAL_MISSING,
            "webhook_secret must read whsec_<base64> or whpk_<base64 of a public key>",
        )
    signed = f"{message_id}.{at}.".encode("utf-8", "surrogatepass") + attempt.body
    matches = [_fits(key, signed, given) for key in keys]
    if not any(matches):
        return rejected(
            Reason.SIGNATURE_MISMATCH, "no signature fits the id, the time, the body and the secret"
        )
    return Signed(int(at))


def sign(family: str, sending: Sending) -> dict[str, str]:
    if sending.secret.startswith(_PUBLIC):
        raise ValueError("a public key cannot sign: give the sender's own secret, whsec_<base64>")
    key = _decoded(sending.secret.removeprefix(_SYMMETRIC))
    if not key:
        raise ValueError("the secret must read whsec_<base64>")
    signed = f"{sending.delivery}.{sending.at_s}.".encode() + sending.body
    signature = base64.b64encode(hmac.digest(key, signed, "sha256")).decode()
    return {
        f"{family}-id": sending.delivery,
        f"{family}-timestamp": str(sending.at_s),
        f"{family}-signature": f"v1,{signature}",
    }


def read(label: str, headers: Headers, document: dict[str, Any]) -> Said | Malformed:
    message_id = headers.get(f"{_family(headers)}-id")
    return Said(text_at(document, "type") or label, message_id, document)


def _family(headers: Headers) -> str:
    """The vendor of these headers; verifying and reading both ask this, so the id read is the one signed."""
    return "svix" if "svix-signature" in headers else "webhook"


def _signatures(header: str | None, family: str) -> list[tuple[str, bytes]] | Rejected:
    """Version and bytes of each signature of a version that is known here; others are passed over."""
    if not header:
        return rejected(Reason.SIGNATURE_MISSING, f"the header {family}-signature is missing")
    found = []
    for word in header.split(" "):
        version, _, encoded = word.partition(",")
        signature = _decoded(encoded)
        if version in {"v1", "v1a"} and signature:
            found.append((version, signature))
    if not found:
        form = "v1,<base64> or v1a,<base64>, with spaces between"
        return rejected(Reason.SIGNATURE_MALFORMED, f"the header {family}-signature must read {form}")
    return found


def _key(secret: str) -> Iterator[bytes | Ed25519PublicKey]:
    """The key of one secret, none if it has neither form; without a prefix it is a symmetric one."""
    if secret.startswith(_PUBLIC):
        raw = _decoded(secret.removeprefix(_PUBLIC))
        if raw and len(raw) == _ED25519_KEY_BYTES:
            yield Ed25519PublicKey.from_public_bytes(raw)
    elif raw := _decoded(secret.removeprefix(_SYMMETRIC)):
        yield raw


def _fits(key: bytes | Ed25519PublicKey, signed: bytes, given: list[tuple[str, bytes]]) -> bool:
    if isinstance(key, bytes):
        expected = hmac.digest(key, signed, "sha256")
        return any(hmac.compare_digest(expected, each) for version, each in given if version == "v1")
    public = dict.fromkeys(each for version, each in given if version == "v1a")
    return any(_is_signed_by(key, signed, each) for each in islice(public, MAX_PUBLIC_KEY_SIGNATURES))


def _is_signed_by(key: Ed25519PublicKey, signed: bytes, signature: bytes) -> bool:
    try:
        key.verify(signature, signed)
    except InvalidSignature:
        return False
    return True


def _decoded(text: str) -> bytes | None:
    """Standard base64, with or without its padding; None when it is something else."""
    try:
        return base64.b64decode(text.rstrip("=") + "=" * (-len(text.rstrip("=")) % 4), validate=True)
    except (binascii.Error, ValueError):
        return None


SVIX = Source(verify, read, partial(sign, "svix"), "svix-signature", "v1,", "svix-timestamp")
STANDARD = Source(verify, read, partial(sign, "webhook"), "webhook-signature", "v1,", "webhook-timestamp")
