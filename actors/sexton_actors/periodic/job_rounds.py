"""Finds bulk jobs that nobody works on: new ones, and those whose node has died."""

from collections.abc import Sequence
from typing import Final

from sexton_actors.protocol.jobs import LookForJobs, Work
from sexton_actors.rounds import Round, RoundsActor

JOBS_INTERVAL_S: Final = 1.0
AT_ONCE: Final = 8
"""Jobs of one look, each of another workspace."""


class JobRounds(RoundsActor):
    """Whoever is told decides by the job's row whether it may go on; two nodes may be told of the same."""

    kind = "job_rounds"

    def rounds(self) -> Sequence[Round]:
        """At once: a restart may have cut some off."""
        return (Round(LookForJobs(), JOBS_INTERVAL_S, self._look),)

    async def _look(self) -> None:
        for job_id in await self._world.storage.jobs.due(now=self._world.now_ms(), limit=AT_ONCE):
            self.context.tell("job", job_id, Work())
