"""Makes deliveries as their senders would: a sample body of each source, and the headers over it."""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from sexton_actors.manifest.model import WebhookTrigger
from sexton_actors.webhooks.known_sources import source_of
from sexton_actors.webhooks.source import Sending
from sexton_cli import example_files
from sexton_cli.exits import USAGE, Fault

JSON: Final = {"content-type": "application/json"}
USUAL_TYPES: Final[Mapping[str, str]] = {
    "github": "push",
    "slack": "app_mention",
    "linear": "Issue.create",
    "stripe": "invoice.payment_failed",
    "sentry": "issue.created",
    "svix": "user.created",
    "standard-webhooks": "user.created",
}
"""What is sent where neither the command nor the trigger's ``events`` say what."""
NAMED_OUTSIDE: Final = frozenset({"github", "sentry"})
"""These name the event in a header, so a body alone does not tell which it is."""
GITHUB_SAMPLES: Final[Mapping[str, tuple[str, str]]] = {
    "workflow_run": ("deploy-doctor", "workflow_run.failed.json"),
    "issues": ("issue-triage", "issues.opened.json"),
}
"""Events of which there is a whole body, by the example that it belongs to."""

Body = dict[str, Any]


class Delivery(NamedTuple):
    """What is sent: the very bytes, and the headers that go with them."""

    event_type: str
    headers: dict[str, str]
    body: bytes


class Stamp(NamedTuple):
    """What makes one delivery different from all others; the time is in Unix seconds."""

    delivery: str
    at_s: int


def sample_of(trigger: WebhookTrigger, event_type: str | None, data: bytes | None, stamp: Stamp) -> Delivery:
    """One delivery for this trigger, not yet signed. ``data`` None: a sample of ours. Raises Fault.

    >>> push = sample_of(WebhookTrigger("github"), None, None, Stamp("7", 0))
    >>> push.event_type, b'"ref":"refs/heads/main"' in push.body
    ('push', True)
    """
    source, first = trigger.source, (trigger.events or (None,))[0]
    if event_type is None and first is None and data is not None and source in NAMED_OUTSIDE:
        way_out = f"Say which, such as {source}:{USUAL_TYPES[source]}."
        raise Fault(
            f"{source} names its events outside the body, and no event is named", way_out, status=USAGE
        )
    kind = event_type or first or USUAL_TYPES.get(source, f"{source}.sample")
    body = msgspec.json.encode(_BODIES.get(source, _generic)(kind, stamp)) if data is None else data
    return Delivery(kind, dict(JSON), body)


def signed(trigger: WebhookTrigger, made: Delivery, secret: str | None, stamp: Stamp) -> Delivery:
    """The delivery with the headers of its sender. Raises Fault where the secret cannot sign."""
    if trigger.signature is None:
        return made
    sending = Sending(trigger.signature, secret or "", made.body, stamp.at_s, stamp.delivery, made.event_type)
    try:
        headers = source_of(trigger.source).sign(sending)
    except ValueError as fault:
        raise Fault(str(fault), status=USAGE) from fault
    return made._replace(headers=made.headers | headers)


def address_of(zombie_id: str, trigger: WebhookTrigger) -> str:
    """The path at which a signing sender delivers."""
    if trigger.source in {"svix", "standard-webhooks"}:
        return f"/v1/webhooks/svix/{zombie_id}"
    return f"/v1/webhooks/{zombie_id}/{trigger.source}"


# --- a body of each source ----------------------------------------------------------------------------------


def _parted(kind: str) -> tuple[str, str]:
    event, _, action = kind.partition(".")
    return event, action


def _github(kind: str, _stamp: Stamp) -> Body:
    event, action = _parted(kind)
    whole = GITHUB_SAMPLES.get(event)
    if whole is not None:
        body: Body = msgspec.json.decode(example_files.payload(*whole))
        return body | ({"action": action} if action else {})
    url = "https://github.com/harbour/ledger"
    body = {
        "repository": {"id": 41, "full_name": "harbour/ledger", "html_url": url},
        "sender": {"login": "quay-clerk", "id": 7},
    }
    if event == "push":
        commit = {"id": "b1" * 20, "message": "A sample", "url": f"{url}/commit/{'b1' * 20}"}
        pushed = {"ref": "refs/heads/main", "before": "a0" * 20, "after": "b1" * 20}
        return pushed | {"head_commit": commit, "commits": [commit]} | body
    about = {
        "number": 1,
        "title": "A sample",
        "body": "",
        "html_url": f"{url}/pull/1",
        "user": body["sender"],
    }
    return {"action": action or "created", event: about} | body


def _slack(kind: str, stamp: Stamp) -> Body:
    said = {
        "type": kind,
        "user": "U0SAMPLE",
        "text": "A sample",
        "channel": "C0SAMPLE",
        "ts": f"{stamp.at_s}.0",
    }
    about = {"team_id": "T0SAMPLE", "event_id": f"Ev{stamp.delivery}", "event_time": stamp.at_s}
    return {"type": "event_callback", "event": said} | about


def _linear(kind: str, stamp: Stamp) -> Body:
    event, action = _parted(kind)
    about = {"id": stamp.delivery, "title": "A sample", "team": {"key": "SAM"}}
    url = "https://linear.app/sample/issue/SAM-1"
    return {
        "action": action or "create",
        "type": event,
        "data": about,
        "actor": {"name": "Sample"},
        "url": url,
    }


def _stripe(kind: str, stamp: Stamp) -> Body:
    about = {"id": "sample_1", "object": _parted(kind)[0], "amount_due": 4200}
    event = {"id": f"evt_{stamp.delivery}", "object": "event", "created": stamp.at_s, "livemode": False}
    return event | {"type": kind, "data": {"object": about}}


def _sentry(kind: str, stamp: Stamp) -> Body:
    event, action = _parted(kind)
    about = {"id": stamp.delivery, "title": "ReferenceError: a sample", "project": {"slug": "sample"}}
    return {
        "action": action or "created",
        "data": {event: about},
        "actor": {"type": "user", "name": "Sample"},
    }


def _standard(kind: str, stamp: Stamp) -> Body:
    return {"type": kind, "timestamp": stamp.at_s, "data": {"id": stamp.delivery, "name": "A sample"}}


def _generic(kind: str, stamp: Stamp) -> Body:
    """Our own envelope, which holds for a sender of whom nothing is known."""
    return {"event_id": stamp.delivery, "type": kind, "data": {"name": "A sample"}}


_BODIES: Final[Mapping[str, Callable[[str, Stamp], Body]]] = {
    "github": _github,
    "slack": _slack,
    "linear": _linear,
    "stripe": _stripe,
    "sentry": _sentry,
    "svix": _standard,
    "standard-webhooks": _standard,
}
