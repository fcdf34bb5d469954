"""Makes opaque tokens and knows them again: only the SHA-256 of one is ever kept."""

import hashlib
import hmac
from collections.abc import Callable
from enum import StrEnum
from typing import Final

TOKEN_BYTES: Final = 32


class TokenKind(StrEnum):
    """What a token begins with."""

    API_KEY = "zmb_t_"
    RUNNER = "zrn_"
    ENROLMENT = "zre_"
    APPROVAL = "zap_"
    AGENT = "zmb_a_"
    REFRESH = "zmb_r_"


def mint(kind: TokenKind, new_token: Callable[[int], str]) -> str:
    """A fresh token; shown once, to the one who asked for it."""
    return kind.value + new_token(TOKEN_BYTES)


def digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


def same(one: bytes, other: bytes) -> bool:
    """Whether two digests are equal, in a time that does not tell where they differ."""
    return hmac.compare_digest(one, other)
