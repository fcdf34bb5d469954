"""Which trigger an address means, and which secrets belong to it."""

import hashlib
import hmac
import re
from collections.abc import Mapping

from sexton_actors.manifest.model import Manifest, WebhookTrigger
from sexton_actors.manifest.trigger_fields import MULTISIG_SOURCES
from sexton_actors.webhooks.model import Headers, Reason, Rejected, rejected

MULTISIG_SEGMENT = "svix"
RESERVED_SEGMENTS = frozenset({"approval", "grant-approval", MULTISIG_SEGMENT})
"""Never taken for a secret."""
SECRET_FIELD = "webhook_secret"  # noqa: S105  the name of the field, not a secret

_PREFIX = "zwh_"
_URL_SECRET = re.compile("zwh_[A-Za-z0-9_-]{43}")


def secrets_of(credential_data: Mapping[str, object]) -> list[str]:
    """The signing secrets in a credential's data: its ``webhook_secret``, a text or a list of texts.

    All of them count. The vault keeps 4 KB of a credential, so there are never more than some hundreds.
    """
    held = credential_data.get(SECRET_FIELD)
    candidates = held if isinstance(held, list) else [held]
    return [secret for secret in candidates if isinstance(secret, str) and secret]


def hash_url_secret(secret: str) -> str:
    """SHA-256 in hexadecimal: what is kept in place of the secret."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def resolve_segment(
    manifest: Manifest, url_secret_hashes: Mapping[str, str], segment: str | None
) -> WebhookTrigger | Rejected:
    """The trigger that an address means.

    ``segment`` is the last part of the path, None for the bare address, which means the first webhook
    trigger. Declared sources come before secrets, so a secret that equals a source never matches.

    A trigger without a signature is handed out only to an address with its secret: reached by its source or
    by the bare address it is refused. ``url_secret_hashes`` maps source to hash; one left over from a
    trigger that has a signature by now opens nothing.
    """
    triggers = manifest.webhook_triggers
    named = next(iter(triggers), None) if segment is None else manifest.trigger_for(segment)
    if named is not None:
        return named if named.signature is not None else _unsigned()
    return _by_secret(triggers, url_secret_hashes, segment or "")


def resolve_multisig(manifest: Manifest, headers: Headers) -> WebhookTrigger | Rejected:
    """The trigger that the multi-signature address means: of two, the one that signs in such headers."""
    native = "svix" if "svix-signature" in headers else "standard-webhooks"
    others = (trigger for trigger in manifest.webhook_triggers if trigger.source in MULTISIG_SOURCES)
    named = manifest.trigger_for(native) or next(others, None)
    if named is None:
        return rejected(Reason.CREDENTIAL_MISSING, "the agent has no trigger with several signatures")
    return named if named.signature is not None else _unsigned()


def resolve_hash(
    manifest: Manifest, url_secret_hashes: Mapping[str, str], segment_hash: str
) -> WebhookTrigger | Rejected:
    """The trigger that an address means; of its last part only what ``hash_url_secret`` gives is known."""
    for trigger in manifest.webhook_triggers:
        if hash_url_secret(trigger.source) == segment_hash:
            return trigger if trigger.signature is not None else _unsigned()
    for trigger in manifest.webhook_triggers:
        if trigger.signature is None and url_secret_hashes.get(trigger.source) == segment_hash:
            return trigger
    return rejected(Reason.CREDENTIAL_MISSING, "the agent has no webhook trigger for this address")


def trigger_meant(
    manifest: Manifest, url_secret_hashes: Mapping[str, str], segment: str | None
) -> WebhookTrigger | None:
    """The trigger that an address means, though it may not be reached so; None: it means none."""
    if segment is None:
        return next(iter(manifest.webhook_triggers), None)
    named = manifest.trigger_for(segment) or _by_secret(manifest.webhook_triggers, url_secret_hashes, segment)
    return None if isinstance(named, Rejected) else named


def source_shown(manifest: Manifest, url_secret_hashes: Mapping[str, str], segment: str | None) -> str:
    """What may be shown of an address: the label of the trigger that it means, else nothing.

    A segment that is no declared label may be a secret, or most of one.
    """
    meant = None if segment is None else trigger_meant(manifest, url_secret_hashes, segment)
    return "" if meant is None else meant.source


def _unsigned() -> Rejected:
    detail = "this source does not sign: use the address with the secret that was shown at install"
    return rejected(Reason.CREDENTIAL_MISSING, detail)


def _by_secret(
    triggers: tuple[WebhookTrigger, ...], hashes: Mapping[str, str], segment: str
) -> WebhookTrigger | Rejected:
    """Every hash is compared, in constant time, whether or not one has matched."""
    if segment in RESERVED_SEGMENTS or not segment.startswith(_PREFIX):
        return rejected(Reason.CREDENTIAL_MISSING, "the agent has no webhook trigger for this address")
    if not _URL_SECRET.fullmatch(segment):
        return rejected(Reason.SIGNATURE_MALFORMED, "the secret in the address is cut or changed")
    given = hash_url_secret(segment)
    found = None
    for trigger in triggers:
        kept = hashes.get(trigger.source, "") if trigger.signature is None else ""
        if hmac.compare_digest(given.encode(), kept.encode()):
            found = trigger
    if found is None:
        return rejected(Reason.SIGNATURE_MISMATCH, "the secret in the address is not one of this agent's")
    return found
