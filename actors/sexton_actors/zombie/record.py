"""One agent's record as its actor holds it, with its manifest and its workspace's leave to work."""

from collections.abc import Awaitable, Callable
from uuid import UUID

from sexton_actors.addresses import uuid_key
from sexton_actors.manifest.model import Manifest, from_json
from sexton_actors.protocol.lease import CancelRun
from sexton_actors.protocol.queue import AgentChanged
from sexton_actors.protocol.scheduler import SchedulesChanged
from sexton_actors.refusal import Refusal
from sexton_actors.terms import MAX_RACES
from sexton_actors.world import World
from sexton_actors.zombie.transitions import Change, Unchanged
from sexton_engine import Context
from sexton_storage.errors import Conflict, NameTaken
from sexton_storage.records.crons import declared
from sexton_storage.records.zombies import Zombie, ZombieStatus
from sexton_storage.signals import Signal, Topic

Decision = Change | Unchanged | Refusal
Decide = Callable[[Zombie, int], Decision]
Consider = Callable[[Zombie, int], Awaitable[Decision]]
"""A decision that reads something beside the record, and all of it again when the record has changed."""


class ZombieRecord:
    """Read again when it may be stale: another node may have changed it."""

    __slots__ = ("_loaded_at", "_mark", "context", "manifest", "workspace_paused", "world", "zombie")

    def __init__(self, context: Context, world: World) -> None:
        self.context = context
        self.world = world
        self.zombie: Zombie | None = None
        self.manifest: Manifest | None = None
        self.workspace_paused = False
        self._loaded_at: int | None = None
        self._mark = 0

    def __repr__(self) -> str:
        return f"<ZombieRecord {self.context.key} {self.zombie.status if self.zombie else 'not loaded'}>"

    @property
    def id(self) -> UUID:
        return uuid_key(self.context)

    def unknown(self) -> Refusal:
        return Refusal("UZ-ZMB-009", f"There is no agent {self.id}.")

    def raced(self) -> Refusal:
        return Refusal(
            "UZ-API-003", "The agent's record changes faster than it can be read.", retry_after_s=1
        )

    def name_taken(self, name: str) -> Refusal:
        return Refusal("UZ-ZMB-006", f"The workspace has an agent named {name!r} already.")

    def forget(self) -> None:
        """It was purged."""
        self.zombie = self.manifest = self._loaded_at = None

    def doubt(self) -> None:
        """Have it read again before the next message."""
        self._loaded_at = None

    async def refresh(self) -> Zombie | None:
        """The agent, as fresh as this node keeps records; None when there is none."""
        world = self.world
        old = self._loaded_at is None or world.now_ms() - self._loaded_at >= world.fresh_ms
        if old or self._is_doubted():
            await self.load()
        return self.zombie

    def _is_doubted(self) -> bool:
        known = () if self.zombie is None else (self.zombie.workspace_id,)
        return self.world.changed_records.since(self._mark, self.id, *known)

    async def load(self) -> Zombie | None:
        storage, now, before = self.world.storage, self.world.now_ms(), self.zombie
        self._mark = self.world.changed_records.mark
        zombie = await storage.zombies.load(self.id)
        if zombie is None:
            self.manifest = None
        elif before is None or zombie.config_version_id != before.config_version_id:
            self.manifest = from_json(zombie.compiled)
        if zombie is not None:
            workspace = await storage.workspaces.load(zombie.workspace_id)
            self.workspace_paused = workspace is None or workspace.paused
        self.zombie, self._loaded_at = zombie, now
        return zombie

    async def change(self, decide: Decide) -> Zombie | Refusal:
        """Decide, save, adopt, tell the queue; the agent as it is then."""

        async def consider(zombie: Zombie, now: int) -> Decision:
            return decide(zombie, now)

        return await self.change_after(consider)

    async def change_after(self, consider: Consider) -> Zombie | Refusal:
        """As ``change``, for a decision that reads something first."""
        zombie = self.zombie
        for _ in range(MAX_RACES):
            if zombie is None:
                return self.unknown()
            now = self.world.now_ms()
            decision = await consider(zombie, now)
            if isinstance(decision, Unchanged):
                return zombie
            if isinstance(decision, Refusal):
                return decision
            try:
                await self._save(decision, now)
            except Conflict:
                zombie = await self.load()
                continue
            except NameTaken:
                return self.name_taken(decision.zombie.name)
            self._adopt(decision.zombie)
            self.world.storage.signals.send(Signal(Topic.AGENT, self.id))
            self.context.tell("queue", self.id, AgentChanged())
            self.tell_scheduler(decision.zombie)
            return decision.zombie
        return self.raced()

    def _adopt(self, zombie: Zombie) -> None:
        if self.zombie is None or zombie.config_version_id != self.zombie.config_version_id:
            self.manifest = from_json(zombie.compiled)
        self.zombie = zombie

    def tell_scheduler(self, zombie: Zombie) -> None:
        """Those who have schedules may have others now; it would find out by itself, but later."""
        if declared(zombie.compiled):
            self.context.tell("scheduler", "", SchedulesChanged())

    async def _save(self, change: Change, now: int) -> None:
        zombies = self.world.storage.zombies
        if change.zombie.status is not ZombieStatus.KILLED:
            await zombies.save(change.zombie, change.frames, change.config, change.proposal)
            return
        for lease_id in await zombies.kill(change.zombie, change.frames, now):
            self.context.tell("lease", lease_id, CancelRun())
