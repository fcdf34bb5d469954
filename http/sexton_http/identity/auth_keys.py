"""Keys of the sign-in that never leave the server, all derived from one secret of the installation."""

import base64
import binascii
import hashlib
import hmac
from collections.abc import Callable, Sequence
from typing import Final
from uuid import UUID

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from sexton_storage.records.auth_sessions import ORIGIN_PARTS

SECRET_BYTES: Final = 32
NONCE_BYTES: Final = 12
SIGNATURE_BYTES: Final = hashlib.sha256().digest_size


class AuthKeys:
    """MACs what is too short to hash, seals what must be read again, signs what comes back from strangers."""

    def __init__(self, secret: bytes, new_token: Callable[[int], str]) -> None:
        self._code = _derive(secret, b"code")
        self._client = _derive(secret, b"client")
        self._origin = _derive(secret, b"origin")
        self._state = _derive(secret, b"state")
        self._cipher = AESGCM(_derive(secret, b"seal"))
        self._new_token = new_token

    def __repr__(self) -> str:
        return "<AuthKeys>"

    def code_mac(self, session_id: UUID, code: str) -> bytes:
        """Hash six digits with a key: a plain hash would be found by trying a million."""
        return hmac.digest(self._code, session_id.bytes + code.encode(), "sha256")

    def client_mac(self, session_id: UUID, address: str) -> bytes:
        """Who was answered, without keeping his address."""
        return hmac.digest(self._client, session_id.bytes + address.encode(), "sha256")

    def origin_mac(self, networks: Sequence[str]) -> bytes:
        """From where somebody began, to be counted by, without keeping his address.

        ``networks`` are as many as ``ORIGIN_PARTS``, from wide to narrow.
        """
        macs = [hmac.digest(self._origin, network.encode(), "sha256") for network in networks]
        return b"".join(mac[:size] for mac, size in zip(macs, ORIGIN_PARTS, strict=True))

    def seal(self, text: str, identity: bytes) -> bytes:
        """Sealed for one place: only the same ``identity`` opens it."""
        nonce = bytes.fromhex(self._new_token(NONCE_BYTES))
        return nonce + self._cipher.encrypt(nonce, text.encode(), identity)

    def open(self, sealed: bytes, identity: bytes) -> str:
        """The text. Raises ValueError for what was not sealed here, or for another place."""
        try:
            plain = self._cipher.decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], identity)
        except (InvalidTag, ValueError):
            raise ValueError("these bytes were not sealed for this place") from None
        return plain.decode()

    def sign(self, payload: bytes) -> str:
        """The payload with a signature, fit for an address."""
        return _text(payload + hmac.digest(self._state, payload, "sha256"))

    def check(self, signed: str) -> bytes | None:
        """The payload of what was signed here; None for anything else."""
        try:
            raw = base64.b64decode(signed + "=" * (-len(signed) % 4), altchars=b"-_", validate=True)
        except (binascii.Error, ValueError):
            return None
        payload, signature = raw[:-SIGNATURE_BYTES], raw[-SIGNATURE_BYTES:]
        if not hmac.compare_digest(signature, hmac.digest(self._state, payload, "sha256")):
            return None
        return payload if _text(raw) == signed else None


def _derive(secret: bytes, purpose: bytes) -> bytes:
    return HKDF(SHA256(), SECRET_BYTES, salt=None, info=b"sexton sign-in " + purpose).derive(secret)


def _text(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
