"""The sweeper: times out gates that no timer watches, ends periods of grace, deletes what is past keeping."""

from typing import assert_never

import msgspec

from sexton_actors.protocol.gate import Close, Expire
from sexton_actors.protocol.ledger import EndGrace
from sexton_actors.terms import (
    FRAMES_KEEP_COUNT,
    FRAMES_KEEP_MS,
    MORE_INTERVAL_S,
    PRUNE_INTERVAL_S,
    SWEEP_INTERVAL_S,
)
from sexton_actors.world import World
from sexton_engine import Actor, Context, MailboxSpec, Message
from sexton_storage.errors import StorageUnavailable

SWEEP_PAGE = 5_000
PRUNE_PAGE = 10_000


class Sweep(msgspec.Struct, Message[None], frozen=True):
    """Ask the database which gates and which periods of grace are overdue."""


class Prune(msgspec.Struct, Message[None], frozen=True):
    """Delete old frames, dedup keys and tokens, a page at a time."""


class Sweeper(Actor):
    """Harmless when run twice: gates are closed by their own actors, and deleting again deletes nothing."""

    kind = "sweeper"
    mailbox = MailboxSpec(capacity=16)
    transparent = (StorageUnavailable,)

    def __init__(self, context: Context, world: World) -> None:
        super().__init__(context)
        self._world = world

    def on_start(self) -> None:
        """Begin both rounds."""
        self.context.set_timer("sweep", 0, Sweep())
        self.context.set_timer("prune", PRUNE_INTERVAL_S, Prune())

    async def on_receive(self, message: Sweep | Prune) -> None:
        """Dispatch; the next round is set before the work, so that an outage does not end the rounds."""
        match message:
            case Sweep():
                self.context.set_timer("sweep", SWEEP_INTERVAL_S, message)
                await self._sweep(message)
            case Prune():
                self.context.set_timer("prune", PRUNE_INTERVAL_S, message)
                await self._prune(message)
            case _:
                assert_never(message)

    async def _sweep(self, message: Sweep) -> None:
        overdue = await self._world.storage.gates.overdue(limit=SWEEP_PAGE)
        for gate_id in overdue:
            self.context.tell("gate", gate_id, Expire())
        # Whoever ended the event may have crashed before it could say so.
        for gate_id in await self._world.storage.gates.orphaned(limit=SWEEP_PAGE):
            self.context.tell("gate", gate_id, Close())
        # Of a plan, the end of its grace counts from the moment on, after a restart too.
        for tenant_id in await self._world.storage.plans.overdue(limit=SWEEP_PAGE):
            self.context.tell("ledger", tenant_id, EndGrace())
        if len(overdue) == SWEEP_PAGE:
            self.context.set_timer("sweep", MORE_INTERVAL_S, message)

    async def _prune(self, message: Prune) -> None:
        storage = self._world.storage
        await storage.instance.sweep(self._world.now_ms())
        pruned = await storage.frames.prune(
            keep_ms=FRAMES_KEEP_MS, keep_frames=FRAMES_KEEP_COUNT, limit=PRUNE_PAGE
        )
        if pruned >= PRUNE_PAGE:
            self.context.set_timer("prune", MORE_INTERVAL_S, message)
