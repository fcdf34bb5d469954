"""Lets a run ask for a service, and lends it the credential of one that was granted."""

from sexton_actors.lease.handover.secret_hosts import secret_hosts
from sexton_actors.lease.record import HeldLease
from sexton_actors.lease.transitions.integrations import may_use, used
from sexton_actors.lease.transitions.shadows import may_take_effect
from sexton_actors.lease.transitions.state import STALE, LeaseState, fenced
from sexton_actors.manifest.model import from_json
from sexton_actors.protocol import lease as m
from sexton_actors.protocol.grants import Request, Requested
from sexton_actors.refusal import Refusal
from sexton_engine import EngineError
from sexton_storage.records.leases import Lease, LeaseToken
from sexton_storage.refusals import Lost
from sexton_storage.writes import AppendFrames


async def ask(held: HeldLease, message: m.AskIntegration) -> Requested | Refusal:
    """The agent's own request, made by its run; people decide on it as on any other."""
    state = await held.refresh()
    if state is None:
        return held.unknown()
    lease = state.lease
    if refusal := fenced(lease, message.runner_id, None, held.world.now_ms(), STALE):
        return refusal
    if refusal := may_take_effect(lease):
        return refusal
    request = Request(
        grant_id=held.world.new_id(),
        tenant_id=lease.tenant_id,
        workspace_id=lease.workspace_id,
        service=message.service,
        reason=message.reason,
        by=f"run:{lease.event_id}",
        event_id=lease.event_id,
        held=LeaseToken(lease.id, lease.fencing_token),
    )
    try:
        return await held.context.ask("grants", lease.zombie_id, request)
    except EngineError as fault:
        return Refusal("UZ-API-003", f"The agent's grants do not answer: {fault}", retry_after_s=1)


async def lend(held: HeldLease, message: m.Lend) -> m.Lent | Refusal:
    """The credential of the service's name, once the frame that says so is kept under the lease."""

    async def attempt(state: LeaseState, now: int) -> m.Lent | Refusal | Lost:
        lease = state.lease
        if refusal := fenced(lease, message.runner_id, None, now, STALE):
            return refusal
        if refusal := may_take_effect(lease):
            return refusal
        grant = may_use(
            await held.world.storage.grants.find(lease.zombie_id, message.service), message.service
        )
        if isinstance(grant, Refusal):
            return grant
        data = await held.world.secrets.open(lease.workspace_id, message.service)
        if data is None:
            return Refusal("UZ-ZMB-003", f"The vault has no credential named {message.service}.")
        frames = (used(grant, lease.event_id, now),)
        write = AppendFrames(lease.zombie_id, frames, lease.id, lease.fencing_token)
        kept = await held.world.storage.journal.write(write)
        if isinstance(kept, Lost):
            # A lease that was lost meanwhile keeps no frame, and then nothing is lent.
            return kept
        return m.Lent(message.service, data, await _hosts(held, lease, message.service))

    return await held.until_kept(attempt)


async def _hosts(held: HeldLease, lease: Lease, service: str) -> tuple[str, ...]:
    zombie = await held.world.storage.zombies.load(lease.zombie_id)
    allow = () if zombie is None else from_json(zombie.compiled).network_hosts
    return secret_hosts(service, await held.world.secrets.hosts(lease.workspace_id, service), allow)
