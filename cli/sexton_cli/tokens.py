"""Recognises the kinds of tokens, and reads the claims of a user token."""

import base64
import binascii
from dataclasses import dataclass, field
from typing import Final

import msgspec

API_KEY: Final = "zmb_t_"
JWT_PARTS: Final = 3
MAX_CHARS: Final = 16_384
SHOWN_CHARS: Final = 4
MAX_EXP_S: Final = 253_402_300_799
"""The end of the year 9999, as far as dates can be spelled."""


class Claims(msgspec.Struct, frozen=True):
    """What a user token claims. Nobody has checked it here: the server does that with every call."""

    sub: str = ""
    role: str | None = None
    tenant_id: str | None = None
    workspace_id: str | None = None
    platform_admin: bool = False
    device: str | None = None
    """The terminal that it was approved for."""
    exp: float | None = None
    """Unix seconds."""

    @property
    def expires_at_ms(self) -> int | None:
        """Unix ms; None for a time that nobody can mean."""
        return int(self.exp * 1000) if self.exp is not None and 0 <= self.exp <= MAX_EXP_S else None


@dataclass(frozen=True, slots=True)
class Token:
    """A token and where it was found. Its value stays out of every text made of it."""

    value: str = field(repr=False)
    source: str

    @property
    def is_api_key(self) -> bool:
        return self.value.startswith(API_KEY)

    @property
    def hint(self) -> str:
        """Enough to tell one's own keys apart, and far too little to guess one.

        >>> Token("zmb_t_0123456789abcdef", "--token").hint
        'zmb_t_…cdef'
        >>> Token("a.b.c", "--token").hint
        'a user token'
        """
        return f"{API_KEY}…{self.value[-SHOWN_CHARS:]}" if self.is_api_key else "a user token"

    def claims(self) -> Claims | None:
        """The claims of a user token; None for any other.

        >>> Token("e30.eyJzdWIiOiJ1In0.c2ln", "--token").claims().sub
        'u'
        """
        parts = self.value.split(".")
        if len(parts) != JWT_PARTS:
            return None
        try:
            raw = base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4))
            return msgspec.json.decode(raw, type=Claims)
        except (binascii.Error, ValueError, RecursionError):
            return None


def well_formed(value: str) -> bool:
    """Whether this can stand in a header at all.

    >>> well_formed("zmb_t_00"), well_formed("two words"), well_formed("")
    (True, False, False)
    """
    return 0 < len(value) <= MAX_CHARS and value.isascii() and value.isprintable() and " " not in value
