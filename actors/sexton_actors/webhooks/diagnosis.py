"""Tells an agent's owner why a webhook's signature does not fit: what is amiss, never what would be right."""

import base64
import binascii
import re
from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec

from sexton_actors.manifest.model import Manifest, WebhookTrigger
from sexton_actors.webhooks.authentication import authenticate
from sexton_actors.webhooks.bodies import SMALL_BODY, read_object
from sexton_actors.webhooks.model import Genuine, Headers, Malformed, Reason, Rejected
from sexton_actors.webhooks.normalisation import Challenge, Ping, listed, read
from sexton_actors.webhooks.sources import github, linear, sentry, slack, stripe
from sexton_actors.webhooks.trigger_secrets import resolve_segment

MAX_TRIES = 64
"""Signatures computed for hints, over all secrets and slips."""
NO_SLIP = "No usual slip explains it: compare the secret with the sender's, and send the raw bytes."
_MARKS = {
    "github": github.HEADER,
    "slack": slack.HEADER,
    "linear": linear.HEADER,
    "stripe": stripe.HEADER,
    "sentry": sentry.HEADER,
    "svix": "svix-signature",
    "standard-webhooks": "webhook-signature",
}
_MS = re.compile("[0-9]{13}")
_HEX = re.compile("(?:[0-9a-fA-F]{2}){8,}")


class Explained(msgspec.Struct, frozen=True):
    """``outcome``: accepted, ignored, challenge, malformed_body, or the reason of the refusal."""

    source: str | None
    signature_ok: bool
    outcome: str
    code: str | None
    detail: str
    event_type: str | None = None
    hints: tuple[str, ...] = ()


def trigger_of(
    manifest: Manifest, hashes: Mapping[str, str], source: str | None
) -> WebhookTrigger | Rejected:
    """The trigger that a delivery to this source, or to this secret of an address, would reach."""
    return resolve_segment(manifest, hashes, source)


def refused(rejected: Rejected) -> Explained:
    """No trigger is reached at all."""
    return Explained(
        None, signature_ok=False, outcome=rejected.reason, code=rejected.code, detail=rejected.detail
    )


def explain(
    trigger: WebhookTrigger, headers: Headers, body: bytes, secrets: Sequence[str], now_ms: int
) -> Explained:
    """What would become of this delivery, and where it fails which slip explains it; never raises.

    Nothing in the answer depends on a secret but whether a signature fits, and whether it would with one of
    the slips that senders make.
    """
    verdict = authenticate(trigger, headers, body, secrets, now_ms)
    if isinstance(verdict, Genuine):
        return _read(trigger, headers, body)
    hints = _hints(trigger, headers, body, secrets, now_ms, reason=verdict.reason)
    return Explained(
        trigger.source,
        signature_ok=verdict.reason == Reason.STALE_TIMESTAMP,
        outcome=verdict.reason,
        code=verdict.code,
        detail=verdict.detail,
        hints=hints,
    )


def _hints(
    trigger: WebhookTrigger,
    headers: Headers,
    body: bytes,
    secrets: Sequence[str],
    now_ms: int,
    *,
    reason: str,
) -> tuple[str, ...]:
    if reason in {Reason.SIGNATURE_MISSING, Reason.SIGNATURE_MALFORMED}:
        return (*_other_source(trigger, headers), *_form(trigger, headers))
    if reason == Reason.SIGNATURE_MISMATCH:
        return tuple(_slips(trigger, headers, body, secrets, now_ms)) or (NO_SLIP,)
    return ()


def _read(trigger: WebhookTrigger, headers: Headers, body: bytes) -> Explained:
    found = read(trigger, headers, body)
    outcome, detail, event_type, code = "accepted", "It would wake the agent.", None, None
    match found:
        case Malformed():
            outcome, detail, code = "malformed_body", found.detail, "UZ-WH-002"
        case Ping():
            outcome, detail = "ignored", "A ping wakes nobody."
        case Challenge():
            outcome, detail = "challenge", "It would be answered with its own word."
        case _:
            event_type = found.event_type
            if not listed(trigger, event_type):
                outcome, detail = "ignored", f"The trigger's events do not list {event_type}."
    return Explained(
        trigger.source, signature_ok=True, outcome=outcome, code=code, detail=detail, event_type=event_type
    )


