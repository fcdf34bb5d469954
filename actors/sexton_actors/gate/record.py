"""One gate's row as its actor holds it, with the timer on its time-out and those who wait for it."""

from uuid import UUID

from sexton_actors.addresses import uuid_key
from sexton_actors.gate.waiters import Waiters
from sexton_actors.protocol.chat import Look
from sexton_actors.protocol.gate import Expire
from sexton_actors.protocol.lease import GateClosed
from sexton_actors.protocol.queue import EventQueued
from sexton_actors.refusal import Refusal
from sexton_actors.terms import DEADLINE_SLACK_S
from sexton_actors.world import World
from sexton_engine import Context
from sexton_storage.records.gates import Gate, GateStatus
from sexton_storage.refusals import Lost
from sexton_storage.signals import Signal, Topic
from sexton_storage.writes import GateResolved, ResolveGate


class GateRecord:
    """What is known of the row. It may be behind: a gate is resolved only while it is pending."""

    __slots__ = ("context", "gate", "waiters", "world")

    def __init__(self, context: Context, world: World) -> None:
        self.context = context
        self.world = world
        self.gate: Gate | None = None
        self.waiters = Waiters(context, world.look_every_s)

    def __repr__(self) -> str:
        return f"<GateRecord {self.context.key} {self.gate.status if self.gate else 'not loaded'}>"

    @property
    def id(self) -> UUID:
        return uuid_key(self.context)

    def unknown(self) -> Refusal:
        return Refusal("UZ-APPROVAL-002", f"There is no gate {self.id}.")

    def is_pending(self) -> bool:
        """Whether somebody has still to answer, as far as is known here."""
        return self.gate is not None and self.gate.status is GateStatus.PENDING

    async def load(self) -> Gate | None:
        """Read it; None when there is no such gate, or no longer."""
        gate = await self.world.storage.gates.load(self.id)
        if gate is not None:
            self.adopt(gate)
        elif self.gate is not None:
            self._forget(self.gate)
        return gate

    def adopt(self, gate: Gate) -> None:
        """Watch the time-out of a pending gate; answer those who wait for a resolved one."""
        self.gate = gate
        if gate.status is GateStatus.PENDING:
            left_s = max(0, gate.timeout_at - self.world.now_ms()) / 1000
            self.context.set_timer("timeout", left_s + DEADLINE_SLACK_S, Expire())
            return
        self.context.cancel_timer("timeout")
        self.waiters.answer_all(gate)

    def _forget(self, gate: Gate) -> None:
        # Purged with its agent: those who wait are answered with what was known last.
        self.gate = None
        self.context.cancel_timer("timeout")
        self.waiters.answer_all(gate)

    async def save(self, write: ResolveGate) -> Gate | None:
        """The gate as it is then; None when somebody else was first."""
        saved = await self.world.storage.journal.write(write)
        if isinstance(saved, Lost):
            return None
        self.adopt(saved.gate)
        self._tell(saved)
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
