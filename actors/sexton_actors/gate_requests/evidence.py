"""Shows whoever decides about an event what came, from whom, and how far the agent can reach with it."""

import re
from collections.abc import Collection, Mapping
from typing import Any, Final

import msgspec

from sexton_actors.amounts import NANOS_PER_DOLLAR
from sexton_actors.manifest.model import Manifest

MAX_EVIDENCE_BYTES: Final = 8 * 1024
MAX_MESSAGE_CHARS: Final = 2_000
MAX_URL_CHARS: Final = 2_048
MAX_REACH_CHARS: Final = 1_024
MASKED: Final = "[masked]"
LEAST_SECRET_CHARS: Final = 6
"""A shorter value is found in too much that is none."""

_MAX_DEPTH = 5
_SHAPES = ((1_024, 32), (256, 16), (64, 8), (16, 4))
"""Characters of a text and items of a list or mapping, tried in turn until all has room."""
_SECRET_KEY = re.compile(
    r"secret|token|passw|api[-_]?key|authorization|credential|private[-_]?key|cookie", re.IGNORECASE
)
_SECRET_TEXT = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"
    r"|\b(?:zmb_[ta]|zrn|zre|zap|zwh)_[A-Za-z0-9_-]{20,}"
    r"|\b(?:gh[pousr]_|github_pat_|glpat-|whsec_|sk-|sk_live_|rk_live_|xox[abeprs]-|AIza)[A-Za-z0-9_-]{10,}"
    r"|\bAKIA[0-9A-Z]{16}\b"
    r"|\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*"
    r"|(?<=\bBearer )[A-Za-z0-9._~+/=-]{12,}",
    re.DOTALL,
)


def evidence_of(
    actor: str, event_type: str, request: Mapping[str, Any], secrets: Collection[str]
) -> dict[str, Any]:
    """What came: its words, sender and link where they can be found, and the payload, bounded and masked.

    >>> evidence_of("steer:ann", "message", {"message": "Deploy with hunter22!"}, ["hunter22"])["message"]
    'Deploy with [masked]!'
    """
    told: dict[str, Any] = {"event_type": event_type, "actor": actor}
    for name, found, most in (
        ("sender", _sender(request), 256),
        ("message", _message(request), MAX_MESSAGE_CHARS),
        ("url", _url(request), MAX_URL_CHARS),
    ):
        if found:
            told[name] = _bounded(masked(found, secrets), most)
    whole = _masked(request, secrets, 0)
    for chars, items in _SHAPES:
        shown = {**told, "payload": _cut(whole, chars, items)}
        if len(msgspec.json.encode(shown)) <= MAX_EVIDENCE_BYTES:
            return shown
    few = {name: _bounded(text, 256) for name, text in told.items()}
    return {**few, "payload": "[too large to be shown]"}


def reach_of(manifest: Manifest) -> str:
    """What the agent could do if the event is let in, by its own files."""
    budget = manifest.budget_daily_nanos
    parts = [
        f"runs as {manifest.runtime}",
        f"tools: {', '.join(manifest.tools) or 'none'}",
        f"hosts: {', '.join(manifest.network_reach) or 'none'}",
        f"credentials: {', '.join((*manifest.credentials, *manifest.integrations)) or 'none'}",
        *([f"MCP servers: {', '.join(manifest.mcp_servers)}"] if manifest.mcp_servers else ()),
        f"at most {budget / NANOS_PER_DOLLAR:g} dollars a day" if budget else "no budget of its own",
    ]
    return _bounded("; ".join(parts), MAX_REACH_CHARS)


def masked(text: str, secrets: Collection[str]) -> str:
    """Take out the values given, the longest first, and whatever has the form of a well-known secret.

    >>> masked("Authorization: Bearer abcdefghijklmnop", [])
    'Authorization: Bearer [masked]'
    """
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= LEAST_SECRET_CHARS:
            text = text.replace(secret, MASKED)
    return _SECRET_TEXT.sub(MASKED, text)


def _masked(value: Any, secrets: Collection[str], depth: int) -> Any:
    """Masked before it is cut: half a secret would not be known again."""
    match value:
        case str():
            return masked(value, secrets)
        case Mapping() if depth < _MAX_DEPTH:
            return {
                masked(str(key), secrets): MASKED
                if isinstance(each, str) and each and _SECRET_KEY.search(str(key))
                else _masked(each, secrets, depth + 1)
                for key, each in value.items()
            }
        case list() | tuple() if depth < _MAX_DEPTH:
            return [_masked(each, secrets, depth + 1) for each in value]
        case Mapping() | list() | tuple():
            return "…"
        case _:
            return value


def _cut(value: Any, chars: int, items: int) -> Any:
    match value:
        case str():
            return _bounded(value, chars)
        case dict():
            kept = {_bounded(key, chars): _cut(value[key], chars, items) for key in list(value)[:items]}
            return kept if len(value) <= items else {**kept, "…": f"{len(value) - items} more"}
        case list():
            kept_items = [_cut(each, chars, items) for each in value[:items]]
            return kept_items if len(value) <= items else [*kept_items, f"… {len(value) - items} more"]
        case _:
            return value


def _sender(request: Mapping[str, Any]) -> str:
    return _first_text(
        request, ("actor", "sender", "user", "from", "author"), ("login", "name", "email", "id")
    )


def _message(request: Mapping[str, Any]) -> str:
    return _first_text(request, ("message", "text", "title", "subject", "body"), ("text", "title", "body"))


def _url(request: Mapping[str, Any]) -> str:
    found = _first_text(request, ("url", "html_url", "link"), ())
    return found if found.startswith(("https://", "http://")) else ""


def _first_text(request: Mapping[str, Any], names: tuple[str, ...], within: tuple[str, ...]) -> str:
    """The first of these fields with words in it, of the payload, its data, or a mapping under the name."""
    data = request.get("data")
    for place in (request, data if isinstance(data, Mapping) else {}):
        for name in names:
            value = place.get(name)
            if isinstance(value, Mapping):
                value = next((value[key] for key in within if isinstance(value.get(key), str)), None)
            if isinstance(value, str) and value.strip():
                return value
    return ""


def _bounded(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
