"""Turns a genuine webhook into what the agent gets, and into the key by which a repeat is known."""

import hashlib

import msgspec

from sexton_actors.manifest.model import WebhookTrigger
from sexton_actors.webhooks.bodies import Content, json_text, read_content
from sexton_actors.webhooks.known_sources import reader_of
from sexton_actors.webhooks.model import Challenge, Delivery, Headers, Malformed, Ping, Reading
from sexton_actors.webhooks.source import MAX_EVENT_TYPE_CHARS, MAX_SENDER_ID_CHARS, Said, is_line

__all__ = ["Challenge", "Delivery", "Malformed", "Ping", "Reading", "listed", "read"]


def read(trigger: WebhookTrigger, headers: Headers, body: bytes, text: bytes | None = None) -> Reading:
    """Read a delivery that ``authenticate`` found genuine; never raises.

    ``text`` is the JSON in its body, where that was found before.

    The sender's id makes the dedup key. GitHub's and Linear's stands in a header that they do not sign, so
    whoever has a signed body may send it again under another id, and that is another delivery, as these
    senders mean it. It wakes the agent for something that did happen; it cannot make anything up. Without
    the id it is no new delivery: the key is then made from the body, and ``body_key`` of the first one is
    the same.
    """
    found = json_text(body) if text is None else text
    content = found if isinstance(found, Malformed) else read_content(found)
    if isinstance(content, Malformed):
        return content
    said = reader_of(trigger)(trigger.source, headers, content.document)
    if not isinstance(said, Said):
        return said
    if not is_line(said.event_type, MAX_EVENT_TYPE_CHARS):
        return Malformed(f"the event type must be 1 to {MAX_EVENT_TYPE_CHARS} printable characters")
    if said.sender_id and not is_line(said.sender_id, MAX_SENDER_ID_CHARS):
        return Malformed(f"the event's id must be 1 to {MAX_SENDER_ID_CHARS} printable characters")
    body_key = _key("body", trigger.source, body)
    sender_id = said.sender_id or None
    dedup_key = _key("id", trigger.source, sender_id.encode()) if sender_id else body_key
    return Delivery(said.event_type, dedup_key, body_key, sender_id, said.payload, _spelled(said, content))


def listed(trigger: WebhookTrigger, event_type: str) -> bool:
    """Whether the trigger lets the event in: by its type, or by the part before the first dot.

    >>> listed(WebhookTrigger("github", events=("workflow_run",)), "workflow_run.completed")
    True
    """
    return trigger.events is None or bool({event_type, event_type.partition(".")[0]} & set(trigger.events))


def _spelled(said: Said, content: Content) -> str:
    if said.payload is content.document:
        return content.text
    shaped = {**said.payload, "raw": msgspec.Raw(content.text.encode())}
    return msgspec.json.encode(shaped).decode()


def _key(kind: str, label: str, content: bytes) -> bytes:
    # Kind and label hold no NUL, so no two triples are written alike.
    return hashlib.sha256(f"{kind}\0{label}\0".encode() + content).digest()
