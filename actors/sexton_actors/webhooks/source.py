"""What every sender's module offers, and the small things they share."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from sexton_actors.manifest.model import Signature
from sexton_actors.webhooks.model import Challenge, Headers, Malformed, Ping, Rejected

MAX_EVENT_TYPE_CHARS = 128
MAX_SENDER_ID_CHARS = 255


class Attempt(msgspec.Struct, frozen=True):
    """A delivery that says that it is genuine. ``secrets`` holds at least one, and none is empty."""

    signature: Signature
    headers: Headers
    body: bytes
    secrets: Sequence[str]


class Sending(msgspec.Struct, frozen=True):
    """A delivery that is to be signed as its sender would."""

    signature: Signature
    secret: str
    body: bytes
    at_s: int
    """In Unix seconds."""
    delivery: str
    """The sender's id for it."""
    event_type: str = ""
    """For a sender that names the event outside the body."""

    @property
    def event(self) -> str:
        """The event's name without what happened to it."""
        return self.event_type.partition(".")[0]


class Signed(msgspec.Struct, frozen=True):
    """The signature is right; ``at_s`` is the time that was signed with it, if any, in Unix seconds."""

    at_s: int | None = None


class Said(msgspec.Struct, frozen=True):
    """What a sender's delivery says; ``sender_id`` is its own name for it."""

    event_type: str
    sender_id: str | None
    payload: dict[str, Any]
    """The body's own object, or one that holds it as ``raw``."""


Reader = Callable[[str, Headers, dict[str, Any]], Said | Ping | Challenge | Malformed]
"""Is given the trigger's label, the headers and the body's object."""


class Source(msgspec.Struct, frozen=True):
    verify: Callable[[Attempt], Signed | Rejected]
    read: Reader
    sign: Callable[[Sending], dict[str, str]]
    """The headers that such a sender adds. Raises ValueError where the secret is not of the sender's form."""
    header: str | None = None
    """Where it signs, unless a trigger says otherwise; None: the trigger must say it."""
    prefix: str = ""
    ts_header: str | None = None


def is_line(text: str, most: int) -> bool:
    """Whether this may stand as an event's type or id: one short, printable line."""
    return 1 <= len(text) <= most and text.isprintable()


def dotted(event: str, action: str | None) -> str:
    return f"{event}.{action}" if action else event


def text_at(document: object, *path: str) -> str | None:
    """The text at the end of the path, None when there is none or something else stands there.

    >>> text_at({"sender": {"login": "octocat"}}, "sender", "login")
    'octocat'
    """
    for key in path:
        document = document.get(key) if isinstance(document, dict) else None
    return document if isinstance(document, str) and document else None


def normalised(
    label: str, event: str, action: str | None, raw: dict[str, Any], **known: str | None
) -> dict[str, Any]:
    """The shape in which a native source's event reaches an agent: what is not known is left out."""
    facts = {name: value for name, value in known.items() if value is not None}
    return {"source": label, "event": event, "action": action, **facts, "raw": raw}