def _other_source(trigger: WebhookTrigger, headers: Headers) -> Iterator[str]:
    for source, header in _MARKS.items():
        if source != trigger.source and header in headers and not _names(trigger, header):
            yield f"There is a {header}: this looks like {source}, but it came to {trigger.source}."


def _names(trigger: WebhookTrigger, header: str) -> bool:
    return trigger.signature is not None and trigger.signature.header == header


def _form(trigger: WebhookTrigger, headers: Headers) -> Iterator[str]:
    signature = trigger.signature
    stamps = [slack.TS_HEADER, "svix-timestamp", "webhook-timestamp"]
    if signature is not None and signature.ts_header:
        stamps.append(signature.ts_header)
    if any(_MS.fullmatch(headers.get(stamp, "")) for stamp in stamps):
        yield "The time is in milliseconds; it has to be in seconds."
    header = signature.header if signature is not None else None
    value = headers.get(header or _MARKS.get(trigger.source, ""), "")
    if value and value != value.strip():
        yield "The signature has blanks around it."
    if any(_is_base64_digest(part) for part in (value, value.partition("=")[2])):
        yield "The signature seems to be in base64; it has to be in hexadecimal digits."


def _is_base64_digest(text: str) -> bool:
    try:
        return len(base64.b64decode(text, validate=True)) == 32  # noqa: PLR2004 - SHA-256
    except (binascii.Error, ValueError):
        return False


def _slips(
    trigger: WebhookTrigger, headers: Headers, body: bytes, secrets: Sequence[str], now_ms: int
) -> Iterator[str]:
    """The first slip with which the signature would fit, whatever its time."""

    def fits(changed_headers: Headers, changed_body: bytes, changed: Sequence[str]) -> bool:
        verdict = authenticate(trigger, changed_headers, changed_body, changed, now_ms)
        return isinstance(verdict, Genuine) or verdict.reason == Reason.STALE_TIMESTAMP

    tries = 0
    for words, slip in _SECRET_SLIPS:
        changed = [other for secret in secrets for other in slip(secret) if other and other not in secrets]
        tries += len(changed)
        if changed and tries <= MAX_TRIES and fits(headers, body, changed):
            yield words
            return
    for words, change in _BODY_SLIPS if len(body) <= SMALL_BODY else ():
        other = change(body)
        if other is not None and other != body and fits(headers, other, secrets):
            yield words
            return


def _decoded_hex(secret: str) -> list[str]:
    if not _HEX.fullmatch(secret):
        return []
    return _as_text(bytes.fromhex(secret))


def _decoded_base64(secret: str) -> list[str]:
    try:
        return _as_text(base64.b64decode(secret, validate=True))
    except (binascii.Error, ValueError):
        return []


def _as_text(raw: bytes) -> list[str]:
    try:
        return [raw.decode()]
    except UnicodeDecodeError:
        return []


def _compact(body: bytes) -> bytes | None:
    document = read_object(body)
    return None if isinstance(document, Malformed) else msgspec.json.encode(document)


def _spaced(body: bytes) -> bytes | None:
    """As most libraries write JSON by default: a blank after each colon and comma."""
    document = read_object(body)
    if isinstance(document, Malformed):
        return None
    text = msgspec.json.encode(document).decode()
    return re.sub(r'("(?:[^"\\]|\\.)*")|([:,])', lambda m: m[1] or f"{m[2]} ", text).encode()


_SECRET_SLIPS: tuple[tuple[str, Callable[[str], list[str]]], ...] = (
    (
        "It fits when blanks or line ends around the secret are taken away: keep it without them.",
        lambda s: [s.strip()],
    ),
    ("It fits when the sender's secret ends with a line end: take that away there.", lambda s: [f"{s}\n"]),
    ("It fits when the secret is decoded from hexadecimal digits: keep it decoded.", _decoded_hex),
    ("It fits when the secret is decoded from base64: keep it decoded.", _decoded_base64),
)
_BODY_SLIPS: tuple[tuple[str, Callable[[bytes], bytes | None]], ...] = (
    (
        "It fits the body without its last line end: send the very bytes that are signed.",
        lambda b: b.rstrip(b"\r\n"),
    ),
    ("It fits the body with a line end behind it: send the very bytes that are signed.", lambda b: b + b"\n"),
    ("It fits the same JSON without blanks: something rewrote the body on its way.", _compact),
    ("It fits the same JSON with blanks: something rewrote the body on its way.", _spaced),
    ("It fits an empty body: the sender does not sign the body.", lambda _: b""),
)
