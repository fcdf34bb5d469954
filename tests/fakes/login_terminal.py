"""The terminal's half of the device login, and the browser's, as their makers would write them."""

import base64
import os
from dataclasses import dataclass, field

from cryptography.hazmat.primitives.asymmetric.ec import (
    ECDH,
    SECP256R1,
    EllipticCurvePrivateKey,
    EllipticCurvePublicKey,
    generate_private_key,
)
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_der_public_key

INFO = b"m74-002-v1"


def text(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def raw(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


@dataclass
class Party:
    """One key pair, and what can be done with the other's public key."""

    key: EllipticCurvePrivateKey = field(default_factory=lambda: generate_private_key(SECP256R1()))

    @property
    def public_key(self) -> str:
        return text(self.key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo))

    def encrypt(self, token: str, other: str) -> tuple[str, str]:
        """Ciphertext and nonce."""
        nonce = os.urandom(12)
        return text(self._cipher(other).encrypt(nonce, token.encode(), None)), text(nonce)

    def decrypt(self, ciphertext: str, nonce: str, other: str) -> str:
        return self._cipher(other).decrypt(raw(nonce), raw(ciphertext), None).decode()

    def _cipher(self, other: str) -> AESGCM:
        theirs = load_der_public_key(raw(other))
        assert isinstance(theirs, EllipticCurvePublicKey)
        shared = self.key.exchange(ECDH(), theirs)
        return AESGCM(HKDF(SHA256(), 32, salt=None, info=INFO).derive(shared))
