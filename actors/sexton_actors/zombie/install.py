"""Makes an agent from its two files: the record, its first configuration, and the secrets shown once."""

import base64
import hashlib
from collections.abc import Callable
from uuid import UUID

import msgspec

from sexton_actors.manifest.model import Manifest, to_json
from sexton_actors.manifest.parse import parse
from sexton_actors.manifest.problems import ManifestRejected
from sexton_actors.manifest.trigger_fields import MULTISIG_SOURCES
from sexton_actors.refusal import Refusal
from sexton_actors.webhooks.secrets import MULTISIG_SEGMENT, hash_url_secret
from sexton_actors.zombie.messages import Install
from sexton_storage.records import ConfigStatus, ConfigVersion, Zombie, ZombieStatus

APPROVAL_TOKEN_PREFIX = "zap_"  # noqa: S105  a prefix, no secret
URL_SECRET_PREFIX = "zwh_"  # noqa: S105  a prefix, no secret
SECRET_BYTES = 32


class NewAgent(msgspec.Struct, frozen=True):
    zombie: Zombie
    config: ConfigVersion
    webhook_paths: dict[str, str]
    approval_token: str


def refused(rejected: ManifestRejected) -> Refusal:
    """The first fault as the answer's own, and all of them beside it."""
    return Refusal(rejected.code, rejected.detail, {"errors": msgspec.to_builtins(rejected.errors)})


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
        status=ConfigStatus.ACTIVE,
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
        url_secret_hashes={source: hash_url_secret(secret) for source, secret in url_secrets.items()},
        created_at=now,
        updated_at=now,
        allows_unsandboxed=manifest.allow_unsandboxed,
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
            paths[trigger.source] = f"/v1/webhooks/{MULTISIG_SEGMENT}/{zombie_id}"
        else:
            paths[trigger.source] = f"/v1/webhooks/{zombie_id}/{trigger.source}"
    return paths
