"""What routes share that give an agent other files."""

from collections.abc import Mapping
from typing import Final

import msgspec

from sexton_actors.lease.handover.secret_hosts import secret_hosts
from sexton_actors.manifest.advice import Need, Warned, goes_nowhere, missing
from sexton_actors.manifest.model import Manifest, Runtime
from sexton_actors.manifest.parse import Reading, read
from sexton_actors.manifest.problems import TRIGGER_FILE, ManifestRejected
from sexton_actors.protocol.zombie import Configured
from sexton_actors.refusal import Refusal
from sexton_http.answers import Problem
from sexton_http.bodies.shapes import Shape
from sexton_http.identity.context import HttpContext
from sexton_storage.errors import StorageUnavailable
from sexton_storage.records.zombies import Zombie
from sexton_storage.vault import VaultError

MARKDOWN_CHARS: Final = 64 * 1024
MARKDOWN_BYTES: Final = 64 * 1024

NEW_FILES: Final = ("UZ-ZMB-006", "UZ-ZMB-008", "UZ-ZMB-011", "UZ-APPROVAL-001", "UZ-APPROVAL-005")
"""What is told of two files that make no agent, or one whose name is taken."""
NewUrls = dict[str, str] | msgspec.UnsetType
"""Trigger source to its address; one whose secret was shown before is left out."""


def bounded(field: str, text: str | None) -> None:
    """Bounds are in bytes; the declaration can only count characters. Raises Problem UZ-REQ-001."""
    if text is not None and len(text.encode()) > MARKDOWN_BYTES:
        raise Problem("UZ-REQ-001", f"/{field}: over {MARKDOWN_BYTES} bytes", facts={"pointer": f"/{field}"})


class ManifestWarning(Shape):
    """What an agent's author should know though the files are good."""

    file: str
    line: int
    key: str
    message: str


async def warnings_of(ctx: HttpContext, zombie: Zombie, source: str, trigger: str) -> list[ManifestWarning]:
    """All that is to be said of an agent's files, and of the credentials that they name.

    What cannot be found out now, because storage is away or a credential does not open, is left unsaid: the
    agent is installed.
    """
    found = read(source, trigger, ctx.world.around)
    if isinstance(found, ManifestRejected):
        return []
    said = [*found.warnings]
    try:
        names = tuple(dict.fromkeys(need.name for need in found.needs))
        absent = set(await ctx.world.secrets.missing(zombie.workspace_id, names))
        said += [missing(need) for need in found.needs if need.name in absent]
        if found.manifest.runtime is Runtime.AGENT or found.manifest.network_hosts:
            lent = [need for need in found.needs if need.is_lent and need.name not in absent]
            said += [goes_nowhere(n) for n in lent if not await _hosts_of(ctx, zombie, found.manifest, n)]
        said += await _undeclared(ctx, zombie, found)
        if found.manifest.runtime is Runtime.AGENT:
            said += await _without_model(ctx, zombie, found.manifest)
    except (StorageUnavailable, VaultError):
        pass
    said.sort(key=lambda warned: warned.line)
    return [ManifestWarning(one.file, one.line, one.key, one.message) for one in said]


async def _hosts_of(ctx: HttpContext, zombie: Zombie, manifest: Manifest, need: Need) -> tuple[str, ...]:
    named = await ctx.world.secrets.hosts(zombie.workspace_id, need.name)
    return secret_hosts(need.name, named, manifest.network_hosts)


async def _undeclared(ctx: HttpContext, zombie: Zombie, found: Reading) -> list[Warned]:
    if not found.undeclared:
        return []
    names = [name for name, _ in found.undeclared]
    declared = await ctx.world.storage.mcp_servers.named(zombie.workspace_id, names)
    known = {server.name for server in declared}
    return [warned for name, warned in found.undeclared if name not in known]


async def _without_model(ctx: HttpContext, zombie: Zombie, manifest: Manifest) -> list[Warned]:
    choice = await ctx.world.providers.resolve_provider(
        tenant_id=zombie.tenant_id,
        workspace_id=zombie.workspace_id,
        provider=manifest.provider,
        model=manifest.model,
    )
    if not isinstance(choice, Refusal):
        return []
    way_out = (
        "until there is a model, events end as agent_error; set one up: sexton credentials llm set PROVIDER"
    )
    return [Warned(TRIGGER_FILE, 1, "provider", f"{choice.code}: {choice.detail} {way_out}")]


async def warnings_of_active(ctx: HttpContext, zombie: Zombie) -> list[ManifestWarning]:
    """The same of the files that an agent has now."""
    config = await ctx.world.storage.zombies.load_config(zombie.config_version_id)
    if config is None:
        return []
    return await warnings_of(ctx, zombie, config.source_markdown, config.trigger_markdown)


def urls(ctx: HttpContext, paths: Mapping[str, str]) -> dict[str, str]:
    return {source: ctx.settings.base_url + path for source, path in paths.items()}


def new_urls(ctx: HttpContext, configured: Configured | None) -> NewUrls:
    """The addresses, where some have a secret that is shown in this answer only; else nothing."""
    if configured is None or configured.webhook_paths is None or not configured.new_secrets:
        return msgspec.UNSET
    return urls(ctx, configured.webhook_paths)
