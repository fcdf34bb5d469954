"""An agent's configuration, version by version: drafted, compiled, active, superseded."""

import base64
from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

import msgspec
from msgspec.structs import replace

from sexton_actors.manifest.model import Manifest, to_json
from sexton_actors.manifest.parse import parse
from sexton_actors.manifest.problems import ManifestRejected
from sexton_actors.manifest.trigger_fields import MULTISIG_SOURCES
from sexton_actors.refusal import Refusal
from sexton_actors.webhooks.trigger_secrets import MULTISIG_SEGMENT, hash_url_secret
from sexton_actors.zombie.compiled_version import Compiled
from sexton_storage.records.configs import ConfigStatus, ConfigVersion

URL_SECRET_PREFIX = "zwh_"  # noqa: S105  a prefix, no secret
SECRET_BYTES = 32
MASKED_SECRET = f"{URL_SECRET_PREFIX}***"


def draft(
    config_id: UUID, zombie_id: UUID, revision: int, files: tuple[str, str], now: int, *, author: str = ""
) -> ConfigVersion:
    """A version that nobody has looked at; ``files`` are SKILL.md and TRIGGER.md."""
    return ConfigVersion(
        id=config_id,
        zombie_id=zombie_id,
        revision=revision,
        status=ConfigStatus.DRAFT,
        source_markdown=files[0],
        trigger_markdown=files[1],
        compiled={},
        created_at=now,
        author=author,
    )


def compile_version(config: ConfigVersion) -> Compiled | ManifestRejected:
    """Read its two files. What was compiled before is compiled again: the rules may be newer than the row."""
    manifest = parse(config.source_markdown, config.trigger_markdown)
    if isinstance(manifest, ManifestRejected):
        return manifest
    compiled = replace(config, status=ConfigStatus.COMPILED, compiled=to_json(manifest), findings={})
    return Compiled(compiled, manifest)


def judged(config: ConfigVersion) -> ConfigVersion:
    """A draft as COMPILED, or as INVALID with what is wrong with it; any other as it is."""
    if config.status is not ConfigStatus.DRAFT:
        return config
    outcome = compile_version(config)
    if isinstance(outcome, Compiled):
        return outcome.config
    return replace(config, status=ConfigStatus.INVALID, findings=findings(outcome))


def findings(rejected: ManifestRejected) -> Mapping[str, Any]:
    """As they are kept with an INVALID version: the file, line, key and message of each problem."""
    return {"errors": msgspec.to_builtins(rejected.errors)}


def may_activate(config: ConfigVersion) -> Refusal | None:
    """None when it was compiled: it waits to be activated, or was active once."""
    if config.status in {ConfigStatus.COMPILED, ConfigStatus.SUPERSEDED, ConfigStatus.ACTIVE}:
        return None
    return not_compiled(config, config.findings)


def not_compiled(config: ConfigVersion, facts: Mapping[str, Any]) -> Refusal:
    detail = f"Version {config.id} is {config.status}; only a compiled one can be activated."
    return Refusal("UZ-HARNESS-002", detail, {"current_state": str(config.status), **facts})


def refused(rejected: ManifestRejected) -> Refusal:
    """The first fault as the answer's own, and all of them beside it."""
    return Refusal(rejected.code, rejected.detail, findings(rejected))


class Secrets(msgspec.Struct, frozen=True):
    """The secrets in the addresses of triggers without a signature, by source."""

    hashes: Mapping[str, str]
    """The hashes of all of them, as they are kept."""
    new: Mapping[str, str]
    """The ones just made, in the clear: to be shown once."""


def url_secrets(manifest: Manifest, kept: Mapping[str, str], new_token: Callable[[int], str]) -> Secrets:
    """A trigger that stays keeps its secret, so that its sender need not be told another address."""
    unsigned = [trigger.source for trigger in manifest.webhook_triggers if trigger.signature is None]
    new = {source: _url_secret(new_token) for source in unsigned if source not in kept}
    hashes = {source: hash_url_secret(new[source]) if source in new else kept[source] for source in unsigned}
    return Secrets(hashes, new)


def _url_secret(new_token: Callable[[int], str]) -> str:
    raw = bytes.fromhex(new_token(SECRET_BYTES))
    return URL_SECRET_PREFIX + base64.urlsafe_b64encode(raw).decode().rstrip("=")


def masked_paths(zombie_id: UUID, manifest: Manifest) -> dict[str, str]:
    """All addresses, for whoever looks at the agent later: of secrets in them only hashes are kept."""
    unsigned = [trigger.source for trigger in manifest.webhook_triggers if trigger.signature is None]
    return webhook_paths(zombie_id, manifest, dict.fromkeys(unsigned, MASKED_SECRET))


def webhook_paths(zombie_id: UUID, manifest: Manifest, new_secrets: Mapping[str, str]) -> dict[str, str]:
    """Trigger source to the path of its address; one with a secret that was shown before is left out."""
    paths = {}
    for trigger in manifest.webhook_triggers:
        if trigger.source in new_secrets:
            paths[trigger.source] = f"/v1/webhooks/{zombie_id}/{new_secrets[trigger.source]}"
        elif trigger.source in MULTISIG_SOURCES:
            paths[trigger.source] = f"/v1/webhooks/{MULTISIG_SEGMENT}/{zombie_id}"
        elif trigger.signature is not None:
            paths[trigger.source] = f"/v1/webhooks/{zombie_id}/{trigger.source}"
    return paths
