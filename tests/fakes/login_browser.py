"""The other side of a sign-in: somebody in a browser, written after the contract alone."""

import base64
import os
import secrets
from typing import Any

import httpx2
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

SPKI = (serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)


def unpadded(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def unpacked(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def sealed_for(public_key: str, token: str) -> dict[str, str]:
    """The three parts that open to ``token`` with the private half of ``public_key``."""
    theirs = serialization.load_der_public_key(unpacked(public_key))
    assert isinstance(theirs, ec.EllipticCurvePublicKey)
    ours = ec.generate_private_key(ec.SECP256R1())
    derived = HKDF(hashes.SHA256(), 32, salt=None, info=b"m74-002-v1").derive(
        ours.exchange(ec.ECDH(), theirs)
    )
    nonce = os.urandom(12)
    return {
        "dashboard_public_key": unpadded(ours.public_key().public_bytes(*SPKI)),
        "ciphertext": unpadded(AESGCM(derived).encrypt(nonce, token.encode(), None)),
        "nonce": unpadded(nonce),
    }


class Browser:
    """A person who approves terminals with a token of their own."""

    def __init__(self, base_url: str, bearer: str) -> None:
        self._base_url = base_url
        self._headers = {"authorization": f"Bearer {bearer}"}

    def session(self, login_url: str) -> dict[str, Any]:
        """What the server says of the session that this address is about."""
        session_id = login_url.rstrip("/").rpartition("/")[2]
        answer = httpx2.get(f"{self._base_url}/v1/auth/sessions/{session_id}")
        assert answer.status_code == 200, answer.text
        seen: dict[str, Any] = answer.json()
        return seen

    def approve(self, login_url: str, token: str, *, public_key: str | None = None) -> str:
        """Hand the token over; the six digits that the page would show."""
        session = self.session(login_url)
        code = f"{secrets.randbelow(10**6):06}"
        body = {**sealed_for(public_key or session["cli_public_key"], token), "verification_code": code}
        path = f"{self._base_url}/v1/auth/sessions/{session['session_id']}/approve"
        answer = httpx2.patch(path, json=body, headers=self._headers)
        assert answer.status_code == 200, answer.text
        return code

    def abort(self, login_url: str) -> None:
        session_id = self.session(login_url)["session_id"]
        answer = httpx2.delete(f"{self._base_url}/v1/auth/sessions/{session_id}", headers=self._headers)
        assert answer.status_code == 204, answer.text


def another_than(code: str) -> str:
    """Six digits that are not these."""
    return f"{(int(code) + 1) % 10**6:06}"
