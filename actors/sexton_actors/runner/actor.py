"""Holds one runner: its standing, what it holds, and its offer to the dispatcher."""

from typing import Any, assert_never

from sexton_actors.protocol import runner as m
from sexton_actors.protocol.dispatcher import TellCancelled
from sexton_actors.runner import admin_state, heartbeats, polls, transitions
from sexton_actors.runner.record import HeldRunner
from sexton_actors.world import World
from sexton_engine import Actor, Context, MailboxSpec
from sexton_storage.attribution import attributed
from sexton_storage.errors import StorageUnavailable
from sexton_storage.records.runners import Runner

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
    """One runner. It serialises the changes of its row on this node; the version tells of another node's.

    It stands behind the dispatcher in the tree and is restarted with it, so that no poll waits for a
    dispatcher that has forgotten it.
    """

    kind = "runner"
    mailbox = MailboxSpec(capacity=1024)
    transparent = (StorageUnavailable,)

    def __init__(self, context: Context, world: World) -> None:
        super().__init__(context)
        self._held = HeldRunner(context, world)

    async def on_receive(self, message: FromRunner | FromPlatform) -> Any:
        """Dispatch; the row is looked at again when it may be stale."""
        held = self._held
        # Set first: an outage must not end the rounds.
        if isinstance(message, m.LookWhetherDrained):
            self.context.set_timer("drain", held.world.look_every_s, message)
        if isinstance(message, m.LookForCancelled):
            held.listeners.look_again()
        runner = await held.refresh()
        if runner is None:
            return held.unknown()
        match message:
            case m.Poll() | m.Heartbeat() | m.Describe() | m.SetAdminState():
                return await self._asked(runner, message)
            case _:
                await self._told(runner, message)
        return None

    async def _asked(self, runner: Runner, message: FromRunner) -> Any:
        held = self._held
        match message:
            case m.Poll():
                await held.seen(runner)
                return polls.poll(held, await admin_state.drain(held, runner), message)
            case m.Heartbeat():
                await held.seen(runner)
                return await heartbeats.heartbeat(held, await admin_state.drain(held, runner), message)
            case m.Describe():
                return transitions.revoked(runner) or runner
            case m.SetAdminState():
                with attributed(message.audit):
                    return await admin_state.set_admin_state(held, message)
            case _:
                assert_never(message)

    async def _told(self, runner: Runner, message: FromPlatform) -> None:
        held = self._held
        match message:
            case m.HeartbeatOver(ticket=ticket):
                await heartbeats.answer(held, runner, held.listeners.take(ticket))
            case m.LookForCancelled():
                await heartbeats.look(held, runner)
            case m.LeaseTaken(lease_id=lease_id):
                await admin_state.lease_taken(held, runner, lease_id)
            case m.LeaseCancelling(lease_id=lease_id):
                held.cancelling.add(lease_id)
                self.context.tell("dispatcher", "", TellCancelled(runner.id, (lease_id,)))
                await heartbeats.answer(held, runner, held.listeners.take_all())
            case m.LeaseOver(lease_id=lease_id):
                held.over(lease_id)
                await admin_state.drain(held, runner)
            case m.LookWhetherDrained():
                await admin_state.drain(held, runner)
            case m.StandingChanged():
                admin_state.tell_standing(held, runner)
                await heartbeats.look(held, runner)
            case _:
                assert_never(message)
