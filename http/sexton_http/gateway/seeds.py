"""Where ids and secrets come from when the same request must make the same things twice."""

import hmac
from uuid import UUID

import msgspec

_VERSION = 7
_VARIANT = 2


class Seed(msgspec.Struct, frozen=True):
    """A secret of one request and the time at which it first came."""

    secret: bytes
    at_ms: int

    @property
    def id(self) -> UUID:
        """A UUIDv7, whose random part comes of the secret.

        >>> Seed(b"s", 1_700_000_000_000).id.version
        7
        """
        random = int.from_bytes(hmac.digest(self.secret, b"id", "sha256"))
        high, low = random >> 62 & 0xFFF, random & (1 << 62) - 1
        return UUID(int=self.at_ms << 80 | _VERSION << 76 | high << 64 | _VARIANT << 62 | low)

    @property
    def key(self) -> bytes:
        """What an event that is made is known by, so that it is made once."""
        return hmac.digest(self.secret, b"key", "sha256")

    def token(self, size: int) -> str:
        """``size`` bytes in hex, at most 32."""
        return hmac.digest(self.secret, b"token", "sha256")[:size].hex()


def key_of(seed: Seed | None) -> bytes | None:
    """What the event of a request is known by; None where the request came without a key."""
    return None if seed is None else seed.key
