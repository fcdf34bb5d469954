"""Holds one gate: takes the first answer, and tells all who wait for it."""

from collections.abc import Callable
from typing import Any, assert_never

from sexton_actors.addresses import uuid_key
from sexton_actors.gate import transitions
from sexton_actors.protocol import gate as m
from sexton_actors.protocol.chat import Look
from sexton_actors.protocol.lease import GateClosed
from sexton_actors.protocol.queue import EventQueued
from sexton_actors.refusal import Refusal
from sexton_actors.terms import DEADLINE_SLACK_S, MAX_RACES
from sexton_actors.world import World
from sexton_engine import DEFERRED, Actor, Context, MailboxSpec, ReplyPort
from sexton_storage.errors import StorageUnavailable
from sexton_storage.records.gates import Gate, GateStatus
from sexton_storage.refusals import Lost
from sexton_storage.signals import Signal, Topic
from sexton_storage.writes import GateResolved, ResolveGate

WAITERS_MAX = 1024
"""Those who wait for one gate; one more is answered at once with the gate as it is."""

Message = m.Resolve | m.Await | m.Opened | m.Expire | m.Refresh | m.Close | m.AwaitOver


class GateActor(Actor):
    """One gate, and once it is open the only writer of its row on this node.

    The sweeper makes up for time-outs that get lost.
    """

    kind = "gate"
    mailbox = MailboxSpec(capacity=256)
    transparent = (StorageUnavailable,)

    def __init__(self, context: Context, world: World) -> None:
        super().__init__(context)
        self._world = world
        self._gate: Gate | None = None
        self._waiting: dict[int, ReplyPort] = {}
        self._tickets = 0

    def passivatable(self) -> bool:
        """A pending gate stays: its time-out is a timer of this actor."""
        return self._gate is None or self._gate.status is not GateStatus.PENDING

    async def on_receive(self, message: Message) -> Any:
        """Dispatch; the first message loads the row, unless it brings it."""
        if isinstance(message, m.Opened):
            # One that was answered meanwhile stays so.
            if self._gate is None or self._gate.status is GateStatus.PENDING:
                self._adopt(message.gate)
                self._show(message.gate)
            return None
        if isinstance(message, m.Refresh):
            await self._refresh()
            return None
        gate = self._gate or await self._load()
        if gate is None:
            return Refusal("UZ-APPROVAL-002", f"There is no gate {self.context.key}.")
        match message:
            case m.Resolve():
                return await self._resolve(gate, message)
            case m.Await():
                return self._await(gate, message)
            case m.AwaitOver():
                self._answer(message.ticket, gate)
            case m.Expire():
                await self._close(gate, transitions.expire)
            case m.Close():
                await self._close(gate, transitions.close)
            case _:
                assert_never(message)
        return None

    async def _load(self) -> Gate | None:
        gate = await self._world.storage.gates.load(uuid_key(self.context))
        if gate is not None:
            self._adopt(gate)
        elif self._gate is not None:
            self._forget(self._gate)
        return gate

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

    def _forget(self, gate: Gate) -> None:
        # Purged with its agent: those who wait are answered with what was known last.
        self._gate = None
        self.context.cancel_timer("timeout")
        self.context.cancel_timer("look")
        for ticket in tuple(self._waiting):
            self._answer(ticket, gate)

    # --- the answer -----------------------------------------------------------------------------------------

    async def _resolve(self, gate: Gate, message: m.Resolve) -> m.Resolved | Refusal:
        for _ in range(MAX_RACES):
            write = transitions.resolve(gate, message, self._world.now_ms())
            if isinstance(write, Refusal):
                return write
            saved = await self._save(write)
            if saved is not None:
                # What was due already is a time-out, whoever happens to write it.
                in_time = saved.status is not GateStatus.TIMED_OUT
                return m.Resolved(saved) if in_time else transitions.already_resolved(saved)
            found = await self._load()
            if found is None:
                break
            gate = found
        return Refusal("UZ-APPROVAL-002", f"There is no gate {self.context.key} any more.")

    async def _close(self, gate: Gate, decide: Callable[[Gate, int], ResolveGate | None]) -> None:
        write = decide(gate, self._world.now_ms())
        if write is None:
            self._adopt(gate)
        elif await self._save(write) is None:
            await self._load()

    async def _save(self, write: ResolveGate) -> Gate | None:
        saved = await self._world.storage.journal.write(write)
        if isinstance(saved, Lost):
            return None
        self._adopt(saved.gate)
        self._tell(saved)
        return saved.gate

    def _tell(self, saved: GateResolved) -> None:
        gate = saved.gate
        if saved.event_freed:
            self.context.tell("queue", gate.zombie_id, EventQueued())
        if gate.lease_id is not None:
            self.context.tell(
                "lease", gate.lease_id, GateClosed(gate.id, gate.updated_at or self._world.now_ms())
            )
        self._world.storage.signals.send(Signal(Topic.GATE, gate.id))
        self._show(gate)

    def _show(self, gate: Gate) -> None:
        """In the workspace's chat, too. News that gets lost is found by the chat's rounds."""
        if self._world.chat is not None:
            self.context.tell("chat", gate.workspace_id, Look())

    # --- those who wait -------------------------------------------------------------------------------------

    def _await(self, gate: Gate, message: m.Await) -> Any:
        if gate.status is not GateStatus.PENDING or message.wait_ms <= 0 or len(self._waiting) >= WAITERS_MAX:
            return gate
        self._tickets += 1
        self._waiting[self._tickets] = self.context.defer()
        self.context.set_timer(self._tickets, message.wait_ms / 1000, m.AwaitOver(self._tickets))
        if len(self._waiting) == 1:
            self.context.set_timer("look", self._world.look_every_s, m.Refresh())
        return DEFERRED

    def _answer(self, ticket: int, gate: Gate) -> None:
        port = self._waiting.pop(ticket, None)
        self.context.cancel_timer(ticket)
        if port is not None:
            port.set(gate)

    async def _refresh(self) -> None:
        if self._waiting:
            # Set first: an outage must not end the rounds.
            self.context.set_timer("look", self._world.look_every_s, m.Refresh())
        await self._load()
