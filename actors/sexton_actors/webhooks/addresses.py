"""Which trigger an address means, and the secrets that addresses may hold."""

import base64
import hashlib
import hmac
import re
from collections.abc import Mapping

import msgspec

from sexton_actors.manifest.model import Manifest, WebhookTrigger
from sexton_actors.manifest.trigger_fields import MULTISIG_SOURCES
from sexton_actors.webhooks.model import Reason, Rejected

MULTISIG_SEGMENT = "svix"
RESERVED_SEGMENTS = frozenset({"approval", "grant-approval", MULTISIG_SEGMENT})
"""Never taken for a secret."""
URL_SECRET_BYTES = 32

_PREFIX = "zwh_"
_URL_SECRET = re.compile("zwh_[A-Za-z0-9_-]{43}")


class Route(msgspec.Struct, frozen=True):
    """``by_url_secret``: the address held the secret of the trigger."""

    trigger: WebhookTrigger
    by_url_secret: bool = False


def url_secret(random: bytes) -> str:
    """``zwh_`` and 43 base64url characters, from ``URL_SECRET_BYTES`` random bytes."""
    return _PREFIX + base64.urlsafe_b64encode(random).rstrip(b"=").decode()


def hash_url_secret(secret: str) -> str:
    """SHA-256 in hexadecimal: what is kept in place of the secret."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def resolve_segment(
    manifest: Manifest, url_secret_hashes: Mapping[str, str], segment: str | None, *, multisig: bool = False
) -> Route | None:
    """The trigger that an address means; None when it means none.

    ``segment`` None is the bare address: the first webhook trigger. Declared sources come before secrets, so
    a secret that equals a source never matches. ``url_secret_hashes`` maps source to hash; one left over
    from a trigger that has a signature now is not looked at.
    """
    triggers = manifest.webhook_triggers
    if multisig:
        several = (trigger for trigger in triggers if trigger.source in MULTISIG_SOURCES)
        return next((Route(trigger) for trigger in several), None)
    if segment is None:
        return next((Route(trigger) for trigger in triggers), None)
    declared = manifest.trigger_for(segment)
    if declared is not None:
        return Route(declared)
    return _by_secret(triggers, url_secret_hashes, segment)


def unresolved(segment: str | None) -> Rejected:
    """What to answer when no trigger was found."""
    if segment is not None and segment.startswith(_PREFIX):
        return Rejected(Reason.SIGNATURE_MISMATCH, "the secret in the address is not one of this agent's")
    return Rejected(Reason.CREDENTIAL_MISSING, "the agent has no webhook trigger for this address")


def webhook_path(zombie_id: str, trigger: WebhookTrigger, secret: str | None = None) -> str:
    """The path where the trigger's sender posts to; ``secret`` is that of a trigger without a signature."""
    if trigger.source in MULTISIG_SOURCES:
        return f"/v1/webhooks/{MULTISIG_SEGMENT}/{zombie_id}"
    return f"/v1/webhooks/{zombie_id}/{secret or trigger.source}"


def _by_secret(triggers: tuple[WebhookTrigger, ...], hashes: Mapping[str, str], segment: str) -> Route | None:
    """Every hash is compared, in constant time, whether or not one has matched."""
    if segment in RESERVED_SEGMENTS or not _URL_SECRET.fullmatch(segment):
        return None
    given = hash_url_secret(segment)
    found = None
    for trigger in triggers:
        kept = hashes.get(trigger.source, "") if trigger.signature is None else ""
        if hmac.compare_digest(given.encode(), kept.encode()):
            found = Route(trigger, by_url_secret=True)
    return found
