"""A runner as its actor holds it, with the leases that it works on and the heartbeats that wait."""

from collections.abc import Sequence
from uuid import UUID

from sexton_actors.held.record import Held
from sexton_actors.refusal import Refusal
from sexton_actors.runner.listeners import Listeners
from sexton_actors.world import World
from sexton_engine import Context
from sexton_storage.errors import Conflict
from sexton_storage.records.leases import LeaseStatus
from sexton_storage.records.runners import AdminState, Runner, RunnerChange
from sexton_storage.signals import Signal, Topic

SEEN_EVERY_MS = 5_000
"""``last_seen_at`` is written at most this often."""


class HeldRunner(Held[Runner]):
    """Another node may have changed the runner, or may hold its leases: they are read together."""

    __slots__ = ("_seen_at", "cancelling", "leases", "listeners", "told")

    subject = "The runner's record"

    def __init__(self, context: Context, world: World) -> None:
        super().__init__(context, world, fresh_ms=world.fresh_ms)
        self._seen_at: int | None = None
        self.leases: set[UUID] = set()
        self.cancelling: set[UUID] = set()
        """The leases among ``leases`` that are to be stopped."""
        self.told: set[UUID] = set()
        """The leases among ``cancelling`` that a poll was answered with."""
        self.listeners = Listeners(context, world.look_every_s)

    def unknown(self) -> Refusal:
        return Refusal("UZ-RUN-014", f"There is no runner {self.context.key}.")

    async def _read(self) -> Runner | None:
        runner = await self.world.storage.runners.load(self.id)
        leases = await self.world.storage.leases.live_of_runner(self.id)
        self.leases = {lease.id for lease in leases}
        self.cancelling = {lease.id for lease in leases if lease.status is LeaseStatus.CANCELLING}
        self.told &= self.cancelling
        return runner

    def _version(self, record: Runner) -> int:
        return record.version

    def _may_have_changed(self, mark: int) -> bool:
        return self.world.changed_records.since(mark, self.id)

    async def save(self, runner: Runner, by: str) -> bool:
        """False when another node was first; it is read again then. Changes of standing are remembered."""
        try:
            await self.world.storage.runners.save(runner, self._change(runner, by))
        except Conflict:
            self.race_lost()
            await self.load()
            return False
        self.adopt(runner)
        self.world.storage.signals.send(Signal(Topic.RUNNER, runner.id))
        return True

    def _change(self, runner: Runner, by: str) -> RunnerChange | None:
        before = self.record
        if before is None or before.admin_state is runner.admin_state:
            return None
        at, change_id = self.world.now_ms(), self.world.new_id()
        return RunnerChange(change_id, runner.id, at, before.admin_state, runner.admin_state, by)

    async def seen(self, runner: Runner) -> None:
        """Note that it called."""
        now = self.world.now_ms()
        recently = self._seen_at is not None and now - self._seen_at < SEEN_EVERY_MS
        if not recently and runner.admin_state is not AdminState.REVOKED:
            await self.world.storage.runners.touch([(runner.id, now)])
            self._seen_at = now

    async def lost(self, claimed: Sequence[UUID]) -> Sequence[UUID]:
        """The leases that the runner works on but does not hold: ended, or purged.

        What is known may be a moment old, so the database has the last word.
        """
        if self.leases.issuperset(claimed):
            return ()
        await self.load()
        return [lease_id for lease_id in claimed if lease_id not in self.leases]

    def over(self, lease_id: UUID) -> None:
        """It holds one lease less."""
        self.leases.discard(lease_id)
        self.cancelling.discard(lease_id)
        self.told.discard(lease_id)

    def untold(self) -> tuple[UUID, ...]:
        """What to stop and was not told by a poll yet; it counts as told from here on."""
        news = tuple(self.cancelling - self.told)
        self.told.update(news)
        return news
