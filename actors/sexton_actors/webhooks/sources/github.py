"""GitHub: signs the body, names event and delivery in headers."""

from typing import Any

from sexton_actors.manifest.model import Signature
from sexton_actors.webhooks import hex_hmac
from sexton_actors.webhooks.model import Headers, Malformed, Ping, Rejected
from sexton_actors.webhooks.source import Attempt, Said, Sending, Signed, Source, dotted, normalised, text_at

HEADER = "x-hub-signature-256"
PREFIX = "sha256="

_SUBJECTS = (
    "comment",
    "review",
    "pull_request",
    "issue",
    "discussion",
    "release",
    "alert",
    "head_commit",
    "repository",
)
"""Where the address of what happened stands when the event's own name leads nowhere, the most special
first."""


def verify(attempt: Attempt) -> Signed | Rejected:
    return hex_hmac.verify(_scheme(attempt.signature), attempt)


def sign(sending: Sending) -> dict[str, str]:
    named = {"x-github-event": sending.event, "x-github-delivery": sending.delivery}
    return named | hex_hmac.sign(_scheme(sending.signature), sending)


def _scheme(signature: Signature) -> hex_hmac.Scheme:
    return hex_hmac.Scheme(
        signature.header or HEADER,
        PREFIX if signature.prefix is None else signature.prefix,
        None,
        lambda _, body: body,
    )


def read(label: str, headers: Headers, document: dict[str, Any]) -> Said | Ping | Malformed:
    event = headers.get("x-github-event")
    if not event:
        return Malformed("the header X-GitHub-Event is missing")
    if event == "ping":
        return Ping()
    action = text_at(document, "action")
    payload = normalised(
        label,
        event,
        action,
        document,
        repository=text_at(document, "repository", "full_name"),
        team=text_at(document, "organization", "login"),
        actor=text_at(document, "sender", "login"),
        url=_url(event, document),
    )
    return Said(dotted(event, action), headers.get("x-github-delivery"), payload)


def _url(event: str, document: dict[str, Any]) -> str | None:
    found = (
        text_at(document, subject, "html_url") or text_at(document, subject, "url")
        for subject in (event, *_SUBJECTS)
    )
    return next((url for url in found if url), None)


SOURCE = Source(verify, read, sign, HEADER, PREFIX)
