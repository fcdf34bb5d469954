"""Checks what terminal and browser send each other through the server, which can read none of it."""

import base64
import binascii
import re
from typing import Final

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePublicKey
from cryptography.hazmat.primitives.serialization import load_der_public_key

from sexton_http.answers import Problem

SPKI_BYTES: Final = 91
"""The size of an uncompressed P-256 point: there is one form, so a key has one spelling."""
NONCE_BYTES: Final = 12
TAG_BYTES: Final = 16
MAX_CIPHERTEXT_CHARS: Final = 16 * 1024
MAX_NAME_CHARS: Final = 64
_ALPHABET: Final = re.compile(r"[A-Za-z0-9_-]+={0,2}")
_CODE: Final = re.compile(r"[0-9]{6}")


def check_public_key(text: str) -> str:
    """A point of P-256 as SPKI DER in base64url. Raises Problem UZ-AUTH-016."""
    raw = _decode(text)
    if raw is None or len(raw) != SPKI_BYTES:
        raise Problem("UZ-AUTH-016", "the public key is not the SPKI form of a P-256 key in base64url")
    try:
        key = load_der_public_key(raw)
    except (ValueError, UnsupportedAlgorithm) as fault:
        raise Problem("UZ-AUTH-016", "the public key is no point of P-256") from fault
    if not isinstance(key, EllipticCurvePublicKey) or not isinstance(key.curve, SECP256R1):
        raise Problem("UZ-AUTH-016", "the public key is of another curve")
    return text


def check_ciphertext(text: str) -> str:
    """Some bytes and their tag. Raises Problem UZ-AUTH-019."""
    raw = _decode(text) if len(text) <= MAX_CIPHERTEXT_CHARS else None
    if raw is None or len(raw) <= TAG_BYTES:
        raise Problem("UZ-AUTH-019", "the ciphertext is not base64url of some bytes and a tag of sixteen")
    return text


def check_nonce(text: str) -> str:
    """Raises Problem UZ-AUTH-020."""
    raw = _decode(text)
    if raw is None or len(raw) != NONCE_BYTES:
        raise Problem("UZ-AUTH-020", "the nonce is not base64url of twelve bytes")
    return text


def check_code(text: str) -> str:
    """Six digits. Raises Problem UZ-AUTH-018.

    >>> check_code("012345")
    '012345'
    """
    if _CODE.fullmatch(text) is None:
        raise Problem("UZ-AUTH-018", "the verification code is six digits from 0 to 9")
    return text


def check_token_name(text: str) -> str:
    """A name that can be shown: 1 to 64 printable characters, no blank at an end. Raises Problem UZ-AUTH-017.

    >>> check_token_name("laptop, upstairs")
    'laptop, upstairs'
    """
    if not 1 <= len(text) <= MAX_NAME_CHARS or not text.isprintable() or text != text.strip():
        raise Problem("UZ-AUTH-017", f"a token name is 1 to {MAX_NAME_CHARS} printable characters")
    return text


def _decode(text: str) -> bytes | None:
    if _ALPHABET.fullmatch(text) is None:
        return None
    bare = text.rstrip("=")
    try:
        return base64.urlsafe_b64decode(bare + "=" * (-len(bare) % 4))
    except (binascii.Error, ValueError):
        return None
