"""HMAC-SHA256 in hexadecimal: the signature that most senders use."""

import hashlib
import hmac
import re
from collections.abc import Callable

import msgspec

from sexton_actors.webhooks.model import Reason, Rejected, rejected
from sexton_actors.webhooks.source import Attempt, Sending, Signed

_DIGEST = re.compile("[0-9a-fA-F]{64}")
_SECONDS = re.compile("[0-9]{1,12}")


class Scheme(msgspec.Struct, frozen=True):
    """``signed`` joins the time, as it was sent, and the body; without a ``ts_header`` there is no time."""

    header: str
    prefix: str
    ts_header: str | None
    signed: Callable[[str, bytes], bytes]


def verify(scheme: Scheme, attempt: Attempt) -> Signed | Rejected:
    """Compare in constant time with every secret of the rotation, over the raw bytes."""
    given = _digest(scheme, attempt)
    if isinstance(given, Rejected):
        return given
    at = seconds(attempt, scheme.ts_header) if scheme.ts_header else ""
    if isinstance(at, Rejected):
        return at
    signed = scheme.signed(at, attempt.body)
    matches = [hmac.compare_digest(digest(secret, signed), given) for secret in attempt.secrets]
    if not any(matches):
        return rejected(Reason.SIGNATURE_MISMATCH, "the signature does not fit the body and the secret")
    return Signed(int(at) if at else None)


def sign(scheme: Scheme, sending: Sending) -> dict[str, str]:
    """The headers that ``verify`` takes."""
    at = str(sending.at_s) if scheme.ts_header else ""
    signature = digest(sending.secret, scheme.signed(at, sending.body)).hex()
    stamped = {scheme.ts_header: at} if scheme.ts_header else {}
    return {scheme.header: scheme.prefix + signature, **stamped}


def digest(secret: str, signed: bytes) -> bytes:
    return hmac.digest(secret.encode("utf-8", "surrogatepass"), signed, hashlib.sha256)


def seconds(attempt: Attempt, header: str) -> str | Rejected:
    """The time of the header as it was sent; only digits, so that no two spellings are signed alike."""
    at = attempt.headers.get(header)
    if not at:
        return rejected(Reason.SIGNATURE_MISSING, f"the header {header} is missing")
    if not _SECONDS.fullmatch(at):
        return rejected(Reason.SIGNATURE_MALFORMED, f"the header {header} must hold Unix seconds")
    return at


def _digest(scheme: Scheme, attempt: Attempt) -> bytes | Rejected:
    value = attempt.headers.get(scheme.header)
    if not value:
        return rejected(Reason.SIGNATURE_MISSING, f"the header {scheme.header} is missing")
    if not value.startswith(scheme.prefix) or not _DIGEST.fullmatch(value, len(scheme.prefix)):
        form = f"{scheme.prefix}<64 hexadecimal digits>"
        return rejected(Reason.SIGNATURE_MALFORMED, f"the header {scheme.header} must read {form}")
    return bytes.fromhex(value[len(scheme.prefix) :])
