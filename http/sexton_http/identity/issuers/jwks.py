"""The public keys of an issuer elsewhere: fetched, kept, and fetched again when a token names another."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import jwt
import msgspec
import structlog
import trio
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

from sexton_http.answers import Problem
from sexton_http.outbound.errors import Unreachable

FRESH_S: Final = 3600.0
"""Keys older than this are fetched again when next needed; a withdrawn key counts that long."""
FLOOR_S: Final = 30.0
"""Between two fetches, whatever tokens come: strangers make up key ids at will."""
RETRY_S: Final = 5.0
"""Between two fetches while there are no keys at all."""
MAX_KEYS: Final = 64
MIN_RSA_BITS: Final = 2048
AGAIN_S: Final = 5

log = structlog.get_logger()

Fetch = Callable[[], Awaitable[Mapping[str, Any]]]
"""Gives the key set as JSON. Raises Unreachable."""


class Key(msgspec.Struct, frozen=True):
    """A key, and the one algorithm that it is for: a token's header chooses a key, never an algorithm."""

    algorithm: str
    key: RSAPublicKey | EllipticCurvePublicKey | Ed25519PublicKey


def read_keys(document: Mapping[str, Any]) -> dict[str, Key]:
    """The keys of a set that we can use, by their ids; the others are skipped."""
    keys: dict[str, Key] = {}
    rows = document.get("keys")
    for row in rows[:MAX_KEYS] if isinstance(rows, list) else ():
        key = _read_key(row) if isinstance(row, dict) else None
        if key is not None:
            keys[str(row.get("kid", ""))] = key
    return keys


def _read_key(row: Mapping[str, Any]) -> Key | None:
    if row.get("use", "sig") != "sig" or "d" in row or row.get("kty") == "oct":
        return None
    try:
        key = jwt.PyJWK(dict(row), algorithm=_algorithm_of(row)).key
    except (jwt.PyJWTError, ValueError, TypeError, KeyError):
        return None
    algorithm = _fitting(key)
    return None if algorithm is None or row.get("alg", algorithm) != algorithm else Key(algorithm, key)


def _algorithm_of(row: Mapping[str, Any]) -> str:
    return {"RSA": "RS256", "EC": "ES256", "OKP": "EdDSA"}[row["kty"]]


def _fitting(key: object) -> str | None:
    match key:
        case RSAPublicKey():
            return "RS256" if key.key_size >= MIN_RSA_BITS else None
        case EllipticCurvePublicKey():
            return "ES256" if isinstance(key.curve, SECP256R1) else None
        case Ed25519PublicKey():
            return "EdDSA"
        case _:
            return None


def _usable(document: Mapping[str, Any]) -> dict[str, Key]:
    keys = read_keys(document)
    if not keys:
        raise Unreachable("there is no key in the set that can be used")
    return keys


class KeySet:
    """One issuer's keys. Time is handed in; of many who need a fetch, one makes it and all have it."""

    def __init__(self, issuer: str, fetch: Fetch, monotonic: Callable[[], float]) -> None:
        self._issuer = issuer
        self._fetch = fetch
        self._monotonic = monotonic
        self._keys: dict[str, Key] = {}
        self._fetched_at: float | None = None
        self._tried_at: float | None = None
        self._lock = trio.Lock()
        self._away = False

    def __repr__(self) -> str:
        return f"<KeySet {self._issuer}, {len(self._keys)} keys>"

    async def find(self, key_id: str | None) -> Key | None:
        """The key of that id, or the only one where none is named; None for one that the issuer lacks.

        Raises Problem UZ-AUTH-004 while nothing is known and the issuer cannot be reached.
        """
        known = self._choose(key_id)
        # A key that is known is not waited for while somebody is asking already: the issuer may be slow.
        if known is None or (self._is_stale() and not self._lock.locked()):
            async with self._lock:
                if self._is_stale() or self._choose(key_id) is None:
                    await self._refresh()
        if not self._keys:
            raise Problem("UZ-AUTH-004", f"the keys of {self._issuer} cannot be had", wait_s=AGAIN_S)
        return self._choose(key_id)

    def _choose(self, key_id: str | None) -> Key | None:
        if key_id is None:
            return next(iter(self._keys.values())) if len(self._keys) == 1 else None
        return self._keys.get(key_id)

    def _is_stale(self) -> bool:
        return self._fetched_at is None or self._monotonic() - self._fetched_at >= FRESH_S

    async def _refresh(self) -> None:
        now, floor = self._monotonic(), FLOOR_S if self._keys else RETRY_S
        if self._tried_at is not None and now - self._tried_at < floor:
            return
        self._tried_at = now
        try:
            keys = _usable(await self._fetch())
        except Unreachable as fault:
            # Tokens that are signed with a key we have can be checked without the issuer.
            if not self._away:
                log.warning("issuer_unreachable", issuer=self._issuer, fault=str(fault))
            self._away = True
            return
        self._away = False
        self._keys, self._fetched_at = keys, now
