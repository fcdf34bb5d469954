"""Sorts the events that failed into groups of those that failed alike."""

from collections.abc import Sequence
from typing import Final

import msgspec

from sexton_actors.failures.messages import alike, digest_of
from sexton_actors.rounds import Round, RoundsActor
from sexton_actors.terms import MORE_INTERVAL_S
from sexton_engine import Message
from sexton_storage.records.failures import Failure, Sorted

SORT_INTERVAL_S: Final = 1.0
SORT_PAGE: Final = 250


class Sort(msgspec.Struct, Message[None], frozen=True):
    """Look for failures that are in no group yet."""


class FailureRounds(RoundsActor):
    """Beside the runs: the commit that ends an event leaves a narrow row, and no more, for this.

    Several nodes may sort at once; each failure is counted by one of them.
    """

    kind = "failure_rounds"

    def rounds(self) -> Sequence[Round]:
        """At once: a restart may have left some."""
        return (Round(Sort(), SORT_INTERVAL_S, self._sort),)

    async def _sort(self) -> float | None:
        store = self._world.storage.failures
        found = await store.unsorted(limit=SORT_PAGE)
        if found:
            await store.sort([self._sorted(failure) for failure in found])
        return MORE_INTERVAL_S if len(found) == SORT_PAGE else None

    def _sorted(self, failure: Failure) -> Sorted:
        message = alike(failure.message)
        digest = digest_of(failure.failure_label, failure.error_code, message)
        return Sorted(failure, digest, message, self._world.new_id())
