"""Wakes an agent by one of its schedules."""

import logging
from typing import Any

from sexton_actors.manifest.model import CronTrigger, Manifest
from sexton_actors.protocol import zombie as m
from sexton_actors.schedules import times as schedules
from sexton_actors.zombie.record import HeldZombie
from sexton_actors.zombie.transitions import WakeUp
from sexton_actors.zombie.wakeups import Waker
from sexton_storage.records.crons import NEVER, CronEntry, Firing
from sexton_storage.records.zombies import Zombie, ZombieStatus

log = logging.getLogger("sexton.scheduler")


class Firings:
    """Acts on what the scheduler found; another node may have done so before, and then nothing happens."""

    def __init__(self, held: HeldZombie, waker: Waker) -> None:
        self._held = held
        self._waker = waker

    def __repr__(self) -> str:
        return f"<Firings of {self._held!r}>"

    async def fire(self, zombie: Zombie, manifest: Manifest, message: m.Fire) -> Any:
        world = self._held.world
        entry = await world.storage.crons.load(zombie.id, message.schedule, message.timezone)
        trigger = manifest.cron_for(message.schedule, message.timezone)
        if entry is None or entry.next_at is None:
            return None
        if trigger is None or zombie.status is not ZombieStatus.ACTIVE:
            # Only what fires has an entry: what is known here is older than that.
            self._held.doubt()
            return None
        try:
            fired = schedules.fire(entry.schedule, entry.timezone, entry.next_at, world.now_ms())
        except schedules.Unreadable as fault:
            log.warning("agent %s does not fire: %s", zombie.id, fault)
            await world.storage.crons.plan(entry, NEVER)
            return None
        if fired is None:
            return None
        return await self._wake(zombie, manifest, trigger, entry, fired)

    async def _wake(
        self,
        zombie: Zombie,
        manifest: Manifest,
        trigger: CronTrigger,
        entry: CronEntry,
        fired: schedules.Fired,
    ) -> Any:
        if self._held.workspace_paused:
            # It is not made up for: what a pause has kept quiet is not wanted all at once when it ends.
            await self._held.world.storage.crons.plan(entry, fired.next_at)
            return None
        waking = WakeUp(
            actor=f"cron:{trigger.schedule}",
            event_type="cron",
            request={
                "schedule": trigger.schedule,
                "timezone": trigger.timezone,
                "scheduled_at": fired.at,
                "message": trigger.message,
            },
            dedup_key=schedules.key_of(trigger.schedule, trigger.timezone, fired.at),
            firing=Firing(entry.schedule, entry.timezone, entry.next_at or 0, fired.next_at),
        )
        return await self._waker.wake(zombie, manifest, waking, webhook=False)
