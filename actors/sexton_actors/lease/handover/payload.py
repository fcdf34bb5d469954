"""What a runner is handed with a lease: the event, the agent's instructions, and what it may use."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from sexton_actors.event_files import names_files, told as told_files
from sexton_actors.lease.handover.feedback import feedback
from sexton_actors.lease.handover.mcp_servers import NotToBeHad, open_mcp_servers
from sexton_actors.lease.handover.secret_hosts import secret_hosts
from sexton_actors.lease.handover.secrets import (
    MissingCredential,
    credential_names,
    grant_statuses,
    memories_payload,
    open_credentials,
)
from sexton_actors.lease.transitions.shadows import without_effects
from sexton_actors.manifest.model import Manifest, Runtime
from sexton_actors.manifest.resources import policy_of
from sexton_actors.protocol.queue import Grant
from sexton_actors.providers import ProviderChoice
from sexton_actors.secret_uses import Use, told
from sexton_actors.traces.context import run_traceparent
from sexton_actors.world import World
from sexton_storage.records.event_files import EventFile
from sexton_storage.records.events import Event
from sexton_storage.records.leases import Lease

CONTEXT_CAP: Final = "context_cap_tokens"
UNDERSTANDS: Final = ("cache_write_tokens", "fallbacks", "retry_after_ms")
"""What a runner of this release may send, and an older server would refuse."""


async def lease_payload(grant: Grant, world: World) -> dict[str, Any] | MissingCredential | NotToBeHad:
    """The lease as the contract spells it (§9), ready to be encoded. Raises StorageUnavailable."""
    lease, manifest = grant.lease, grant.manifest
    if lease.shadow:
        return await _of_shadow(grant, world)
    # Most agents have neither, and the claim has said so: no question is asked in vain.
    grants = await world.storage.grants.of_zombie(lease.zombie_id) if grant.endowed else ()
    services = grant_statuses(manifest, grants)
    secrets = await open_credentials(lease.workspace_id, credential_names(manifest, services), world)
    if isinstance(secrets, MissingCredential):
        return secrets
    servers = await open_mcp_servers(lease, manifest, world)
    if isinstance(servers, NotToBeHad):
        return servers
    if manifest.runtime is not Runtime.AGENT and not manifest.network_hosts:
        # A command that reaches nothing could use none, and what is not sent cannot be lost.
        secrets = {}
    secrets = {name: data for name, data in secrets.items() if name not in grant.unlent}
    return payload_of(
        lease,
        grant.event,
        manifest,
        secrets,
        await _budget_left(grant, world),
        hosts={name: await _hosts(name, lease, manifest, world) for name in secrets},
        uses={name: told(await world.secrets.uses(lease.workspace_id, name)) for name in secrets},
        services=services,
        memories=await memories_payload(lease.zombie_id, world) if grant.endowed else (),
        lessons=await feedback(grant, world),
        choice=grant.provider,
        fallbacks=grant.fallbacks,
        files=await world.storage.event_files.list(grant.event.id) if names_files(grant.event) else (),
        mcp_servers=servers,
    )


async def _of_shadow(grant: Grant, world: World) -> dict[str, Any] | NotToBeHad:
    """What a shadow run is handed: the event, the files, what the agent remembers, and a model.

    Nothing is lent or reached, so its sandbox holds it, and it is given out to none that has no walls.
    """
    if grant.manifest.allow_unsandboxed:
        return NotToBeHad("invalid_config", "A shadow run needs a sandbox, and these files allow none.")
    event = grant.event
    return payload_of(
        grant.lease,
        event,
        without_effects(grant.manifest),
        {},
        await _budget_left(grant, world),
        hosts={},
        uses={},
        services={},
        memories=await memories_payload(event.zombie_id, world) if grant.endowed else (),
        lessons=(),
        choice=grant.provider,
        fallbacks=grant.fallbacks,
        files=await world.storage.event_files.list(event.id) if names_files(event) else (),
    )


def _model(
    manifest: Manifest, choice: ProviderChoice | None, fallbacks: Sequence[ProviderChoice]
) -> dict[str, Any]:
    """What the models are called with; an agent may make its context smaller than the models', not larger."""
    if choice is None:
        return {
            "provider": manifest.provider,
            "model": manifest.model,
            "api_key": None,
            "context": manifest.context,
            "fallbacks": (),
        }
    wish = manifest.context.get(CONTEXT_CAP)
    # What one of them has read has to have room in each of the others.
    cap = min(one.context_cap_tokens for one in (choice, *fallbacks))
    if isinstance(wish, int) and not isinstance(wish, bool) and 0 < wish < cap:
        cap = wish
    return {
        "provider": choice.provider,
        "model": choice.model,
        "api_key": choice.api_key,
        "context": {**manifest.context, CONTEXT_CAP: cap},
        "fallbacks": [
            {"provider": one.provider, "model": one.model, "api_key": one.api_key} for one in fallbacks
        ],
    }


