"""What can be asked of an auth session. Codes come as MACs, tokens sealed: no secret is ever in a message."""

import msgspec

from sexton_actors.protocol.attributed import Attributed
from sexton_actors.refusal import Refusal
from sexton_engine import Message
from sexton_storage.records.auth_sessions import AuthSession


class Seen(msgspec.Struct, frozen=True):
    """A session as it was when it was asked about. ``status`` may be ``expired``, which no record says."""

    session: AuthSession
    status: str
    sealed_token: bytes | None = None


class HandedOver(msgspec.Struct, frozen=True):
    """What the terminal opens with its private key."""

    dashboard_public_key: str
    ciphertext: str
    nonce: str


class Open(msgspec.Struct, Message[AuthSession | Refusal], frozen=True):
    """Make the session; asked once, with a fresh id."""

    public_key: str | None
    token_name: str | None
    origin: bytes | None = None
    """The MAC of the address that asks."""


class Read(msgspec.Struct, Message[Seen | Refusal], frozen=True):
    """Look. With ``take`` the token of a completed session goes along, and the session is consumed."""

    take: bool = True


class Complete(Attributed, Message[AuthSession | Refusal], frozen=True):
    """Attach a token; ``sealed_token`` opens only for this session."""

    sealed_token: bytes
    by: str


class Approve(Attributed, Message[AuthSession | Refusal], frozen=True):
    """Attach a token that only the terminal can read, behind a code that only the person sees."""

    dashboard_public_key: str
    ciphertext: str
    nonce: str
    code_mac: bytes
    by: str


class Verify(msgspec.Struct, Message[HandedOver | Refusal], frozen=True):
    """Hand over to whoever knows the code."""

    code_mac: bytes
    client_mac: bytes


class Abort(Attributed, Message[bool | Refusal], frozen=True):
    """End it; True when it was open until now."""


Ask = Read | Complete | Approve | Verify | Abort
