"""Decides whether a webhook is genuine, before anything in it is believed."""

from collections.abc import Mapping, Sequence

from sexton_actors.manifest.model import WebhookTrigger
from sexton_actors.webhooks.model import Genuine, Headers, Reason, Rejected
from sexton_actors.webhooks.source import Attempt
from sexton_actors.webhooks.table import source_of

SECRET_FIELD = "webhook_secret"  # noqa: S105  the name of the field, not a secret
MAX_SECRETS = 8
"""Of one rotation; the first ones count."""


def authenticate(
    trigger: WebhookTrigger,
    headers: Headers,
    body: bytes,
    secrets: Sequence[str],
    now_ms: int,
    *,
    by_url_secret: bool = False,
) -> Genuine | Rejected:
    """Whether the raw ``body`` comes from one who knows one of ``secrets``; never raises.

    ``by_url_secret``: the address held the secret of this trigger (see ``resolve_segment``), which is proof
    for a trigger without a signature and nothing for one with. A signed time more than the trigger's
    tolerance away from ``now_ms``, either way, is stale; that is told only of a genuine signature.
    """
    signature = trigger.signature
    if signature is None:
        if by_url_secret:
            return Genuine()
        return Rejected(
            Reason.CREDENTIAL_MISSING, "this source does not sign: use the address with the secret in it"
        )
    usable = [secret for secret in secrets if secret][:MAX_SECRETS]
    if not usable:
        return Rejected(
            Reason.CREDENTIAL_MISSING, f"the credential `{signature.secret_ref}` has no {SECRET_FIELD}"
        )
    verdict = source_of(trigger.source).verify(Attempt(signature, headers, body, usable))
    if isinstance(verdict, Rejected):
        return verdict
    if verdict.at_s is not None and abs(now_ms - verdict.at_s * 1_000) > trigger.tolerance_seconds * 1_000:
        return Rejected(
            Reason.STALE_TIMESTAMP,
            f"the signed time is more than {trigger.tolerance_seconds} s away from the server's",
        )
    return Genuine()


def secrets_of(credential_data: Mapping[str, object]) -> list[str]:
    """The signing secrets in a credential's data: its ``webhook_secret``, a text or a list of texts."""
    held = credential_data.get(SECRET_FIELD)
    candidates = held if isinstance(held, list) else [held]
    return [secret for secret in candidates if isinstance(secret, str) and secret][:MAX_SECRETS]
