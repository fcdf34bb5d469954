"""Makes an agent from its two files: the record, its first configuration, and the secrets shown once."""

import hashlib
from collections.abc import Callable
from uuid import UUID

import msgspec
from msgspec.structs import replace

from sexton_actors.loans import Files, after_files
from sexton_actors.manifest.model import from_json
from sexton_actors.manifest.problems import ManifestRejected
from sexton_actors.manifest.resources import needs_of
from sexton_actors.protocol.zombie import Install, Installed
from sexton_actors.refusal import Refusal
from sexton_actors.zombie.record import HeldZombie
from sexton_actors.zombie.versions import (
    SECRET_BYTES,
    compile_version,
    draft,
    refused,
    url_secrets,
    webhook_paths,
)
from sexton_storage.errors import NameTaken
from sexton_storage.records.configs import ConfigStatus, ConfigVersion
from sexton_storage.records.zombies import Zombie, ZombieStatus

APPROVAL_TOKEN_PREFIX = "zap_"  # noqa: S105  a prefix, no secret


class NewAgent(msgspec.Struct, frozen=True):
    zombie: Zombie
    config: ConfigVersion
    webhook_paths: dict[str, str]
    approval_token: str


def new_agent(
    zombie_id: UUID,
    message: Install,
    new_id: Callable[[], UUID],
    new_token: Callable[[int], str],
    now: int,
) -> NewAgent | Refusal:
    """Everything of a new agent, or the reason why its files make none."""
    files = (message.source_markdown, message.trigger_markdown)
    compiled = compile_version(draft(new_id(), zombie_id, 1, files, now, author=message.by))
    if isinstance(compiled, ManifestRejected):
        return refused(compiled)
    manifest = compiled.manifest
    config = replace(compiled.config, status=ConfigStatus.ACTIVE)
    secrets = url_secrets(manifest, {}, new_token)
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
        required_tags=needs_of(manifest),
        approval_token_hash=hashlib.sha256(approval_token.encode()).digest(),
        url_secret_hashes=secrets.hashes,
        created_at=now,
        updated_at=now,
        allows_unsandboxed=manifest.allow_unsandboxed,
        lending=after_files({}, Files(manifest, message.by, message.may_grant), now),
        decides_by_token=message.may_grant,
    )
    return NewAgent(zombie, config, webhook_paths(zombie_id, manifest, secrets.new), approval_token)


async def install(held: HeldZombie, message: Install) -> Installed | Refusal:
    """Keep a new agent, unless its name is taken or the plan does not allow what it needs."""
    world = held.world
    new = new_agent(held.id, message, world.new_id, world.new_token, world.now_ms())
    if isinstance(new, Refusal):
        return new
    if refusal := await world.entitlements.may_hold(message.tenant_id, from_json(new.zombie.compiled)):
        return refusal
    try:
        await world.storage.zombies.create(new.zombie, new.config)
    except NameTaken:
        return held.name_taken(new.zombie.name)
    held.doubt()
    held.tell_scheduler(new.zombie)
    return Installed(new.zombie, new.webhook_paths, new.approval_token)
