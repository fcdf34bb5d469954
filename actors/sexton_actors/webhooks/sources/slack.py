"""Slack: signs version, time and body; sends events, interactions and a challenge for a new address."""

from typing import Any

from sexton_actors.manifest.model import Signature
from sexton_actors.webhooks import hex_hmac
from sexton_actors.webhooks.model import Challenge, Headers, Malformed, Rejected
from sexton_actors.webhooks.source import Attempt, Said, Sending, Signed, Source, normalised, text_at

HEADER = "x-slack-signature"
PREFIX = "v0="
TS_HEADER = "x-slack-request-timestamp"
MAX_CHALLENGE_CHARS = 1_024


def verify(attempt: Attempt) -> Signed | Rejected:
    return hex_hmac.verify(_scheme(attempt.signature), attempt)


def sign(sending: Sending) -> dict[str, str]:
    return hex_hmac.sign(_scheme(sending.signature), sending)


def _scheme(signature: Signature) -> hex_hmac.Scheme:
    return hex_hmac.Scheme(
        signature.header or HEADER,
        PREFIX if signature.prefix is None else signature.prefix,
        signature.ts_header or TS_HEADER,
        lambda at, body: b"v0:" + at.encode() + b":" + body,
    )


def read(label: str, _headers: Headers, document: dict[str, Any]) -> Said | Challenge | Malformed:
    kind = text_at(document, "type")
    if kind is None:
        return Malformed("`type` is missing")
    if kind == "url_verification":
        return _challenge(document)
    event = text_at(document, "event", "type") or kind
    payload = normalised(
        label,
        event,
        text_at(document, "event", "subtype") or _first_action(document),
        document,
        team=text_at(document, "team_id") or text_at(document, "team", "id"),
        actor=text_at(document, "event", "user") or text_at(document, "user", "id"),
    )
    return Said(event, text_at(document, "event_id"), payload)


def _challenge(document: dict[str, Any]) -> Challenge | Malformed:
    word = text_at(document, "challenge")
    if word is None or len(word) > MAX_CHALLENGE_CHARS:
        return Malformed(f"`challenge` must be text of 1 to {MAX_CHALLENGE_CHARS} characters")
    return Challenge(word)


def _first_action(document: dict[str, Any]) -> str | None:
    actions = document.get("actions")
    return text_at(actions[0], "action_id") if isinstance(actions, list) and actions else None


SOURCE = Source(verify, read, sign, HEADER, PREFIX, TS_HEADER)
