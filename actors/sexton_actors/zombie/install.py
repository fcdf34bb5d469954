"""Makes an agent from its two files: the record, its first configuration, and the secrets shown once."""

import base64
import hashlib
from collections.abc import Callable
from uuid import UUID

import msgspec
from sexton_storage.records import ConfigVersion, Zombie, ZombieStatus

from sexton_actors.manifest.model import Manifest, to_json
from sexton_actors.manifest.parse import ManifestRejected, parse
from sexton_actors.refusal import Refusal
from sexton_actors.zombie.messages import Install

APPROVAL_TOKEN_PREFIX = "zap_"
URL_SECRET_PREFIX = "zwh_"  # noqa: S105 - a prefix, no secret
SECRET_BYTES = 32
MULTISIG_SOURCES = frozenset({"svix", "standard-webhooks"})


class NewAgent(msgspec.Struct, frozen=True):
    zombie: Zombie
    config: ConfigVersion
    webhook_paths: dict[str, str]
    approval_token: str


def refused(rejected: ManifestRejected) -> Refusal:
    """The first fault as the answer's own, and all of them beside it."""
    first = rejected.errors[0]
    return Refusal(first.code, rejected.detail, {"errors": [msgspec.to_builtins(error) for error in rejected.errors]})


def install(
    zombie_id: UUID,
    message: Install,
    new_id: Callable[[], UUID],
    new_token: Callable[[int], str],
    now: int,
) -> NewAgent | Refusal:
    """Everything of a new agent, or the reason why its files make none."""
    manifest = parse(message.source_markdown, message.trigger_markdown)
    if isinstance(manifest, ManifestRejected):
        return refused(manifest)
    config = ConfigVersion(
        id=new_id(),
        zombie_id=zombie_id,
        revision=1,
        status="ACTIVE",
        source_markdown=message.source_markdown,
        trigger_markdown=message.trigger_markdown,
        compiled=to_json(manifest),
        created_at=now,
    )
    url_secrets = {t.source: _url_secret(new_token) for t in manifest.webhook_triggers if t.signature is None}
    approval_token = APPROVAL_TOKEN_PREFIX + new_token(SECRET_BYTES)
    zombie = Zombie(
        id=zombie_id,
        workspace_id=message.workspace_id,
        tenant_id=message.tenant_id,
        name=manifest.name,
        status=ZombieStatus.ACTIVE,
        version=1,
        config_version_id=config.id,
        config_revision=1,
        compiled=config.compiled,
        required_tags=manifest.required_tags,
        approval_token_hash=hashlib.sha256(approval_token.encode()).digest(),
        url_secret_hashes={s: hashlib.sha256(v.encode()).hexdigest() for s, v in url_secrets.items()},
        created_at=now,
        updated_at=now,
    )
    return NewAgent(zombie, config, _paths(zombie_id, manifest, url_secrets), approval_token)


def _url_secret(new_token: Callable[[int], str]) -> str:
    raw = bytes.fromhex(new_token(SECRET_BYTES))
    return URL_SECRET_PREFIX + base64.urlsafe_b64encode(raw).decode().rstrip("=")


def _paths(zombie_id: UUID, manifest: Manifest, url_secrets: dict[str, str]) -> dict[str, str]:
    paths = {}
    for trigger in manifest.webhook_triggers:
        if trigger.source in url_secrets:
            paths[trigger.source] = f"/v1/webhooks/{zombie_id}/{url_secrets[trigger.source]}"
        elif trigger.source in MULTISIG_SOURCES:
            paths[trigger.source] = f"/v1/webhooks/svix/{zombie_id}"
        else:
            paths[trigger.source] = f"/v1/webhooks/{zombie_id}/{trigger.source}"
    return paths
