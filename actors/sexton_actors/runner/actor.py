"""Holds one runner: its standing, what it holds, and its offer to the dispatcher."""

from collections.abc import Iterator
from typing import Any, assert_never
from uuid import UUID

from sexton_actors.protocol import runner as m
from sexton_actors.protocol.dispatcher import Offer, TellCancelled, Withdraw
from sexton_actors.protocol.lease import Revoke
from sexton_actors.refusal import Refusal
from sexton_actors.runner import transitions
from sexton_actors.runner.heartbeats import Listener, Listeners
from sexton_actors.runner.record import HeldRunner
from sexton_actors.world import World
from sexton_engine import DEFERRED, Actor, Context, MailboxSpec
from sexton_storage.errors import StorageUnavailable
from sexton_storage.records.runners import AdminState, Runner
from sexton_storage.refusals import Lost
from sexton_storage.scopes import scope_of

DRAINED_BY = "system:drain"

FromRunner = m.Poll | m.Heartbeat | m.Describe | m.SetAdminState
FromPlatform = (
    m.HeartbeatOver
    | m.LookForCancelled
    | m.LeaseCancelling
    | m.LeaseTaken
    | m.LeaseOver
    | m.LookWhetherDrained
    | m.StandingChanged
)


class RunnerActor(Actor):
    """One runner. The only writer of its row on this node.

    It stands behind the dispatcher in the tree and is restarted with it, so that no poll waits for a
    dispatcher that has forgotten it.
    """

    kind = "runner"
    mailbox = MailboxSpec(capacity=1024)
    transparent = (StorageUnavailable,)

    def __init__(self, context: Context, world: World) -> None:
        super().__init__(context)
        self._world = world
        self._held = HeldRunner(context, world)
        self._listeners = Listeners(context, world.look_every_s)

    async def on_receive(self, message: FromRunner | FromPlatform) -> Any:
        """Dispatch; the row is looked at again when it may be stale."""
        if isinstance(message, m.LookWhetherDrained):
            # Set first: an outage must not end the rounds.
            self.context.set_timer("drain", self._world.look_every_s, message)
        if isinstance(message, m.LookForCancelled):
            self._listeners.look_again()
        runner = await self._held.refresh()
        if runner is None:
            return self._held.unknown()
        match message:
            case m.Poll():
                await self._held.seen(runner)
                return self._poll(await self._drain(runner), message)
            case m.Heartbeat():
                await self._held.seen(runner)
                return await self._heartbeat(await self._drain(runner), message)
            case m.HeartbeatOver(ticket=ticket):
                await self._answer(runner, self._listeners.take(ticket))
            case m.LookForCancelled():
                await self._look(runner)
            case m.Describe():
                return transitions.revoked(runner) or runner
            case m.SetAdminState():
                return await self._set_admin_state(message)
            case m.LeaseTaken(lease_id=lease_id):
                await self._lease_taken(runner, lease_id)
            case m.LeaseCancelling(lease_id=lease_id):
                self._held.cancelling.add(lease_id)
                self.context.tell("dispatcher", "", TellCancelled(runner.id, (lease_id,)))
                await self._answer(runner, self._listeners.take_all())
            case m.LeaseOver(lease_id=lease_id):
                self._held.over(lease_id)
                await self._drain(runner)
            case m.LookWhetherDrained():
                await self._drain(runner)
            case m.StandingChanged():
                self._tell_standing(runner)
                await self._look(runner)
            case _:
                assert_never(message)
        return None

    # --- polls ----------------------------------------------------------------------------------------------

    def _poll(self, runner: Runner, message: m.Poll) -> Any:
        if refusal := transitions.revoked(runner):
            return refusal
        if untold := self._held.untold():
            # To stop a run comes before to start one.
            return m.Leases((), 0, untold)
        if not transitions.may_take(runner):
            return m.Leases((), transitions.POLL_AGAIN_MS)
        offer = Offer(
            runner_id=runner.id,
            labels=frozenset(runner.labels),
            unsandboxed=runner.sandbox_tier == "none",
            max_leases=min(message.max_leases, runner.slots),
            wait_s=message.wait_ms / 1000,
            reply=self.context.defer(),
            scope=scope_of(runner),
        )
        self.context.tell("dispatcher", "", offer)
        return DEFERRED

    # --- heartbeats -----------------------------------------------------------------------------------------

    async def _heartbeat(self, runner: Runner, message: m.Heartbeat) -> Any:
        beat = await self._beat(runner, message.active_lease_ids)
        quiet = isinstance(beat, m.Beat) and beat.status != "stop" and not beat.cancelled_lease_ids
        waits = message.wait_ms > 0 and message.active_lease_ids and self._listeners.has_room()
        if not quiet or not waits:
            return beat
        self._listeners.add(message)
        return DEFERRED

    async def _beat(self, runner: Runner, claimed: tuple[UUID, ...]) -> m.Beat | Refusal:
        if refusal := transitions.revoked(runner):
            return refusal
        if not self._held.cancelling.issubset(claimed):
            # It may have stopped that already, and said so at another node.
            await self._held.load()
        lost = await self._held.lost(claimed)
        return m.Beat(transitions.beat_status(runner), (*self._held.cancelling, *lost))

    async def _look(self, runner: Runner) -> None:
        """Another node may have marked a lease, or changed the runner's standing."""
        if not self._listeners:
            return
        await self._held.load()
        runner = self._held.record or runner
        held = self._held
        if (
            held.cancelling
            or not held.leases.issuperset(self._listeners.claimed())
            or transitions.revoked(runner)
            or transitions.beat_status(runner) != "ok"
        ):
            await self._answer(runner, self._listeners.take_all())

    async def _answer(self, runner: Runner, listeners: Iterator[Listener]) -> None:
        for listener in listeners:
            listener.port.set(await self._beat(runner, listener.claimed))

    # --- standing -------------------------------------------------------------------------------------------

    async def _set_admin_state(self, message: m.SetAdminState) -> Runner | Refusal:
        async def attempt(_known: Runner, _now: int) -> Runner | Refusal | Lost:
            # Read again: how many leases it holds decides, and no version tells of them.
            runner = await self._held.load()
            if runner is None:
                return self._held.unknown()
            changed = transitions.set_admin_state(runner, message.admin_state, len(self._held.leases))
            if isinstance(changed, Refusal):
                return changed
            if not await self._held.save(changed, message.by):
                return Lost()
            self._tell_standing(changed)
            await self._answer(changed, self._listeners.take_all())
            return changed

        return await self._held.until_kept(attempt)

    def _tell_standing(self, runner: Runner) -> None:
        if runner.admin_state is AdminState.ACTIVE:
            return
        self.context.tell("dispatcher", "", Withdraw(runner.id, transitions.revoked(runner)))
        if runner.admin_state is AdminState.REVOKED:
            for lease_id in self._held.leases:
                self.context.tell("lease", lease_id, Revoke())
        elif runner.admin_state is AdminState.DRAINING:
            self.context.set_timer("drain", self._world.look_every_s, m.LookWhetherDrained())

    async def _lease_taken(self, runner: Runner, lease_id: UUID) -> None:
        # It may have been on its way while the standing changed: such a one is finished, unless the runner is
        # revoked.
        self._held.leases.add(lease_id)
        if runner.admin_state is AdminState.REVOKED:
            self.context.tell("lease", lease_id, Revoke())
        await self._drain(runner)

    async def _drain(self, runner: Runner) -> Runner:
        """Move between draining and drained as its leases say; the runner as it is then."""
        changed = transitions.drain(runner, len(self._held.leases))
        if changed is not None and await self._held.save(changed, DRAINED_BY):
            runner = changed
        if runner.admin_state is AdminState.DRAINING:
            self.context.set_timer("drain", self._world.look_every_s, m.LookWhetherDrained())
        else:
            self.context.cancel_timer("drain")
        return runner
