"""What a queue knows of its agent. It only saves questions: the claim itself asks the database."""

from uuid import UUID

from sexton_actors.addresses import uuid_key
from sexton_actors.manifest.model import Manifest, from_json
from sexton_actors.world import World
from sexton_engine import Context
from sexton_storage.records.zombies import Zombie


class QueueState:
    """The agent as fresh as this node keeps records, and what was told and done about its events."""

    __slots__ = (
        "_loaded_at",
        "_mark",
        "announced",
        "context",
        "last_runner_id",
        "leased",
        "looked",
        "manifest",
        "over_until",
        "world",
        "zombie",
    )

    def __init__(self, context: Context, world: World) -> None:
        self.context = context
        self.world = world
        self.announced = False
        """Whether the dispatcher was told that the agent is ready."""
        self.leased = False
        """Whether one of its events is leased, as far as is known here."""
        self.looked = False
        """Whether the database was asked since this actor woke: before, older events may wait unknown."""
        self.last_runner_id: UUID | None = None
        self.zombie: Zombie | None = None
        self.manifest: Manifest | None = None
        self.over_until = 0
        """Until then its budget is taken for spent: nothing is claimed in vain each second."""
        self._loaded_at = 0
        self._mark = 0

    def __repr__(self) -> str:
        return f"<QueueState {self.context.key} announced={self.announced} leased={self.leased}>"

    @property
    def id(self) -> UUID:
        return uuid_key(self.context)

    async def refresh(self) -> None:
        """Read the agent again when it may be stale."""
        now = self.world.now_ms()
        changed_records = self.world.changed_records
        fresh = self.zombie is not None and now - self._loaded_at < self.world.fresh_ms
        if fresh and not changed_records.since(self._mark, self.id):
            return
        self._mark = changed_records.mark
        zombie = await self.world.storage.zombies.load(self.id)
        before = self.zombie
        if zombie is None or before is None or before.config_version_id != zombie.config_version_id:
            self.manifest = None if zombie is None else from_json(zombie.compiled)
        self.zombie, self._loaded_at = zombie, now
