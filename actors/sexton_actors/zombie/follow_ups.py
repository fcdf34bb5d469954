"""Wakes an agent as one of its runs asked."""

import hashlib
from typing import Any

from sexton_actors.manifest.model import Manifest
from sexton_actors.protocol import zombie as m
from sexton_actors.refusal import Refusal
from sexton_actors.zombie.record import HeldZombie
from sexton_actors.zombie.transitions import WakeUp
from sexton_actors.zombie.wakeups import Waker
from sexton_storage.decisions.sources import source_follow_up
from sexton_storage.records.follow_ups import FollowUp, FollowUpStatus
from sexton_storage.records.zombies import Zombie, ZombieStatus

FOLLOW_UP = "follow_up"


class FollowUps:
    """Acts on what the scheduler found; another node may have done so before, and then nothing happens."""

    def __init__(self, held: HeldZombie, waker: Waker) -> None:
        self._held = held
        self._waker = waker

    def __repr__(self) -> str:
        return f"<FollowUps of {self._held!r}>"

    async def due(self, message: m.FollowUpDue) -> Any:
        world = self._held.world
        follow_up = await world.storage.follow_ups.load(message.follow_up_id)
        if follow_up is None or not is_due(follow_up, world.now_ms()):
            return None
        zombie, manifest = await self._held.refresh(), self._held.manifest
        if zombie is None or not self._takes_work(zombie):
            # It comes once and is not made up for, so nothing that was read a while ago may decide that.
            zombie, manifest = await self._held.load(), self._held.manifest
        if zombie is None or manifest is None:
            return None
        if not self._takes_work(zombie):
            await world.storage.follow_ups.close(follow_up, FollowUpStatus.DROPPED, world.now_ms())
            return None
        return await self._wake(zombie, manifest, follow_up)

    def _takes_work(self, zombie: Zombie) -> bool:
        return zombie.status is ZombieStatus.ACTIVE and not self._held.workspace_paused

    async def _wake(self, zombie: Zombie, manifest: Manifest, follow_up: FollowUp) -> Any:
        waking = WakeUp(
            actor=f"{FOLLOW_UP}:{follow_up.event_id}",
            event_type=FOLLOW_UP,
            request={
                "follow_up_id": str(follow_up.id),
                "scheduled_at": follow_up.at,
                "message": follow_up.message,
            },
            dedup_key=hashlib.sha256(b"follow_up\0" + follow_up.id.bytes).digest(),
            follow_up_id=follow_up.id,
            source=source_follow_up(follow_up),
            resumes_event_id=follow_up.event_id,
        )
        return await self._waker.wake(zombie, manifest, waking, webhook=False)

    async def cancel(self, message: m.CancelFollowUp) -> Refusal | None:
        world = self._held.world
        store, follow_up_id = world.storage.follow_ups, message.follow_up_id
        follow_up = await store.load(follow_up_id)
        if follow_up is None or follow_up.zombie_id != self._held.id:
            return _unknown(follow_up_id)
        if await store.close(follow_up, FollowUpStatus.CANCELLED, world.now_ms()):
            return None
        ended = await store.load(follow_up_id)
        return _unknown(follow_up_id) if ended is None else may_be_cancelled(ended)


def is_due(follow_up: FollowUp, now: int) -> bool:
    """Whether it waits, and its time has come."""
    return follow_up.status is FollowUpStatus.PENDING and follow_up.at <= now


def may_be_cancelled(follow_up: FollowUp) -> Refusal | None:
    """None while it waits, and when it was taken back before."""
    if follow_up.status in {FollowUpStatus.PENDING, FollowUpStatus.CANCELLED}:
        return None
    facts = {"current_state": str(follow_up.status)}
    return Refusal("UZ-REQ-009", f"The follow-up is {follow_up.status}.", facts)


def _unknown(follow_up_id: Any) -> Refusal:
    return Refusal("UZ-FOLLOWUP-001", f"The agent has no follow-up {follow_up_id}.")
