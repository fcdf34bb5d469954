"""Holds one gate: takes the first answer, and tells all who wait for it."""

from collections.abc import Callable
from typing import Any, assert_never
from uuid import UUID

from sexton_engine import DEFERRED, Actor, Context, MailboxSpec, ReplyPort
from sexton_storage.records import Gate, GateStatus
from sexton_storage.stores import StorageUnavailable
from sexton_storage.writes import GateResolved, Lost, ResolveGate

from sexton_actors.gate import messages as m
from sexton_actors.gate import transitions
from sexton_actors.lease.messages import GateClosed
from sexton_actors.queue.messages import EventQueued
from sexton_actors.refusal import Refusal
from sexton_actors.world import World

LOOK_AGAIN_S = 1.0
"""How long an answer given on another node may go unheard by those who wait here."""
DEADLINE_SLACK_S = 0.02

Message = m.Resolve | m.Await | m.Opened | m.Expire | m.Refresh | m.Close | m.AwaitOver


class GateActor(Actor):
    """One gate. The only writer of its row once it is open."""

    kind = "gate"
    mailbox = MailboxSpec(capacity=256)
    transparent = (StorageUnavailable,)

    def __init__(self, context: Context, world: World) -> None:
        super().__init__(context)
        self._world = world
        self._gate: Gate | None = None
        self._waiting: dict[int, ReplyPort[Gate | Refusal]] = {}
        self._tickets = 0

    def passivatable(self) -> bool:
        """A pending gate stays: its time-out is a timer of this actor."""
        return self._gate is None or self._gate.status is not GateStatus.PENDING

    async def on_receive(self, message: Message) -> Any:
        """Dispatch; the first message loads the row, unless it brings it."""
        if isinstance(message, m.Opened):
            self._adopt(message.gate)
            return None
        if self._gate is None:
            await self._load()
        gate = self._gate
        if gate is None:
            return Refusal("UZ-APPROVAL-002", f"There is no gate {self.context.key}.")
        match message:
            case m.Resolve():
                return await self._resolve(message)
            case m.Await():
                return self._await(gate, message)
            case m.AwaitOver():
                self._answer(message.ticket, gate)
            case m.Expire():
                await self._close(transitions.expire)
            case m.Close():
                await self._close(transitions.close)
            case m.Refresh():
                await self._load()
            case _:
                assert_never(message)
        return None

    async def _load(self) -> None:
        key = self.context.key
        assert isinstance(key, UUID)  # noqa: S101 - the family is keyed by gate id
        gate = await self._world.storage.gates.load(key)
        if gate is not None:
            self._adopt(gate)

    def _adopt(self, gate: Gate) -> None:
        self._gate = gate
        if gate.status is GateStatus.PENDING:
            left_s = max(0, gate.timeout_at - self._world.now_ms()) / 1000
            self.context.set_timer("timeout", left_s + DEADLINE_SLACK_S, m.Expire())
            return
        self.context.cancel_timer("timeout")
        self.context.cancel_timer("look")
        for ticket in tuple(self._waiting):
            self._answer(ticket, gate)

    async def _resolve(self, message: m.Resolve) -> m.Resolved | Refusal:
        for _ in range(2):
            gate = self._gate
            assert gate is not None  # noqa: S101 - on_receive has loaded it
            write = transitions.resolve(gate, message, self._world.now_ms())
            if isinstance(write, Refusal):
                return write
            if await self._save(gate, write):
                break
        gate = self._gate
        assert gate is not None  # noqa: S101 - kept above
        return m.Resolved(gate) if gate.resolved_by == message.by else transitions.already_resolved(gate)

    async def _close(self, decide: Callable[[Gate, int], ResolveGate | None]) -> None:
        gate = self._gate
        assert gate is not None  # noqa: S101 - on_receive has loaded it
        write = decide(gate, self._world.now_ms())
        if write is not None:
            await self._save(gate, write)
        elif gate.status is GateStatus.PENDING:
            self._adopt(gate)

    async def _save(self, gate: Gate, write: ResolveGate) -> bool:
        saved = await self._world.storage.journal.write(write)
        if isinstance(saved, Lost):
            await self._load()
            return False
        self._tell(gate, saved)
        self._adopt(saved.gate)
        return True

    def _tell(self, gate: Gate, saved: GateResolved) -> None:
        if saved.event_freed:
            self.context.tell("queue", gate.zombie_id, EventQueued())
        if saved.gate.lease_id is not None:
            at = saved.gate.updated_at or self._world.now_ms()
            self.context.tell("lease", saved.gate.lease_id, GateClosed(gate.id, at))

    def _await(self, gate: Gate, message: m.Await) -> Any:
        if gate.status is not GateStatus.PENDING or message.wait_ms == 0:
            return gate
        self._tickets += 1
        self._waiting[self._tickets] = self.context.defer()
        self.context.set_timer(self._tickets, message.wait_ms / 1000, m.AwaitOver(self._tickets))
        self.context.set_timer("look", LOOK_AGAIN_S, m.Refresh())
        return DEFERRED

    def _answer(self, ticket: int, gate: Gate) -> None:
        port = self._waiting.pop(ticket, None)
        self.context.cancel_timer(ticket)
        if port is not None:
            port.set(gate)
