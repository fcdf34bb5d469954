"""Has an agent work on events that are over once more."""

from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

import msgspec
import trio

from sexton_actors.json_merge import merged
from sexton_actors.manifest.model import Manifest
from sexton_actors.protocol import zombie as m
from sexton_actors.refusal import Refusal
from sexton_actors.zombie import brought_files, transitions
from sexton_actors.zombie.asked_versions import refused_version
from sexton_actors.zombie.record import HeldZombie
from sexton_actors.zombie.wakeups import Waker
from sexton_storage.decisions.sources import source_event
from sexton_storage.records.events import Event
from sexton_storage.records.zombies import Zombie

LARGE_CHARS: Final = 64 * 1024
"""A request is read beside others' work from this size on."""


async def replay(
    held: HeldZombie, waker: Waker, zombie: Zombie, manifest: Manifest, message: m.Replay
) -> Any:
    """A new event with the same actor and type: it passes the gates, budgets and limits again.

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
    if refusal := await refused_version(held, zombie, message.asked_version):
        return await waker.kept_before(message.key) or refusal
    new_id = message.new_id or held.world.new_id()
    if refusal := await brought_files.copy(held.world, event, new_id):
        return await waker.kept_before(message.key) or refusal
    text = _asked(event, message)
    waking = transitions.WakeUp(
        actor=event.actor,
        event_type=event.event_type,
        request=msgspec.json.decode(text),
        text=text,
        source_event_id=event.source_event_id,
        resumes_event_id=event.id,
        repeats=event,
        source=source_event(event),
        replayed_by=message.by,
        event_id=new_id,
        dedup_key=message.key,
        traceparent=message.traceparent,
        asked_version=message.asked_version,
    )
    return await waker.wake(zombie, manifest, waking, webhook=False)


async def replay_many(
    held: HeldZombie, waker: Waker, zombie: Zombie | None, manifest: Manifest | None, message: m.ReplayMany
) -> Any:
    """The same for events of a bulk job that it has not made yet."""
    if zombie is not None and (refusal := await refused_version(held, zombie, message.asked_version)):
        return (refusal,) * len(message.events)
    replies: dict[UUID, Any] = {}
    wakings: dict[UUID, transitions.WakeUp] = {}
    for event, new_id in zip(message.events, message.new_ids, strict=True):
        if zombie is None or manifest is None:
            replies[event.id] = Refusal("UZ-EVENT-001", f"The agent has no event {event.id}.")
            continue
        may = transitions.may_be_replayed(zombie, event, workspace_paused=held.workspace_paused)
        if refusal := may or await brought_files.copy(held.world, event, new_id):
            replies[event.id] = refusal
        else:
            if len(event.request_json) >= LARGE_CHARS:
                await trio.lowlevel.checkpoint()
            wakings[event.id] = _again(event, new_id, message, manifest)
    if zombie is None or manifest is None or not wakings:
        return tuple(replies[event.id] for event in message.events)
    if refusal := await held.world.entitlements.may_ask_for_work(zombie.tenant_id):
        return tuple(replies.get(event.id, refusal) for event in message.events)
    order = [*wakings]
    return await waker.wake_many(
        zombie,
        manifest,
        [wakings[event_id] for event_id in order],
        lambda woken: _in_order(message, replies, dict(zip(order, woken, strict=True))),
    )


def _in_order(message: m.ReplayMany, before: Mapping[UUID, Any], woken: Mapping[UUID, Any]) -> Any:
    replies = {**before, **woken}
    return tuple(replies[event.id] for event in message.events)


def _again(event: Event, new_id: UUID, message: m.ReplayMany, manifest: Manifest) -> transitions.WakeUp:
    text, gates = _asked(event, message), manifest.gates
    return transitions.WakeUp(
        actor=event.actor,
        event_type=event.event_type,
        # Only gates look into it.
        request=msgspec.json.decode(text) if gates.rules or gates.anomaly_rules else {},
        text=text,
        source_event_id=event.source_event_id,
        resumes_event_id=event.id,
        repeats=event,
        source=source_event(event),
        replayed_by=message.by,
        event_id=new_id,
        asked_version=message.asked_version,
        shadow_job=message.shadow_job,
    )


def _asked(event: Event, message: m.Replay | m.ReplayMany) -> str:
    """What the new event asks."""
    if message.request_json is None:
        return event.request_json
    if not message.merges:
        return message.request_json
    before, patch = msgspec.json.decode(event.request_json), msgspec.json.decode(message.request_json)
    return msgspec.json.encode(merged(before, patch)).decode()
