"""Looks after the memory of the process every few seconds, so that it comes back after a peak."""

from collections.abc import Sequence

import msgspec

from sexton_actors.memory_rounds import ROUND_S, look
from sexton_actors.rounds import Round, RoundsActor
from sexton_engine import Message


class LookAtMemory(msgspec.Struct, Message[None], frozen=True):
    """See how much is resident."""


class MemoryKeeper(RoundsActor):
    """Has the C library give back what was freed, which by itself it keeps for as long as it likes.

    What it knows is kept beside the actor: a restart must not make the least that was seen greater.
    """

    kind = "memory"

    def rounds(self) -> Sequence[Round]:
        """At once: the least that is seen begins with the server's start."""
        return () if self._world.memory is None else (Round(LookAtMemory(), ROUND_S, self._look),)

    async def _look(self) -> None:
        memory, meters = self._world.memory, self._world.meters
        if memory is None or (resident := memory.resident()) == 0:
            return
        meters.memory, trims = look(meters.memory, resident)
        if trims:
            memory.trim()
