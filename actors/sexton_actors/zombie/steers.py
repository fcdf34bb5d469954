"""Wakes an agent by a person's message."""

from typing import Any

from sexton_actors.event_files import request_of
from sexton_actors.manifest.model import Manifest
from sexton_actors.protocol import zombie as m
from sexton_actors.refusal import Refusal
from sexton_actors.zombie import brought_files, transitions
from sexton_actors.zombie.asked_versions import refused_version
from sexton_actors.zombie.record import HeldZombie
from sexton_actors.zombie.wakeups import Waker
from sexton_storage.records.holdings import Holding
from sexton_storage.records.zombies import Zombie


async def steer(held: HeldZombie, waker: Waker, zombie: Zombie, manifest: Manifest, message: m.Steer) -> Any:
    """A person's message wakes the agent, if it takes work, its tenant can pay and has room in its queue."""
    paused = held.workspace_paused
    if refusal := transitions.may_be_messaged(zombie, message.message, workspace_paused=paused):
        return await waker.kept_before(message.key) or refusal
    if refusal := await held.world.entitlements.may_ask_for_work(zombie.tenant_id):
        return await waker.kept_before(message.key) or refusal
    if refusal := await held.world.entitlements.may_add(zombie.tenant_id, Holding.QUEUED_MESSAGES):
        return await waker.kept_before(message.key) or refusal
    if refusal := await refused_version(held, zombie, message.asked_version):
        return await waker.kept_before(message.key) or refusal
    files = await brought_files.bring(held.world, zombie, message)
    if isinstance(files, Refusal):
        return await waker.kept_before(message.key) or files
    waking = transitions.WakeUp(
        actor=f"steer:{message.by}",
        event_type="message",
        request=request_of(message.message, files),
        event_id=message.event_id,
        dedup_key=message.key,
        traceparent=message.traceparent,
        asked_version=message.asked_version,
    )
    return await waker.wake(zombie, manifest, waking, webhook=False)
