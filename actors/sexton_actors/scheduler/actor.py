"""The scheduler: has the agents fire whose time has come."""

import logging
from collections.abc import Hashable, Sequence
from typing import assert_never
from uuid import UUID

from sexton_actors.protocol import scheduler as m
from sexton_actors.protocol.zombie import Fire, FollowUpDue
from sexton_actors.rounds import Round, RoundsActor
from sexton_actors.schedules import times
from sexton_actors.terms import DEADLINE_SLACK_S, SCHEDULE_INTERVAL_S, SCHEDULE_MORE_S
from sexton_actors.world import World
from sexton_engine import Context, MailboxSpec
from sexton_storage.records.crons import NEVER, CronEntry

DUE_PAGE = 500
TOLD_FOR_MS = 5_000
"""An agent that was told of a firing is told again after this, should it still be due."""

log = logging.getLogger("sexton.scheduler")
Told = dict[Hashable, int]


class Scheduler(RoundsActor):
    """One for a node; it keeps nothing that is not in the database.

    It reads what is due from an index, so that agents without a schedule, and those that sleep long, cost
    nothing. Two nodes that find the same firing both tell, and one conditional write holds.
    """

    kind = "scheduler"
    mailbox = MailboxSpec(capacity=1024)

    def __init__(self, context: Context, world: World) -> None:
        super().__init__(context, world)
        self._told: Told = {}

    def rounds(self) -> Sequence[Round]:
        """At once: a restart may have missed some."""
        return (Round(m.Look(), SCHEDULE_INTERVAL_S, self._look),)

    async def on_receive(self, message: m.Look | m.SchedulesChanged) -> None:
        """News of a schedule is a round that comes early."""
        match message:
            case m.Look() | m.SchedulesChanged():
                await self.come_round(m.Look())
            case _:
                assert_never(message)

    async def _look(self) -> float | None:
        crons, now = self._world.storage.crons, self._world.now_ms()
        self._told = {firing: at for firing, at in self._told.items() if now - at < TOLD_FOR_MS}
        found = await crons.due(before=now, limit=DUE_PAGE)
        for entry in found:
            if entry.next_at is None:
                await crons.plan(entry, self._first(entry))
            else:
                self._tell_once(
                    (entry.zombie_id, entry.schedule, entry.timezone, entry.next_at),
                    entry.zombie_id,
                    Fire(entry.schedule, entry.timezone),
                    now,
                )
        asked = await self._world.storage.follow_ups.due(before=now, limit=DUE_PAGE)
        for follow_up in asked:
            self._tell_once(follow_up.id, follow_up.zombie_id, FollowUpDue(follow_up.id), now)
        if DUE_PAGE in {len(found), len(asked)}:
            return SCHEDULE_MORE_S
        return await self._next_firing_s(now)

    async def _next_firing_s(self, now: int) -> float | None:
        """Other nodes may plan meanwhile, so this waits for the next firing, but not for long."""
        storage = self._world.storage
        next_ones = (await storage.crons.next_at(), await storage.follow_ups.next_at())
        earliest = min((at for at in next_ones if at is not None), default=None)
        if earliest is None:
            return None
        left_s = max(0, earliest - now) / 1000 + DEADLINE_SLACK_S
        if earliest <= now:
            left_s = SCHEDULE_MORE_S
        return min(left_s, SCHEDULE_INTERVAL_S)

    def _first(self, entry: CronEntry) -> int:
        try:
            return times.following(entry.schedule, entry.timezone, entry.since)
        except times.Unreadable as fault:
            log.warning("agent %s does not fire: %s", entry.zombie_id, fault)
            return NEVER

    def _tell_once(self, name: Hashable, zombie_id: UUID, message: Fire | FollowUpDue, now: int) -> None:
        if name not in self._told:
            self._told[name] = now
            self.context.tell("zombie", zombie_id, message)
