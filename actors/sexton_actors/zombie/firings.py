"""Wakes an agent by one of its schedules."""

import logging
from typing import Any, Final

from sexton_actors.manifest.model import CronTrigger, Manifest
from sexton_actors.protocol import zombie as m
from sexton_actors.refusal import Refusal
from sexton_actors.schedules import times as schedules
from sexton_actors.zombie import transitions
from sexton_actors.zombie.record import HeldZombie
from sexton_actors.zombie.transitions import WakeUp
from sexton_actors.zombie.wakeups import Waker
from sexton_storage.records.crons import NEVER, CronEntry, Firing, ScheduleNote
from sexton_storage.records.holdings import Holding
from sexton_storage.records.zombies import Zombie, ZombieStatus

log = logging.getLogger("sexton.scheduler")


SERVER_AWAY: Final = "server_away"
WORKSPACE_PAUSED: Final = "workspace_paused"
SCHEDULE_PAUSED: Final = "schedule_paused"


class Firings:
    """Acts on what the scheduler found; another node may have done so before, and then nothing happens."""

    def __init__(self, held: HeldZombie, waker: Waker) -> None:
        self._held = held
        self._waker = waker

    def __repr__(self) -> str:
        return f"<Firings of {self._held!r}>"

    async def due(self, zombie: Zombie, manifest: Manifest, message: m.Fire | m.FiringMissed) -> Any:
        """Fire, or note that a firing has come to nothing."""
        if isinstance(message, m.Fire):
            return await self._fire(zombie, manifest, message)
        entry = CronEntry(zombie.id, message.schedule, message.timezone, 0, message.at)
        return await self._missed(entry, 1, message.at, message.at, message.why)

    async def _fire(self, zombie: Zombie, manifest: Manifest, message: m.Fire) -> Any:
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
        if fired.at > entry.next_at:
            missed = schedules.count(entry.schedule, entry.timezone, entry.next_at, fired.at)
            await self._missed(entry, missed, entry.next_at, fired.at - 1, SERVER_AWAY)
        return await self._wake(zombie, manifest, trigger, entry, fired)

    async def _wake(
        self,
        zombie: Zombie,
        manifest: Manifest,
        trigger: CronTrigger,
        entry: CronEntry,
        fired: schedules.Fired,
    ) -> Any:
        resting = WORKSPACE_PAUSED if self._held.workspace_paused else await self._resting(entry)
        if resting:
            # It is not made up for: what a pause has kept quiet is not wanted all at once when it ends.
            if await self._held.world.storage.crons.plan(entry, fired.next_at):
                await self._missed(entry, 1, fired.at, fired.at, resting)
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

    async def run_now(self, zombie: Zombie, manifest: Manifest, message: m.RunSchedule) -> Any:
        """An event as a firing of this moment makes; its plan stays. It is asked for as a message is."""
        trigger = manifest.cron_for(message.schedule, message.timezone)
        if trigger is None:
            return Refusal("UZ-SCHEDULE-001", "The agent has no such schedule any more.")
        entitlements = self._held.world.entitlements
        refusal = transitions.may_be_asked(zombie, workspace_paused=self._held.workspace_paused)
        refusal = refusal or await entitlements.may_ask_for_work(zombie.tenant_id)
        refusal = refusal or await entitlements.may_add(zombie.tenant_id, Holding.QUEUED_MESSAGES)
        if refusal:
            return await self._waker.kept_before(message.key) or refusal
        waking = WakeUp(
            actor=f"cron:{trigger.schedule}",
            event_type="cron",
            request={
                "schedule": trigger.schedule,
                "timezone": trigger.timezone,
                "scheduled_at": self._held.world.now_ms(),
                "message": trigger.message,
                "asked_by": message.by,
            },
            dedup_key=message.key,
            traceparent=message.traceparent,
            audit=message.audit,
        )
        return await self._waker.wake(zombie, manifest, waking, webhook=False)

    async def _resting(self, entry: CronEntry) -> str:
        notes = await self._held.world.storage.crons.notes((entry.zombie_id,))
        paused = any(
            note.paused_at is not None
            for note in notes
            if (note.schedule, note.timezone) == (entry.schedule, entry.timezone)
        )
        return SCHEDULE_PAUSED if paused else ""

    async def _missed(self, entry: CronEntry, count: int, first: int, last: int, why: str) -> None:
        note = ScheduleNote(
            entry.zombie_id,
            entry.schedule,
            entry.timezone,
            missed=count,
            missed_from=first,
            missed_until=last,
            missed_why=why,
        )
        await self._held.world.storage.crons.note_missed(note)
