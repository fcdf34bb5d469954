"""Has an agent work on an event that is over once more."""

from typing import Any

import msgspec

from sexton_actors.manifest.model import Manifest
from sexton_actors.protocol import zombie as m
from sexton_actors.refusal import Refusal
from sexton_actors.zombie import brought_files, transitions
from sexton_actors.zombie.record import HeldZombie
from sexton_actors.zombie.wakeups import Waker
from sexton_storage.records.zombies import Zombie


async def replay(
    held: HeldZombie, waker: Waker, zombie: Zombie, manifest: Manifest, message: m.Replay
) -> Any:
    """A new event with the same actor, type and request: it passes the gates, budgets and limits again.

    It brings the same files, and begins at the beginning: what people approved was approved for the first
    event, and the checkpoint that remembers it stays with that.
    """
    event = await held.world.storage.events.load(message.event_id)
    if event is None or event.zombie_id != zombie.id:
        return Refusal("UZ-EVENT-001", f"The agent has no event {message.event_id}.")
    paused = held.workspace_paused
    if refusal := transitions.may_be_replayed(zombie, event, workspace_paused=paused):
        return await waker.kept_before(message.key) or refusal
    if refusal := await held.world.entitlements.may_ask_for_work(zombie.tenant_id):
        return await waker.kept_before(message.key) or refusal
    new_id = message.new_id or held.world.new_id()
    if refusal := await brought_files.copy(held.world, event, new_id):
        return await waker.kept_before(message.key) or refusal
    waking = transitions.WakeUp(
        actor=event.actor,
        event_type=event.event_type,
        request=msgspec.json.decode(event.request_json),
        text=event.request_json,
        source_event_id=event.source_event_id,
        resumes_event_id=event.id,
        replayed_by=message.by,
        event_id=new_id,
        dedup_key=message.key,
        traceparent=message.traceparent,
    )
    return await waker.wake(zombie, manifest, waking, webhook=False)
