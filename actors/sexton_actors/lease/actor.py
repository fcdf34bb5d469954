"""Holds one lease: saves what the transitions decide, then says so."""

from typing import Any, assert_never

from sexton_actors.lease import (
    activity,
    approvals,
    cancellation,
    follow_ups,
    integrations,
    reclaim,
    releases,
    renewals,
    reports,
)
from sexton_actors.lease.record import HeldLease
from sexton_actors.lease.transitions.state import LeaseState
from sexton_actors.protocol import lease as m
from sexton_actors.refusal import Refusal
from sexton_actors.world import World
from sexton_engine import Actor, Context, MailboxSpec
from sexton_storage.errors import StorageUnavailable

RareFromRunner = m.Report | m.Release | m.Park | m.AskApproval | m.AskIntegration | m.Lend | m.AskFollowUp
FromRunner = m.Renew | m.Activity | RareFromRunner
RareFromPlatform = m.GateClosed | m.CancelRun | m.Undelivered | m.Abort | m.Expire | m.Revoke
FromPlatform = m.Granted | RareFromPlatform


class LeaseActor(Actor):
    """One lease. It serialises what becomes of the lease on this node, and of its event while it is held.

    A cancellation or a kill may mark the row meanwhile: the version tells, and the decision is made again.
    Whatever is told and gets lost is made up for by the reclaimer, which reads the deadlines from the
    database.
    """

    kind = "lease"
    mailbox = MailboxSpec(capacity=256)
    transparent = (StorageUnavailable,)

    def __init__(self, context: Context, world: World) -> None:
        super().__init__(context)
        self._held = HeldLease(context, world)

    def on_burst_start(self) -> None:
        """The renewals of one request are one unit for the journal."""
        world = self._held.world
        world.renewal_units.begin(world.now_ms())

    def on_burst_end(self) -> None:
        renewals.send_unit(self._held.world)

    def passivatable(self) -> bool:
        """A live lease stays: its deadline is a timer of this actor."""
        return not self._held.is_live()

    def on_receive(self, message: FromRunner | FromPlatform) -> Any:
        """A plain function: renewals, activity and most reports begin in their askers' own tasks."""
        match message:
            case m.Renew():
                return renewals.renew(self._held, message)
            case m.Activity():
                return activity.activity(self._held, message)
            case m.Report() if (state := reports.is_plain(self._held, message)) is not None:
                return reports.end(self._held, message, state)
            case m.Granted():
                return self._granted(message)
            case _:
                return self._receive(message)

    def _granted(self, message: m.Granted) -> None:
        # One that was marked for cancelling meanwhile is known already, and better.
        if self._held.record is None:
            self._held.adopt(LeaseState(message.lease))

    async def _receive(self, message: RareFromRunner | RareFromPlatform) -> Any:
        """Dispatch; the first message loads the lease."""
        if self._held.record is None and await self._held.load() is None:
            return self._held.unknown()
        match message:
            case m.GateClosed() | m.CancelRun() | m.Undelivered() | m.Abort() | m.Expire() | m.Revoke():
                return await self._told(message)
            case _:
                return await self._asked(message)

    async def _asked(self, message: RareFromRunner) -> Any:
        reply: Any | Refusal
        match message:
            case m.Report():
                reply = await reports.report(self._held, message)
            case m.Release():
                reply = await releases.release(self._held, message)
            case m.Park():
                reply = await releases.park(self._held, message)
            case m.AskApproval():
                reply = await approvals.ask_approval(self._held, message)
            case m.AskIntegration():
                reply = await integrations.ask(self._held, message)
            case m.Lend():
                reply = await integrations.lend(self._held, message)
            case m.AskFollowUp():
                reply = await follow_ups.ask(self._held, message)
            case _:
                assert_never(message)
        self._held.world.meters.refused(type(message).__name__.lower(), reply)
        return reply

    async def _told(self, message: RareFromPlatform) -> None:
        match message:
            case m.GateClosed():
                approvals.gate_closed(self._held, message)
            case m.CancelRun():
                await cancellation.cancel(self._held)
            case m.Undelivered():
                await releases.undelivered(self._held)
            case m.Abort():
                await reclaim.abort(self._held, message)
            case m.Expire():
                self._held.rang()
                await reclaim.reclaim(self._held, "expired")
            case m.Revoke(cause=cause):
                await reclaim.reclaim(self._held, cause)
            case _:
                assert_never(message)
