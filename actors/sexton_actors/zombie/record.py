"""One agent's record as its actor holds and changes it, with its workspace's leave to work."""

from collections.abc import Awaitable, Callable

from sexton_actors.held.agent import HeldAgent
from sexton_actors.protocol.chat import Look
from sexton_actors.protocol.lease import CancelRun
from sexton_actors.protocol.queue import AgentChanged
from sexton_actors.protocol.scheduler import SchedulesChanged
from sexton_actors.refusal import Refusal
from sexton_actors.zombie.transitions import Change, Unchanged
from sexton_storage.errors import NameTaken
from sexton_storage.records.crons import declared
from sexton_storage.records.zombies import SeenAgent, Zombie, ZombieStatus
from sexton_storage.signals import Signal, Topic

Decision = Change | Unchanged | Refusal
Decide = Callable[[Zombie, int], Decision]
Consider = Callable[[Zombie, int], Awaitable[Decision]]
"""A decision that reads something beside the record, and all of it again when the record has changed."""


class HeldZombie(HeldAgent):
    """Each change of it is told to the queue, the scheduler and the other nodes."""

    __slots__ = ()

    def name_taken(self, name: str) -> Refusal:
        return Refusal("UZ-ZMB-006", f"The workspace has an agent named {name!r} already.")

    def confirm_seen(self, seen: SeenAgent, at: int) -> None:
        """Take the record for read at that time if it was at the same version then."""
        read_at = self.freshness.read_at
        if self.record is not None and self.record.version == seen.version and at > (read_at or 0):
            self.workspace_paused = seen.workspace_paused
            self.confirm(seen.version, at)

    def _may_have_changed(self, mark: int) -> bool:
        known = () if self.record is None else (self.record.workspace_id,)
        return self.world.changed_records.since(mark, self.id, *known)

    async def change(self, decide: Decide) -> Zombie | Refusal:
        """Decide, save, adopt, tell; the agent as it is then."""

        async def consider(zombie: Zombie, now: int) -> Decision:
            return decide(zombie, now)

        return await self.change_after(consider)

    async def change_after(self, consider: Consider) -> Zombie | Refusal:
        """As ``change``, for a decision that reads something first."""

        async def attempt(zombie: Zombie, now: int) -> Zombie | Refusal:
            decision = await consider(zombie, now)
            if isinstance(decision, Unchanged):
                return zombie
            if isinstance(decision, Refusal):
                return decision
            try:
                await self._save(decision, now)
            except NameTaken:
                return self.name_taken(decision.zombie.name)
            self.adopt(decision.zombie)
            self.world.storage.signals.send(Signal(Topic.AGENT, self.id))
            self.context.tell("queue", self.id, AgentChanged())
            self.tell_scheduler(decision.zombie)
            if decision.notice is not None and self.world.chat is not None:
                self.context.tell("chat", decision.zombie.workspace_id, Look())
            return decision.zombie

        return await self.until_kept(attempt)

    def tell_scheduler(self, zombie: Zombie) -> None:
        """Those who have schedules may have others now; it would find out by itself, but later."""
        if declared(zombie.compiled):
            self.context.tell("scheduler", "", SchedulesChanged())

    async def _save(self, change: Change, now: int) -> None:
        zombies = self.world.storage.zombies
        if change.zombie.status is not ZombieStatus.KILLED:
            await zombies.save(change.zombie, change.frames, change.config, change.proposal, change.notice)
            return
        for lease_id in await zombies.kill(change.zombie, change.frames, now):
            self.context.tell("lease", lease_id, CancelRun())
