"""Receives a token from the browser, sealed so that the server between them cannot read it."""

import base64
import binascii
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_der_public_key

INFO: Final = b"m74-002-v1"
KEY_BYTES: Final = 32
NONCE_BYTES: Final = 12


class NotForUs(Exception):
    """What was handed over cannot be opened with this key pair."""


class TokenReceiver:
    """One key pair of P-256, for one sign-in. It is never written anywhere."""

    def __init__(self, private: ec.EllipticCurvePrivateKey | None = None) -> None:
        self._private = ec.generate_private_key(ec.SECP256R1()) if private is None else private

    def __repr__(self) -> str:
        return f"<TokenReceiver {self.public_key[-8:]}>"

    @property
    def public_key(self) -> str:
        """SPKI in DER, base64url without padding."""
        der = self._private.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        return encode(der)

    def open(self, *, dashboard_public_key: str, ciphertext: str, nonce: str) -> str:
        """The token. Raises NotForUs."""
        try:
            theirs = load_der_public_key(decode(dashboard_public_key))
            if not isinstance(theirs, ec.EllipticCurvePublicKey):
                raise NotForUs("the other side's key is not of an elliptic curve")
            sealed, once = decode(ciphertext), decode(nonce)
            if len(once) != NONCE_BYTES:
                raise NotForUs("the nonce is not of twelve bytes")
            secret = self._private.exchange(ec.ECDH(), theirs)
            return AESGCM(derive(secret)).decrypt(once, sealed, None).decode("ascii")
        except InvalidTag as fault:
            raise NotForUs("the seal is broken") from fault
        except ValueError as fault:
            raise NotForUs("the hand-over is malformed") from fault


def derive(secret: bytes) -> bytes:
    """The key of AES-256-GCM from what ECDH agreed on: HKDF-SHA256, empty salt."""
    return HKDF(algorithm=SHA256(), length=KEY_BYTES, salt=b"", info=INFO).derive(secret)


def encode(raw: bytes) -> str:
    """Base64url without padding."""
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def decode(text: str) -> bytes:
    r"""Base64url, with or without padding. Raises ValueError for anything else.

    >>> decode(encode(b"two")), decode("_-8=")
    (b'two', b'\xff\xef')
    """
    try:
        body = text.rstrip("=").translate({ord("-"): "+", ord("_"): "/"})
        return base64.b64decode(body + "=" * (-len(body) % 4), validate=True)
    except binascii.Error as fault:
        raise ValueError("this is not base64url") from fault
