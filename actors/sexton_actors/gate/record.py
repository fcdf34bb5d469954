"""One gate as its actor holds it, with the timer on its time-out and those who wait for it."""

from sexton_actors.gate.waiters import Waiters
from sexton_actors.held.record import Held
from sexton_actors.protocol.chat import Look
from sexton_actors.protocol.gate import Expire
from sexton_actors.protocol.lease import GateClosed
from sexton_actors.protocol.queue import EventQueued
from sexton_actors.refusal import Refusal
from sexton_actors.terms import DEADLINE_SLACK_S
from sexton_actors.world import World
from sexton_engine import Context
from sexton_storage.records.events import EventStatus
from sexton_storage.records.gates import Gate, GateStatus
from sexton_storage.refusals import Lost
from sexton_storage.signals import Signal, Topic
from sexton_storage.writes import GateResolved, ResolveGate


class HeldGate(Held[Gate]):
    """A gate is resolved only while it is pending; then whoever waits is told, wherever it was decided."""

    __slots__ = ("waiters",)

    subject = "The gate"

    def __init__(self, context: Context, world: World) -> None:
        super().__init__(context, world)
        self.waiters = Waiters(context, world.look_every_s)

    def unknown(self) -> Refusal:
        return Refusal("UZ-APPROVAL-002", f"There is no gate {self.id}.")

    def is_pending(self) -> bool:
        """Whether somebody has still to answer, as far as is known here."""
        return self.record is not None and self.record.status is GateStatus.PENDING

    async def _read(self) -> Gate | None:
        return await self.world.storage.gates.load(self.id)

    def _version(self, record: Gate) -> GateStatus:
        # It is written once, when it is resolved.
        return record.status

    def adopt(self, record: Gate) -> Gate:
        """Watch the time-out of a pending gate; answer those who wait for a resolved one."""
        super().adopt(record)
        if record.status is GateStatus.PENDING:
            left_s = max(0, record.timeout_at - self.world.now_ms()) / 1000
            self.context.set_timer("timeout", left_s + DEADLINE_SLACK_S, Expire())
        else:
            self._over(record)
        return record

    def forget(self) -> None:
        """Purged with its agent: those who wait are answered with what was known last."""
        known = self.record
        super().forget()
        if known is not None:
            self._over(known)

    def _over(self, gate: Gate) -> None:
        self.context.cancel_timer("timeout")
        self.waiters.answer_all(gate)

    async def save(self, write: ResolveGate) -> Gate | Lost:
        """The gate as it is then; ``Lost`` when somebody else was first."""
        saved = await self.world.storage.journal.write(write)
        if isinstance(saved, Lost):
            return saved
        self.adopt(saved.gate)
        self._tell(saved)
        if write.event_status is EventStatus.GATE_BLOCKED:
            self.world.traced(saved.gate.event_id, None, over=True)
        return saved.gate

    def _tell(self, saved: GateResolved) -> None:
        gate = saved.gate
        if saved.event_freed:
            self.context.tell("queue", gate.zombie_id, EventQueued())
        if gate.lease_id is not None:
            closed_at = gate.updated_at or self.world.now_ms()
            self.context.tell("lease", gate.lease_id, GateClosed(gate.id, closed_at))
        self.world.storage.signals.send(Signal(Topic.GATE, gate.id))
        self.show(gate)

    def show(self, gate: Gate) -> None:
        """In the workspace's chat, too. News that gets lost is found by the chat's rounds."""
        if self.world.chat is not None:
            self.context.tell("chat", gate.workspace_id, Look())
