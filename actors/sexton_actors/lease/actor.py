"""Holds one lease: saves what the transitions decide, then says so."""

from collections.abc import Callable
from typing import Any, assert_never
from uuid import UUID

import msgspec
from sexton_engine import Actor, Context, MailboxSpec
from sexton_storage.records import Gate, GateStatus, Lease, LeaseStatus
from sexton_storage.stores import StorageUnavailable
from sexton_storage.writes import (
    EndLease,
    Ended,
    GateOpened,
    Lost,


)

from sexton_actors.gate.messages import Close, Opened
from sexton_actors.gate.opening import gate_for
from sexton_actors.lease import messages as m
from sexton_actors.lease import transitions
from sexton_actors.lease.metering import Wait
from sexton_actors.lease.transitions import LIVE, LeaseState
from sexton_actors.ledger.messages import BalanceGone
from sexton_actors.manifest.model import from_json
from sexton_actors.queue.messages import LeaseEnded
from sexton_actors.refusal import Refusal
from sexton_actors.runner.messages import LeaseCancelling, LeaseOver
from sexton_actors.world import World
from sexton_actors.zombie.messages import Pause

MAX_RACES = 4
"""Times a decision is made again after another node was first; more means something is wrong."""
DEADLINE_SLACK_S = 0.02
"""Looks a moment after the deadline, so that the database's clock has passed it too."""

Message = (
    m.Renew
    | m.Report
    | m.Release
    | m.Park
    | m.Activity
    | m.AskApproval
    | m.GateClosed
    | m.Granted
    | m.CancelRun
    | m.Expire
    | m.Revoke
)


