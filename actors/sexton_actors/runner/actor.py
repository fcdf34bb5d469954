"""Holds one runner: its standing, what it holds, and its offer to the dispatcher."""

from typing import Any, assert_never
from uuid import UUID

from sexton_engine import DEFERRED, Actor, Context, MailboxSpec
from sexton_storage.records import AdminState, LeaseStatus, Runner
from sexton_storage.stores import Conflict, StorageUnavailable

from sexton_actors.dispatcher.messages import Offer, Withdraw
from sexton_actors.lease.messages import Revoke
from sexton_actors.refusal import Refusal
from sexton_actors.runner import messages as m
from sexton_actors.runner import transitions
from sexton_actors.world import World

SEEN_EVERY_MS = 5_000
"""``last_seen_at`` is written at most this often."""
RELOAD_EVERY_MS = 1_000
"""How old its standing may be, when another node may have changed it."""

Message = (
    m.Poll
    | m.Heartbeat
    | m.Describe
    | m.SetAdminState
    | m.LeaseCancelling
    | m.LeaseTaken
    | m.LeaseOver
)


class RunnerActor(Actor):
    """One runner. The only writer of its row."""

    kind = "runner"
    mailbox = MailboxSpec(capacity=1024)
    transparent = (StorageUnavailable,)

    def __init__(self, context: Context, world: World) -> None:
        super().__init__(context)
        self._world = world
        self._runner: Runner | None = None
        self._loaded_at = 0
        self._seen_at = 0
        self._held: set[UUID] = set()
        self._cancelling: set[UUID] = set()
        self._told: set[UUID] = set()

    async def on_receive(self, message: Message) -> Any:
        """Dispatch; the row is looked at again when it may be stale."""
        now = self._world.now_ms()
        if self._runner is None or now - self._loaded_at >= RELOAD_EVERY_MS:
            await self._load(now)
        runner = self._runner
        if runner is None:
            return Refusal("UZ-RUN-014", f"There is no runner {self.context.key}.")
        match message:
            case m.Poll():
                await self._seen(runner, now)
                return self._poll(runner, message)
            case m.Heartbeat():
                await self._seen(runner, now)
                return self._beat(runner)
            case m.Describe():
                return transitions.revoked(runner) or runner
            case m.SetAdminState():
                return await self._set_admin_state(runner, message)
            case m.LeaseTaken(lease_id=lease_id):
                self._held.add(lease_id)
            case m.LeaseCancelling(lease_id=lease_id):
                self._cancelling.add(lease_id)
                self._withdraw(runner)
            case m.LeaseOver(lease_id=lease_id):
                await self._lease_over(runner, lease_id)
            case _:
                assert_never(message)
        return None

    async def _load(self, now: int) -> None:
        key = self.context.key
        assert isinstance(key, UUID)  # noqa: S101 - the family is keyed by runner id
        self._runner = await self._world.storage.runners.load(key)
        leases = await self._world.storage.leases.live_of_runner(key)
        self._held = {lease.id for lease in leases}
        self._cancelling = {lease.id for lease in leases if lease.status is LeaseStatus.CANCELLING}
        self._told &= self._cancelling
        self._loaded_at = now

    async def _seen(self, runner: Runner, now: int) -> None:
        if now - self._seen_at >= SEEN_EVERY_MS and runner.admin_state is not AdminState.REVOKED:
            await self._world.storage.runners.touch([(runner.id, now)])
            self._seen_at = now

    # --- polls --------------------------------------------------------------------------------------------------

    def _poll(self, runner: Runner, message: m.Poll) -> Any:
        if refusal := transitions.revoked(runner):
            return refusal
        if not transitions.may_take(runner):
            return m.Leases((), transitions.POLL_AGAIN_MS)
        if untold := tuple(self._cancelling - self._told):
            # Its poll was ended for this: to stop a run comes before to start one.
            self._told.update(untold)
            return m.Leases((), 0, untold)
        self.context.tell(
            "dispatcher",
            "",
            Offer(
                runner_id=runner.id,
                labels=frozenset(runner.labels),
                unsandboxed=runner.sandbox_tier == "none",
                max_leases=message.max_leases,
                wait_s=message.wait_ms / 1000,
                reply=self.context.defer(),
            ),
        )
        return DEFERRED

    def _withdraw(self, runner: Runner) -> None:
        self.context.tell("dispatcher", "", Withdraw(runner.id))

    def _beat(self, runner: Runner) -> m.Beat | Refusal:
        if refusal := transitions.revoked(runner):
            return refusal
        return m.Beat(transitions.beat_status(runner), tuple(self._cancelling))

    # --- standing -----------------------------------------------------------------------------------------------

    async def _set_admin_state(self, runner: Runner, message: m.SetAdminState) -> Runner | Refusal:
        for _ in range(4):
            changed = transitions.set_admin_state(runner, message.admin_state, len(self._held))
            if isinstance(changed, Refusal) or await self._save(changed):
                break
            runner = self._runner or runner
        if isinstance(changed, Runner) and changed.admin_state is not AdminState.ACTIVE:
            self._withdraw(changed)
        if isinstance(changed, Runner) and changed.admin_state is AdminState.REVOKED:
            for lease_id in self._held:
                self.context.tell("lease", lease_id, Revoke())
        return changed

    async def _lease_over(self, runner: Runner, lease_id: UUID) -> None:
        self._held.discard(lease_id)
        self._cancelling.discard(lease_id)
        self._told.discard(lease_id)
        drained = transitions.lease_over(runner, len(self._held))
        if drained is not None:
            await self._save(drained)

    async def _save(self, runner: Runner) -> bool:
        try:
            await self._world.storage.runners.save(runner)
        except Conflict:
            await self._load(self._world.now_ms())
            return False
        self._runner = runner
        return True
