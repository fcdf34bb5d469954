"""Keeps the database from growing for ever: compacts metering rows, drops what plans do not keep."""

from collections.abc import Sequence
from typing import Final

import msgspec
import structlog

from sexton_actors.retention_terms import plan_bounds
from sexton_actors.rounds import Round, RoundsActor
from sexton_engine import Message
from sexton_storage.errors import SumsDiffer
from sexton_storage.records.retention import KeptClass

READY_EVERY_S: Final = 3600.0
DAYS_AHEAD: Final = 4
"""Partitions that are kept ready, today's among them: for so long a server may be away."""
COMPACT_EVERY_S: Final = 600.0
FIRST_COMPACT_S: Final = 60.0
COMPACT_PAGE: Final = 5_000
"""Events of a page, where they are not dropped with their day."""
DROP_EVERY_S: Final = 600.0
DROP_PAGE: Final = 500
"""Rows of one transaction; an event may have leases, gates and thousands of entries of transcripts."""
REST_S: Final = 1.0

log = structlog.get_logger()


class MakeReady(msgspec.Struct, Message[None], frozen=True):
    """Make the partitions of the next days."""


class Compact(msgspec.Struct, Message[None], frozen=True):
    """Keep one metering row for each attempt of a day that is long over."""


class DropOld(msgspec.Struct, Message[None], frozen=True):
    """Delete what is older than its plan or its workspace keeps it, a page of each class at a time."""


class RetentionRounds(RoundsActor):
    """Every node has one; of two that come at once, one does it.

    It is apart from the sweeper, since a day of metering rows may take minutes.
    """

    kind = "retention_rounds"

    def rounds(self) -> Sequence[Round]:
        """The partitions at once, before there is much to put into them."""
        ready = Round(MakeReady(), READY_EVERY_S, self._make_ready)
        drop = Round(DropOld(), DROP_EVERY_S, self._drop_old, first_s=FIRST_COMPACT_S)
        # With an archive its rounds compact, and delete what they have archived.
        if self._world.retention.slices_ms is None or self._world.archive is not None:
            return (ready, drop)
        return (ready, drop, Round(Compact(), COMPACT_EVERY_S, self._compact, first_s=FIRST_COMPACT_S))

    async def _make_ready(self) -> float | None:
        await self._world.storage.metering.make_ready(DAYS_AHEAD)
        return None

    async def _drop_old(self) -> float | None:
        full = False
        for kept in KeptClass if self._world.archive is None else (KeptClass.FILES,):
            bounds = plan_bounds(self._world.terms.plans, kept)
            dropped = await self._world.storage.retention.drop(kept, bounds, limit=DROP_PAGE)
            if dropped:
                self._world.meters.dropped[kept] += dropped
                log.info("dropped_by_age", what=kept, rows=dropped)
            full = full or dropped == DROP_PAGE
        return REST_S if full else None

    async def _compact(self) -> float | None:
        keep_ms = self._world.retention.slices_ms
        if keep_ms is None:
            return None
        counts = self._world.meters.compacted
        try:
            done = await self._world.storage.metering.compact(keep_ms=keep_ms, limit=COMPACT_PAGE)
        except SumsDiffer as fault:
            counts["refused"] += 1
            log.warning("compaction_refused", why=str(fault), kept="every metering row, as it was")
            return None
        if done is None:
            return None
        counts["slices"] += done.slices
        counts["runs"] += done.runs
        if done.slices:
            log.info("metering_compacted", what=done.what, slices=done.slices, runs=done.runs)
        return REST_S if done.more else None
