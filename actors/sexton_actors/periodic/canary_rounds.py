"""Has each trial of a version judged by what its runs have come to."""

from collections.abc import Sequence
from typing import Final
from uuid import UUID

import msgspec

from sexton_actors.protocol.canary import JudgeCanary
from sexton_actors.rounds import Round, RoundsActor
from sexton_engine import Message

JUDGE_INTERVAL_S: Final = 5.0
"""A sixth of a lease's term: so much later at most a bad candidate is withdrawn, on whichever node lives."""
PAGE: Final = 500


class Judge(msgspec.Struct, Message[None], frozen=True):
    """Look for trials that go on."""


class CanaryRounds(RoundsActor):
    """Each node does; the agent's actor decides, and its record says whether it was decided before."""

    kind = "canary_rounds"

    def rounds(self) -> Sequence[Round]:
        """At once: a server that was away may have left a trial that is to end."""
        return (Round(Judge(), JUDGE_INTERVAL_S, self._judge),)

    async def _judge(self) -> None:
        after: UUID | None = None
        while True:
            trials = await self._world.storage.zombies.trials(after=after, limit=PAGE)
            for trial in trials:
                self.context.tell("zombie", trial.zombie_id, JudgeCanary(trial.trial_id))
            if len(trials) < PAGE:
                return
            after = trials[-1].zombie_id
