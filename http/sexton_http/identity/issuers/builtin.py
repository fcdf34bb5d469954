"""The built-in issuer: one EdDSA key, made at first start, that signs user tokens for fifteen minutes."""

import base64
import hashlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, Final
from uuid import UUID

import jwt
import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from sexton_http.answers import Problem
from sexton_http.identity.context import Claims
from sexton_storage.records.users import Role

ALGORITHM: Final = "EdDSA"
ISSUER: Final = "sexton"
AUDIENCE: Final = "sexton"
TOKEN_S: Final = 15 * 60
LEEWAY_S: Final = 30
_REQUIRED: Final = ["iss", "sub", "aud", "exp"]


class BuiltinIssuer:
    """Signs and checks with one key. Time is handed in; PyJWT's own clock is never asked."""

    def __init__(self, key: Ed25519PrivateKey) -> None:
        self._key = key
        raw = key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
        self._x = base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
        thumbprint = hashlib.sha256(f'{{"crv":"Ed25519","kty":"OKP","x":"{self._x}"}}'.encode()).digest()
        self.key_id = base64.urlsafe_b64encode(thumbprint).rstrip(b"=").decode()
        """The key's RFC 7638 thumbprint."""

    def __repr__(self) -> str:
        return f"<BuiltinIssuer {self.key_id}>"

    @classmethod
    def from_bytes(cls, raw: bytes) -> "BuiltinIssuer":
        """From the 32 bytes of a private key."""
        return cls(Ed25519PrivateKey.from_private_bytes(raw))

    def to_bytes(self) -> bytes:
        """The 32 bytes of the private key; to be sealed before they are kept."""
        return self._key.private_bytes(Encoding.Raw, PrivateFormat.Raw, NoEncryption())

    @property
    def name(self) -> str:
        return ISSUER

    @property
    def jwks(self) -> Mapping[str, object]:
        key = {
            "kty": "OKP",
            "crv": "Ed25519",
            "x": self._x,
            "kid": self.key_id,
            "alg": ALGORITHM,
            "use": "sig",
        }
        return {"keys": [key]}

    def mint(
        self,
        *,
        subject: str,
        tenant_id: UUID,
        role: Role,
        now_s: float,
        workspace_id: UUID | None = None,
        platform_admin: bool = False,
        browser: UUID | None = None,
        device: UUID | None = None,
    ) -> str:
        claims: dict[str, Any] = {
            "iss": ISSUER,
            "aud": AUDIENCE,
            "sub": subject,
            "iat": int(now_s),
            "exp": int(now_s) + TOKEN_S,
            "tenant_id": str(tenant_id),
            "role": role.value,
            "platform_admin": platform_admin,
        }
        if workspace_id is not None:
            claims["workspace_id"] = str(workspace_id)
        if browser is not None:
            claims["browser"] = str(browser)
        if device is not None:
            claims["device"] = str(device)
        return jwt.encode(claims, self._key, ALGORITHM, {"kid": self.key_id})

    async def verify(self, token: str, now_s: float) -> Claims:
        """Only this key and this algorithm count, whatever the token's header says."""
        try:
            if jwt.get_unverified_header(token).get("kid") != self.key_id:
                raise _unauthorized("the token was signed with a key that is not known here")
            claims = jwt.decode(
                token,
                self._key.public_key(),
                [ALGORITHM],
                audience=AUDIENCE,
                issuer=ISSUER,
                options={"require": _REQUIRED, "verify_exp": False, "verify_nbf": False, "verify_iat": False},
            )
        except (jwt.PyJWTError, RecursionError) as fault:
            raise _unauthorized("the token is not valid") from fault
        known = read_claims(claims, now_s)
        browser, device = (UUID(claims[name]) if name in claims else None for name in ("browser", "device"))
        return replace(known, browser=browser, device=device)


class _Wire(msgspec.Struct, frozen=True):
    iss: str
    sub: Annotated[str, msgspec.Meta(min_length=1)]
    exp: float
    tenant_id: UUID
    role: str
    workspace_id: UUID | None = None
    platform_admin: bool = False
    nbf: float = 0.0


def read_claims(claims: Mapping[str, Any], now_s: float) -> Claims:
    """Check the times and take what we know; the signature has been checked before, by any issuer."""
    try:
        wire = msgspec.convert(claims, _Wire)
    except msgspec.ValidationError as fault:
        raise _unauthorized("the token lacks a claim, or has one of the wrong type") from fault
    if now_s >= wire.exp + LEEWAY_S:
        raise Problem("UZ-AUTH-003", "the token has expired")
    if now_s < wire.nbf - LEEWAY_S:
        raise _unauthorized("the token is not valid yet")
    return Claims(
        wire.iss, wire.sub, wire.tenant_id, wire.role, wire.workspace_id, wire.platform_admin, int(wire.exp)
    )


def _unauthorized(detail: str) -> Problem:
    return Problem("UZ-AUTH-002", detail)
