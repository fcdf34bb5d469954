"""A runner's row and the leases it holds, as its actor knows them."""

from collections.abc import Sequence
from uuid import UUID

from sexton_actors.addresses import uuid_key
from sexton_actors.world import World
from sexton_engine import Context
from sexton_storage.errors import Conflict
from sexton_storage.records.leases import LeaseStatus
from sexton_storage.records.runners import AdminState, Runner, RunnerChange
from sexton_storage.signals import Signal, Topic

SEEN_EVERY_MS = 5_000
"""``last_seen_at`` is written at most this often."""


class Standing:
    """Read again when it may be stale: another node may have changed it, or may hold its leases."""

    __slots__ = (
        "_context",
        "_loaded_at",
        "_mark",
        "_seen_at",
        "_world",
        "cancelling",
        "held",
        "runner",
        "told",
    )

    def __init__(self, context: Context, world: World) -> None:
        self._context = context
        self._world = world
        self._loaded_at: int | None = None
        self._mark = 0
        self._seen_at: int | None = None
        self.runner: Runner | None = None
        self.held: set[UUID] = set()
        self.cancelling: set[UUID] = set()
        """The leases among ``held`` that are to be stopped."""
        self.told: set[UUID] = set()
        """The leases among ``cancelling`` that a poll was answered with."""

    def __repr__(self) -> str:
        return f"<Standing {self.runner and self.runner.admin_state}, {len(self.held)} held>"

    async def refresh(self) -> Runner | None:
        """The runner, as fresh as this node keeps records; None when there is none."""
        world, key = self._world, uuid_key(self._context)
        old = self._loaded_at is None or world.now_ms() - self._loaded_at >= world.fresh_ms
        if old or world.changed_records.since(self._mark, key):
            await self.load()
        return self.runner

    async def load(self) -> None:
        """Read the row and its live leases."""
        key, now, self._mark = uuid_key(self._context), self._world.now_ms(), self._world.changed_records.mark
        self.runner = await self._world.storage.runners.load(key)
        leases = await self._world.storage.leases.live_of_runner(key)
        self.held = {lease.id for lease in leases}
        self.cancelling = {lease.id for lease in leases if lease.status is LeaseStatus.CANCELLING}
        self.told &= self.cancelling
        self._loaded_at = now

    async def save(self, runner: Runner, by: str) -> bool:
        """False when another node was first; it is then read again. Changes of standing are remembered."""
        try:
            await self._world.storage.runners.save(runner, self._change(runner, by))
        except Conflict:
            await self.load()
            return False
        self.runner = runner
        self._world.storage.signals.send(Signal(Topic.RUNNER, runner.id))
        return True

    def _change(self, runner: Runner, by: str) -> RunnerChange | None:
        before = self.runner
        if before is None or before.admin_state is runner.admin_state:
            return None
        at, change_id = self._world.now_ms(), self._world.new_id()
        return RunnerChange(change_id, runner.id, at, before.admin_state, runner.admin_state, by)

    async def seen(self, runner: Runner) -> None:
        """Note that it called."""
        now = self._world.now_ms()
        recently = self._seen_at is not None and now - self._seen_at < SEEN_EVERY_MS
        if not recently and runner.admin_state is not AdminState.REVOKED:
            await self._world.storage.runners.touch([(runner.id, now)])
            self._seen_at = now

    async def lost(self, claimed: Sequence[UUID]) -> Sequence[UUID]:
        """The leases that the runner works on but does not hold: ended, or purged.

        What is known may be a moment old, so the database has the last word.
        """
        if self.held.issuperset(claimed):
            return ()
        await self.load()
        return [lease_id for lease_id in claimed if lease_id not in self.held]

    def over(self, lease_id: UUID) -> None:
        """It holds one lease less."""
        self.held.discard(lease_id)
        self.cancelling.discard(lease_id)
        self.told.discard(lease_id)

    def untold(self) -> tuple[UUID, ...]:
        """What to stop and was not told by a poll yet; it counts as told from here on."""
        news = tuple(self.cancelling - self.told)
        self.told.update(news)
        return news
