"""Holds one gate: takes the first answer, and tells all who wait for it."""

from typing import Any, assert_never

from sexton_actors.gate import resolution, transitions
from sexton_actors.gate.record import HeldGate
from sexton_actors.protocol import gate as m
from sexton_actors.world import World
from sexton_engine import Actor, Context, MailboxSpec
from sexton_storage.errors import StorageUnavailable
from sexton_storage.records.gates import Gate, GateStatus

Message = m.Resolve | m.Await | m.Opened | m.Expire | m.Refresh | m.Close | m.AwaitOver


class GateActor(Actor):
    """One gate. It serialises the answers to it on this node.

    A cancellation of its event, or a kill, may close the row meanwhile: the first outcome stands. The
    sweeper makes up for time-outs that get lost.
    """

    kind = "gate"
    mailbox = MailboxSpec(capacity=256)
    transparent = (StorageUnavailable,)

    def __init__(self, context: Context, world: World) -> None:
        super().__init__(context)
        self._held = HeldGate(context, world)

    def passivatable(self) -> bool:
        """A pending gate stays: its time-out is a timer of this actor."""
        return not self._held.is_pending()

    async def on_receive(self, message: Message) -> Any:
        """Dispatch; the first message loads the row, unless it brings it."""
        held = self._held
        match message:
            case m.Opened():
                return self._opened(message.gate)
            case m.Refresh():
                # Set first: an outage must not end the rounds.
                held.waiters.look_again()
                await held.load()
                return None
            case _:
                gate = held.record or await held.load()
                return held.unknown() if gate is None else await self._receive(gate, message)

    async def _receive(
        self, gate: Gate, message: m.Resolve | m.Await | m.AwaitOver | m.Expire | m.Close
    ) -> Any:
        held = self._held
        match message:
            case m.Resolve():
                return await resolution.resolve(held, message)
            case m.Await():
                waits = gate.status is GateStatus.PENDING and message.wait_ms > 0
                return held.waiters.add(message) if waits and held.waiters.has_room() else gate
            case m.AwaitOver():
                return held.waiters.answer(message.ticket, gate)
            case m.Expire():
                return await resolution.close(held, transitions.expire)
            case m.Close():
                return await resolution.close(held, transitions.close)
            case _:
                assert_never(message)

    def _opened(self, gate: Gate) -> None:
        # One that was answered meanwhile stays so.
        if self._held.record is None or self._held.is_pending():
            self._held.adopt(gate)
            self._held.show(gate)