class LeaseActor(Actor):
    """One lease. The only writer of its row, and of its event while it is held."""

    kind = "lease"
    mailbox = MailboxSpec(capacity=256)
    transparent = (StorageUnavailable,)

    def __init__(self, context: Context, world: World) -> None:
        super().__init__(context)
        self._world = world
        self._state: LeaseState | None = None

    @property
    def _id(self) -> UUID:
        key = self.context.key
        assert isinstance(key, UUID)  # noqa: S101 - the family is keyed by lease id
        return key

    def passivatable(self) -> bool:
        """A live lease stays: its deadline is a timer of this actor."""
        return self._state is None or self._state.lease.status not in LIVE

    async def on_receive(self, message: Message) -> Any:
        """Dispatch; the first message loads the row, unless it brings it."""
        if isinstance(message, m.Granted):
            self._adopt(LeaseState(message.lease))
            return None
        if self._state is None and not await self._load():
            return self._unknown(message)
        match message:
            case m.Renew():
                return await self._renew(message)
            case m.Report():
                return await self._report(message)
            case m.Release():
                return await self._end(lambda s, now: transitions.release(s, message, now), m.Released())
            case m.Park():
                return await self._park(message)
            case m.Activity():
                return await self._activity(message)
            case m.AskApproval():
                return await self._ask_approval(message)
            case m.GateClosed():
                self._gate_closed(message)
            case m.CancelRun():
                await self._cancel()
            case m.Expire():
                await self._reclaim(revoked=False)
            case m.Revoke():
                await self._reclaim(revoked=True)
            case _:
                assert_never(message)
        return None

    # --- the row ------------------------------------------------------------------------------------------------

    async def _load(self) -> bool:
        lease = await self._world.storage.leases.load(self._id)
        if lease is None:
            self._state = None
            return False
        gates = await self._world.storage.gates.of_lease(lease.id)
        self._adopt(LeaseState(lease, tuple(_wait_of(gate) for gate in gates)))
        return True

    def _adopt(self, state: LeaseState) -> None:
        before = self._state
        self._state = state
        lease = state.lease
        if lease.status not in LIVE:
            self.context.cancel_timer("deadline")
        elif before is None or before.lease.expires_at != lease.expires_at:
            left_s = max(0, lease.expires_at - self._world.now_ms()) / 1000
            self.context.set_timer("deadline", left_s + DEADLINE_SLACK_S, m.Expire())

    def _held(self) -> LeaseState:
        state = self._state
        assert state is not None  # noqa: S101 - on_receive has loaded it
        return state

    def _unknown(self, message: Message) -> Refusal | None:
        match message:
            case m.Renew() | m.Report() | m.Release() | m.Park() | m.Activity() | m.AskApproval():
                return Refusal("UZ-RUN-006", f"There is no lease {self._id}.")
            case _:
                return None

    # --- renew --------------------------------------------------------------------------------------------------

    async def _renew(self, message: m.Renew) -> m.Renewal | Refusal:
        for _ in range(MAX_RACES):
            state = await self._with_fresh_waits()
            decision = transitions.renew(state, message, self._world.now_ms())
            if isinstance(decision, Refusal):
                return decision
            saved = await self._world.storage.journal.write(decision)
            if not isinstance(saved, Lost):
                self._adopt(LeaseState(decision.lease, state.waits))
                if saved.balance_nanos == 0:
                    self.context.tell("ledger", decision.lease.tenant_id, BalanceGone())
                return transitions.answer_renewal(decision.lease, saved)
            await self._load()
        return Refusal("UZ-RUN-011", f"Lease {self._id} changes hands faster than it can be read.")

    async def _with_fresh_waits(self) -> LeaseState:
        # Another node may have resolved a gate of ours and had nobody here to tell; an open one is looked at again.
        state = self._held()
        if any(wait.until is None for wait in state.waits):
            gates = await self._world.storage.gates.of_lease(state.lease.id)
            state = LeaseState(state.lease, tuple(_wait_of(gate) for gate in gates))
            self._state = state
        return state

    # --- end ----------------------------------------------------------------------------------------------------

    async def _report(self, message: m.Report) -> m.Reported | Refusal:
        lease = self._held().lease
        if lease.report_digest == message.digest and lease.runner_id == message.runner_id:
            return await self._reported_before(lease)
        ended = await self._finish(lambda s, now: transitions.report(s, message, now))
        if isinstance(ended, Refusal):
            # Lost to our own first try, whose answer never reached the runner: the same report is then in the row.
            lease = self._held().lease
            if lease.report_digest == message.digest and lease.runner_id == message.runner_id:
                return await self._reported_before(lease)
            return ended
        return m.Reported(duplicate=False, status=str(ended.event.status), charged_nanos=ended.charged_nanos)

    async def _reported_before(self, lease: Lease) -> m.Reported | Refusal:
        event = await self._world.storage.events.load(lease.event_id)
        if event is None:
            return Refusal("UZ-RUN-006", f"The event of lease {lease.id} was purged.")
        return m.Reported(duplicate=True, status=str(event.status), charged_nanos=0)

    async def _park(self, message: m.Park) -> m.Parked | Refusal:
        gate = await self._world.storage.gates.load(message.gate_id)
        return await self._end(lambda s, now: transitions.park(s, message, gate, now), m.Parked())

    async def _reclaim(self, *, revoked: bool) -> None:
        event = await self._world.storage.events.load(self._held().lease.event_id)
        if event is not None:
            await self._finish(lambda s, now: transitions.reclaim(s, event, now, revoked=revoked))

    async def _end(self, decide: Callable[[LeaseState, int], EndLease | Refusal | None], reply: Any) -> Any:
        ended = await self._finish(decide)
        return ended if isinstance(ended, Refusal) else reply

    async def _finish(self, decide: Callable[[LeaseState, int], EndLease | Refusal | None]) -> Ended | Refusal:
        for _ in range(MAX_RACES):
            state = await self._with_fresh_waits()
            write = decide(state, self._world.now_ms())
            if write is None:
                self._adopt(state)
                return Refusal("UZ-RUN-011", "The lease is not to be ended.")
            if isinstance(write, Refusal):
                return write
            ended = await self._world.storage.journal.write(write)
            if not isinstance(ended, Lost):
                self._ended(state, write, ended)
                return ended
            await self._load()
        return Refusal("UZ-RUN-005", f"Lease {self._id} changes hands faster than it can be read.")

    def _ended(self, state: LeaseState, write: EndLease, ended: Ended) -> None:
        lease = msgspec.structs.replace(
            state.lease,
            status=write.status,
            version=write.version + 1,
            ended_at=write.now,
            report_digest=write.report_digest,
        )
        self._adopt(LeaseState(lease, state.waits))
        self.context.tell("runner", lease.runner_id, LeaseOver(lease.id))
        self.context.tell("queue", lease.zombie_id, LeaseEnded(ended.more))
        if ended.balance_nanos == 0:
            self.context.tell("ledger", lease.tenant_id, BalanceGone())
        if write.status is LeaseStatus.REPORTED:
            for wait in state.waits:
                if wait.until is None:
                    self.context.tell("gate", wait.gate_id, Close())

    # --- in the run ---------------------------------------------------------------------------------------------

    async def _activity(self, message: m.Activity) -> m.FramesTaken | Refusal:
        for _ in range(MAX_RACES):
            write = transitions.activity(self._held(), message, self._world.now_ms())
            if isinstance(write, Refusal):
                return write
            taken = await self._world.storage.journal.write(write)
            if not isinstance(taken, Lost):
                return m.FramesTaken(taken.count)
            await self._load()
        return Refusal("UZ-RUN-005", f"Lease {self._id} changes hands faster than it can be read.")

    async def _ask_approval(self, message: m.AskApproval) -> Gate | Refusal:
        for _ in range(MAX_RACES):
            state, now = self._held(), self._world.now_ms()
            if refusal := transitions.fenced(state.lease, message.runner_id, None, now, "UZ-RUN-005"):
                return refusal
            zombie = await self._world.storage.zombies.load(state.lease.zombie_id)
            if zombie is None:
                return Refusal("UZ-RUN-005", "The agent was deleted.")
            gate = gate_for(zombie, from_json(zombie.compiled), state.lease, message, self._world.new_id(), now)
            opened = await self._world.storage.journal.write(transitions.open_gate(state, gate, now))
            if not isinstance(opened, Lost):
                return self._gate_opened(state, opened)
            await self._load()
        return Refusal("UZ-RUN-005", f"Lease {self._id} changes hands faster than it can be read.")

    def _gate_opened(self, state: LeaseState, opened: GateOpened) -> Gate:
        gate = opened.gate
        if gate.status is GateStatus.PENDING:
            self.context.tell("gate", gate.id, Opened(gate))
        elif not opened.existed:
            self.context.tell("zombie", gate.zombie_id, Pause(reason=f"auto_kill: {gate.tool_name} {gate.action_name}"))
        if gate.lease_id == state.lease.id and all(w.gate_id != gate.id for w in state.waits):
            self._state = LeaseState(state.lease, (*state.waits, _wait_of(gate)))
        return gate

    def _gate_closed(self, message: m.GateClosed) -> None:
        state = self._held()
        waits = tuple(Wait(w.gate_id, w.since, message.at) if w.gate_id == message.gate_id else w for w in state.waits)
        self._state = LeaseState(state.lease, waits)

    async def _cancel(self) -> None:
        await self._load()
        lease = self._held().lease
        if lease.status is LeaseStatus.CANCELLING:
            self.context.tell("runner", lease.runner_id, LeaseCancelling(lease.id))


def _wait_of(gate: Gate) -> Wait:
    return Wait(gate.id, gate.requested_at, gate.updated_at)


