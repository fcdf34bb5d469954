"""Reads who pressed which button in a chat: the signed form that Slack sends, and nothing unsigned."""

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from sexton_actors.manifest.model import Signature
from sexton_actors.webhooks.bodies import read_object
from sexton_actors.webhooks.model import Headers, Malformed, Reason, Rejected, rejected
from sexton_actors.webhooks.source import Attempt, text_at
from sexton_actors.webhooks.sources import slack

PRESS_TOLERANCE_MS = 300_000
"""How far the signed time may be away from the server's, either way."""
MAX_USER_CHARS = 64
APPROVE, DENY = "approve", "deny"

_VALUE = re.compile(f"({APPROVE}|{DENY}):([^:\x00-\x1f]{{1,255}})")
_USER = re.compile(f"[A-Za-z0-9_-]{{1,{MAX_USER_CHARS}}}")
_SIGNATURE = Signature(secret_ref="")


class Press(msgspec.Struct, frozen=True):
    """A person's decision about ``subject``, the id that stands in the button's value."""

    approve: bool
    subject: str
    by: str
    """``slack:<user id>``."""
    team: str | None
    """The id of the chat workspace that it was pressed in."""


def is_signed_press(headers: Headers, body: bytes, secrets: Sequence[str], now_ms: int) -> Rejected | None:
    """None when one who knows one of ``secrets`` has signed the raw ``body`` just now."""
    usable = [secret for secret in secrets if secret]
    if not usable:
        return rejected(Reason.CREDENTIAL_MISSING, "no signing secret of a chat platform is configured")
    verdict = slack.verify(Attempt(_SIGNATURE, headers, body, usable))
    if isinstance(verdict, Rejected):
        return verdict
    if verdict.at_s is None or abs(now_ms - verdict.at_s * 1_000) > PRESS_TOLERANCE_MS:
        return rejected(Reason.STALE_TIMESTAMP, "the signed time is more than 300 s away from the server's")
    return None


def read_press(body: bytes) -> Press | Malformed:
    """What the first button says; never raises. Believe it only when ``is_signed_press`` found no fault.

    >>> read_press(b'{"user": {"id": "U7"}, "actions": [{"value": "approve:g1"}]}')
    Press(approve=True, subject='g1', by='slack:U7', team=None)
    >>> read_press(b'{"user": {"id": "U7"}, "actions": [{"value": "later"}]}')
    Malformed(detail='actions[0].value must read approve:<id> or deny:<id>')
    """
    document = read_object(body)
    if isinstance(document, Malformed):
        return document
    value = _VALUE.fullmatch(_first_value(document.get("actions")))
    if value is None:
        return Malformed(f"actions[0].value must read {APPROVE}:<id> or {DENY}:<id>")
    user = text_at(document, "user", "id")
    if user is None or _USER.fullmatch(user) is None:
        return Malformed("user.id must be the id of a member of the chat workspace")
    team = text_at(document, "team", "id") or text_at(document, "user", "team_id")
    return Press(value[1] == APPROVE, value[2], f"slack:{user}", team)


def _first_value(actions: Any) -> str:
    return (text_at(actions[0], "value") if isinstance(actions, list) and actions else None) or ""
