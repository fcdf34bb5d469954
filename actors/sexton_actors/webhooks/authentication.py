"""Decides whether a webhook is genuine, before anything in it is believed."""

from collections.abc import Sequence

from sexton_actors.manifest.model import WebhookTrigger
from sexton_actors.webhooks.known_sources import source_of
from sexton_actors.webhooks.model import Genuine, Headers, Reason, Rejected, rejected
from sexton_actors.webhooks.source import Attempt
from sexton_actors.webhooks.trigger_secrets import SECRET_FIELD

__all__ = ["Genuine", "Rejected", "authenticate"]


def authenticate(
    trigger: WebhookTrigger, headers: Headers, body: bytes, secrets: Sequence[str], now_ms: int
) -> Genuine | Rejected:
    """Whether the raw ``body`` comes from one who knows one of ``secrets``; never raises.

    ``trigger`` is one that ``resolve_segment`` handed out: for a trigger without a signature the address has
    been the proof already. A signed time more than the trigger's tolerance away from ``now_ms``, either way,
    is stale, which is told only of a genuine signature.
    """
    signature = trigger.signature
    if signature is None:
        return Genuine()
    usable = [secret for secret in secrets if secret]
    if not usable:
        detail = f"the credential `{signature.secret_ref}` is not there or has no {SECRET_FIELD}"
        return rejected(Reason.CREDENTIAL_MISSING, detail)
    verdict = source_of(trigger.source).verify(Attempt(signature, headers, body, usable))
    if isinstance(verdict, Rejected):
        return verdict
    if verdict.at_s is not None and abs(now_ms - verdict.at_s * 1_000) > trigger.tolerance_seconds * 1_000:
        detail = f"the signed time is more than {trigger.tolerance_seconds} s away from the server's"
        return rejected(Reason.STALE_TIMESTAMP, detail)
    return Genuine()