async def _hosts(name: str, lease: Lease, manifest: Manifest, world: World) -> tuple[str, ...]:
    named = await world.secrets.hosts(lease.workspace_id, name)
    return secret_hosts(name, named, manifest.network_hosts)


async def _budget_left(grant: Grant, world: World) -> int | None:
    of_shadow = await _shadow_left(grant, world)
    daily, monthly = grant.lease.budget_daily_nanos, grant.lease.budget_monthly_nanos
    if daily is None and monthly is None:
        return of_shadow
    day, month = await world.storage.zombies.spend(grant.lease.zombie_id, world.now_ms())
    left = [limit - spent for limit, spent in ((daily, day), (monthly, month)) if limit is not None]
    return max(0, min(left if of_shadow is None else (*left, of_shadow)))


async def _shadow_left(grant: Grant, world: World) -> int | None:
    """What the runs of a shadow may still cost together; None: it is no shadow run, or has no bound."""
    job_id = grant.event.shadow_job
    job = None if job_id is None else await world.storage.jobs.load(job_id)
    if job is None or job.budget_nanos is None:
        return None
    return max(0, job.budget_nanos - await world.storage.jobs.spent(job.id))


def payload_of(  # noqa: PLR0913 - what a lease holds, by keyword
    lease: Lease,
    event: Event,
    manifest: Manifest,
    secrets: Mapping[str, Mapping[str, Any]],
    budget_left: int | None,
    *,
    hosts: Mapping[str, Sequence[str]],
    uses: Mapping[str, Sequence[Use]],
    services: Mapping[str, str],
    memories: Sequence[Mapping[str, Any]],
    lessons: Sequence[Mapping[str, Any]],
    choice: ProviderChoice | None = None,
    fallbacks: Sequence[ProviderChoice] = (),
    files: Sequence[EventFile] = (),
    mcp_servers: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """Pure part of ``lease_payload``."""
    return {
        "lease_id": lease.id,
        "fencing_token": lease.fencing_token,
        "lease_expires_at": lease.expires_at,
        "ceiling_at": lease.ceiling_at,
        "attempt": lease.attempt,
        "event": {
            "event_id": event.id,
            "zombie_id": event.zombie_id,
            "workspace_id": event.workspace_id,
            "actor": event.actor,
            "event_type": event.event_type,
            "request_json": msgspec.Raw(event.request_json.encode()),
            "created_at": event.created_at,
            "traceparent": event.traceparent,
            **({"files": told_files(files)} if files else {}),
        },
        "policy": {
            "tools": manifest.tools,
            "network_policy": {
                "allow": manifest.network_allow,
                "rules": msgspec.to_builtins(manifest.network_rules),
            },
            "env": manifest.env,
            "secrets_map": secrets,
            "secret_hosts": hosts,
            "secret_uses": msgspec.to_builtins(uses),
            "integrations": services,
            **_model(manifest, choice, fallbacks),
            "understands": UNDERSTANDS,
            "budget_left_nanos": budget_left,
            "gates": msgspec.to_builtins(manifest.gates),
            "resources": policy_of(manifest.resources),
            "image": manifest.image,
            "mcp_servers": mcp_servers,
        },
        "instructions": manifest.instructions,
        "runtime": manifest.runtime,
        "workspace": manifest.workspace,
        "memory": memories,
        "feedback": lessons,
        "checkpoint": event.checkpoint,
        "traceparent": run_traceparent(event, lease.attempt),
    }
