"""Has an agent work on events that are over once more."""

import hashlib
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
from sexton_actors.zombie.record import HeldZombie
from sexton_actors.zombie.wakeups import Waker
from sexton_storage.records.events import Event
from sexton_storage.records.zombies import Zombie

LARGE_CHARS: Final = 64 * 1024
"""A request is read beside others' work from this size on."""
_VERSION = 7
_VARIANT = 2


def replay_id(job_id: UUID, event_id: UUID, asked_at: int) -> UUID:
    """The id of the event that a bulk job makes of another: a UUIDv7 of the time when the job was made.

    It can be made once only, whichever node tries, and however long after.

    >>> one = replay_id(UUID(int=1), UUID(int=2), 1_700_000_000_000)
    >>> one.version, one == replay_id(UUID(int=1), UUID(int=2), 1_700_000_000_000), one.int >> 80
    (7, True, 1700000000000)
    """
    random = int.from_bytes(hashlib.sha256(job_id.bytes + event_id.bytes).digest())
    high, low = random >> 62 & 0xFFF, random & (1 << 62) - 1
    return UUID(int=asked_at << 80 | _VERSION << 76 | high << 64 | _VARIANT << 62 | low)


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


async def replay_many(
    held: HeldZombie, waker: Waker, zombie: Zombie | None, manifest: Manifest | None, message: m.ReplayMany
) -> Any:
    """The same for events of a bulk job, each once: those that it has made already are not made again."""
    storage = held.world.storage
    ids = {event_id: replay_id(message.job_id, event_id, message.asked_at) for event_id in message.event_ids}
    made = await storage.jobs.known(tuple(ids.values()))
    replies: dict[UUID, Any] = {event_id: m.AlreadyAccepted(i) for event_id, i in ids.items() if i in made}
    events = await storage.events.load_requests([event_id for event_id in ids if event_id not in replies])
    found = {event.id: event for event in events if event.zombie_id == held.id}
    wakings: dict[UUID, transitions.WakeUp] = {}
    for event_id in (one for one in message.event_ids if one not in replies):
        event = found.get(event_id)
        if zombie is None or manifest is None or event is None:
            replies[event_id] = Refusal("UZ-EVENT-001", f"The agent has no event {event_id}.")
            continue
        may = transitions.may_be_replayed(zombie, event, workspace_paused=held.workspace_paused)
        if refusal := may or await brought_files.copy(held.world, event, ids[event_id]):
            replies[event_id] = refusal
        else:
            if len(event.request_json) >= LARGE_CHARS:
                await trio.lowlevel.checkpoint()
            wakings[event_id] = _again(event, ids[event_id], message, manifest)
    if zombie is None or manifest is None or not wakings:
        return tuple(replies[event_id] for event_id in message.event_ids)
    if refusal := await held.world.entitlements.may_ask_for_work(zombie.tenant_id):
        return tuple(replies.get(event_id, refusal) for event_id in message.event_ids)
    order = [*wakings]
    return await waker.wake_many(
        zombie,
        manifest,
        [wakings[event_id] for event_id in order],
        lambda woken: _in_order(message, replies, dict(zip(order, woken, strict=True))),
    )


def _in_order(message: m.ReplayMany, before: Mapping[UUID, Any], woken: Mapping[UUID, Any]) -> Any:
    replies = {**before, **woken}
    return tuple(replies[event_id] for event_id in message.event_ids)


def _again(event: Event, new_id: UUID, message: m.ReplayMany, manifest: Manifest) -> transitions.WakeUp:
    text, gates = event.request_json, manifest.gates
    if message.request_json is not None:
        asked = msgspec.json.decode(message.request_json)
        text = (
            msgspec.json.encode(merged(msgspec.json.decode(text), asked)).decode()
            if message.merges
            else message.request_json
        )
    return transitions.WakeUp(
        actor=event.actor,
        event_type=event.event_type,
        # Only gates look into it.
        request=msgspec.json.decode(text) if gates.rules or gates.anomaly_rules else {},
        text=text,
        source_event_id=event.source_event_id,
        resumes_event_id=event.id,
        replayed_by=message.by,
        event_id=new_id,
    )
