"""The sweeper: times out gates that no timer watches, and deletes what is past keeping."""

from typing import assert_never

import msgspec
from sexton_engine import Actor, Context, MailboxSpec, Message
from sexton_storage.stores import StorageUnavailable

from sexton_actors.gate.messages import Expire
from sexton_actors.terms import FRAMES_KEEP_COUNT, FRAMES_KEEP_MS, PRUNE_INTERVAL_S, SWEEP_INTERVAL_S
from sexton_actors.world import World

SWEEP_PAGE = 500
PRUNE_PAGE = 10_000


class Sweep(msgspec.Struct, Message[None], frozen=True):
    """Ask the database which gates are overdue."""


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

    async def on_start(self) -> None:
        """Begin both rounds."""
        self.context.set_timer("sweep", 0, Sweep())
        self.context.set_timer("prune", PRUNE_INTERVAL_S, Prune())

    async def on_receive(self, message: Sweep | Prune) -> None:
        """Dispatch; the next round is set before the work, so that an outage does not end the rounds."""
        match message:
            case Sweep():
                self.context.set_timer("sweep", SWEEP_INTERVAL_S, message)
                for gate_id in await self._world.storage.gates.overdue(limit=SWEEP_PAGE):
                    self.context.tell("gate", gate_id, Expire())
            case Prune():
                self.context.set_timer("prune", PRUNE_INTERVAL_S, message)
                now = self._world.now_ms()
                await self._world.storage.instance.sweep(now)
                await self._world.storage.frames.prune(
                    keep_ms=FRAMES_KEEP_MS, keep_frames=FRAMES_KEEP_COUNT, limit=PRUNE_PAGE
                )
            case _:
                assert_never(message)
