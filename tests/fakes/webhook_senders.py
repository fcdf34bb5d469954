"""Everybody who may wake an agent from outside, signing as the real sender does, with its own library."""

import base64
import hashlib
import hmac
import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import urlencode

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from slack_sdk.signature import SignatureVerifier
from standardwebhooks.webhooks import Webhook as StandardWebhook
from svix.webhooks import Webhook as SvixWebhook

Sign = Callable[[bytes, str, int, str], dict[str, str]]
"""Headers over a body, with a secret, at a time in Unix seconds, for a delivery of this id."""


@dataclass(frozen=True)
class Sender:
    """``old`` and ``new`` are the sender's secrets in a rotation; ``kept`` is how our vault keeps one."""

    name: str
    trigger: str
    body: Callable[[str], bytes]
    sign: Sign
    event_type: str
    signature_header: str
    path: str = "/v1/webhooks/{zombie_id}/{name}"
    old: str = "an old secret"
    new: str = "a new secret"
    kept: Callable[[str], str] = str
    timed: bool = True
    """The time is signed too, and so can be stale."""
    tolerance_s: int = 300
    id_is_signed: bool = True
    id_header: str | None = None


def hex_digest(secret: str, signed: bytes) -> str:
    return hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()


def _json(**fields: object) -> bytes:
    return json.dumps(fields).encode()


def _github(body: bytes, secret: str, _at_s: int, delivery: str) -> dict[str, str]:
    return {
        "X-GitHub-Event": "workflow_run",
        "X-GitHub-Delivery": delivery,
        "X-Hub-Signature-256": f"sha256={hex_digest(secret, body)}",
    }


def _github_form(body: bytes, secret: str, at_s: int, delivery: str) -> dict[str, str]:
    form = {"content-type": "application/x-www-form-urlencoded"}
    return _github(body, secret, at_s, delivery) | form


def _slack(body: bytes, secret: str, at_s: int, _delivery: str) -> dict[str, str]:
    signature = SignatureVerifier(secret).generate_signature(timestamp=str(at_s), body=body)
    assert signature is not None
    return {"X-Slack-Signature": signature, "X-Slack-Request-Timestamp": str(at_s)}


def _linear(body: bytes, secret: str, _at_s: int, delivery: str) -> dict[str, str]:
    return {"Linear-Signature": hex_digest(secret, body).upper(), "Linear-Delivery": delivery}


def _generic(body: bytes, secret: str, _at_s: int, _delivery: str) -> dict[str, str]:
    return {"X-Shop-Signature": f"hmac={hex_digest(secret, body)}"}


def _generic_timed(body: bytes, secret: str, at_s: int, _delivery: str) -> dict[str, str]:
    return {"X-Bank-Signature": hex_digest(secret, f"{at_s}.".encode() + body), "X-Bank-Time": str(at_s)}


def _stripe(body: bytes, secret: str, at_s: int, _delivery: str) -> dict[str, str]:
    """As Stripe's library does, while a secret is rolled: the older one's signature stands first."""
    signed = f"{at_s}.".encode() + body
    older = hex_digest("whsec_rolled", signed)
    return {"Stripe-Signature": f"t={at_s},v1={older},v1={hex_digest(secret, signed)},v0={older}"}


def _sentry(body: bytes, secret: str, at_s: int, delivery: str) -> dict[str, str]:
    return {
        "Request-ID": delivery,
        "Sentry-Hook-Resource": "issue",
        "Sentry-Hook-Timestamp": str(at_s),
        "Sentry-Hook-Signature": hex_digest(secret, body),
    }


def _stripe_event(delivery: str) -> bytes:
    return _json(
        id=f"evt_{delivery}",
        object="event",
        api_version="2025-03-31.basil",
        created=1743465600,
        livemode=False,
        pending_webhooks=1,
        request={"id": "req_1", "idempotency_key": "4a0c"},
        type="invoice.payment_failed",
        data={"object": {"id": "in_1", "object": "invoice", "amount_due": 4200}},
    )


def _sentry_event(delivery: str) -> bytes:
    return _json(
        action="created",
        installation={"uuid": "a8e5d37a-696c-4c54-adb5-b3f28d64c7de"},
        data={"issue": {"id": "1170820242", "title": "ReferenceError", "metadata": {"n": delivery}}},
        actor={"type": "application", "id": "sentry", "name": "Sentry"},
    )


def _svix(body: bytes, secret: str, at_s: int, delivery: str) -> dict[str, str]:
    signature = SvixWebhook(secret).sign(delivery, datetime.fromtimestamp(at_s, UTC), body.decode())
    return {
        "svix-id": delivery,
        "svix-timestamp": str(at_s),
        "svix-signature": f"v1,bm90IHRoaXM= {signature}",
    }


def _standard(body: bytes, secret: str, at_s: int, delivery: str) -> dict[str, str]:
    signature = StandardWebhook(secret).sign(delivery, datetime.fromtimestamp(at_s, UTC), body.decode())
    return {"webhook-id": delivery, "webhook-timestamp": str(at_s), "webhook-signature": signature}


def _ed25519(body: bytes, secret: str, at_s: int, delivery: str) -> dict[str, str]:
    signed = f"{delivery}.{at_s}.".encode() + body
    signature = base64.b64encode(_private(secret).sign(signed)).decode()
    return {
        "webhook-id": delivery,
        "webhook-timestamp": str(at_s),
        "webhook-signature": f"v9,x v1a,{signature}",
    }


def _private(secret: str) -> Ed25519PrivateKey:
    return Ed25519PrivateKey.from_private_bytes(hashlib.sha256(secret.encode()).digest())


def _public(secret: str) -> str:
    raw = _private(secret).public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    return "whpk_" + base64.b64encode(raw).decode()


def _whsec(word: str) -> str:
    return "whsec_" + base64.b64encode(hashlib.sha256(word.encode()).digest()).decode()


def _signed(source: str, more: str = "") -> str:
    return f"{{type: webhook, source: {source}, {more}signature: {{secret_ref: hook}}}}"


SENDERS: tuple[Sender, ...] = (
    Sender(
        "github",
        "{type: webhook, source: github, credential_name: hook, events: [workflow_run]}",
        lambda delivery: _json(action="completed", n=delivery),
        _github,
        "workflow_run.completed",
        "X-Hub-Signature-256",
        timed=False,
        id_is_signed=False,
        id_header="X-GitHub-Delivery",
    ),
    Sender(
        "github-form",
        _signed("github"),
        lambda delivery: urlencode({"payload": json.dumps({"action": "opened", "n": delivery})}).encode(),
        _github_form,
        "workflow_run.opened",
        "X-Hub-Signature-256",
        path="/v1/webhooks/{zombie_id}/github",
        timed=False,
        id_is_signed=False,
        id_header="X-GitHub-Delivery",
    ),
    Sender(
        "slack",
        _signed("slack"),
        lambda delivery: _json(
            type="event_callback", team_id="T1", event_id=delivery, event={"type": "app_mention"}
        ),
        _slack,
        "app_mention",
        "X-Slack-Signature",
    ),
    Sender(
        "linear",
        _signed("linear"),
        lambda delivery: _json(type="Issue", action="create", data={"id": delivery}),
        _linear,
        "Issue.create",
        "Linear-Signature",
        timed=False,
        id_is_signed=False,
        id_header="Linear-Delivery",
    ),
    Sender(
        "shop",
        "{type: webhook, source: shop, signature: "
        "{secret_ref: hook, header: X-Shop-Signature, prefix: 'hmac='}}",
        lambda delivery: _json(event_id=delivery, type="order.paid", data={"total": 1}),
        _generic,
        "order.paid",
        "X-Shop-Signature",
        timed=False,
    ),
    Sender(
        "bank",
        "{type: webhook, source: bank, tolerance_seconds: 60, signature: "
        "{secret_ref: hook, header: X-Bank-Signature, prefix: '', ts_header: X-Bank-Time}}",
        lambda delivery: _json(anything=delivery),
        _generic_timed,
        "bank",
        "X-Bank-Signature",
        tolerance_s=60,
    ),
    Sender(
        "stripe",
        _signed("stripe", "events: [invoice], "),
        _stripe_event,
        _stripe,
        "invoice.payment_failed",
        "Stripe-Signature",
        old="whsec_an_old_one",
        new="whsec_a_new_one",
    ),
    Sender(
        "sentry",
        "{type: webhook, source: sentry, credential_name: hook}",
        _sentry_event,
        _sentry,
        "issue.created",
        "Sentry-Hook-Signature",
        timed=False,
        id_is_signed=False,
        id_header="Request-ID",
    ),
    Sender(
        # The same bodies by the generic scheme: nothing in them is ours.
        "errors",
        "{type: webhook, source: errors, signature: {secret_ref: hook, header: Sentry-Hook-Signature}}",
        _sentry_event,
        _sentry,
        "errors",
        "Sentry-Hook-Signature",
        timed=False,
    ),
    Sender(
        "svix",
        _signed("svix"),
        lambda delivery: _json(type="user.created", n=delivery),
        _svix,
        "user.created",
        "svix-signature",
        path="/v1/webhooks/svix/{zombie_id}",
        old=_whsec("old"),
        new=_whsec("new"),
    ),
    Sender(
        "standard-webhooks",
        _signed("standard-webhooks"),
        lambda delivery: _json(type="user.deleted", n=delivery),
        _standard,
        "user.deleted",
        "webhook-signature",
        path="/v1/webhooks/svix/{zombie_id}",
        old=_whsec("old"),
        new=_whsec("new"),
    ),
    Sender(
        "standard-ed25519",
        _signed("standard-webhooks"),
        lambda delivery: _json(type="user.deleted", n=delivery),
        _ed25519,
        "user.deleted",
        "webhook-signature",
        path="/v1/webhooks/{zombie_id}",
        kept=_public,
    ),
)
