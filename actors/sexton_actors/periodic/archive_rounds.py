"""Archives what is past keeping, and has it deleted once it is in the archive."""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
import structlog

from sexton_actors.retention_terms import DAY_MS, plan_bounds
from sexton_actors.rounds import Round, RoundsActor
from sexton_engine import Message
from sexton_storage.archives.batches import Dropped
from sexton_storage.errors import StorageError, SumsDiffer
from sexton_storage.objects.store import ObjectStoreFault
from sexton_storage.records.archives import ArchiveBounds, ArchiveKind, RowsDiffer
from sexton_storage.records.deliveries import DELIVERIES_KEEP_MS
from sexton_storage.records.retention import KeptClass

ARCHIVE_EVERY_S: Final = 600.0
FIRST_S: Final = 60.0
RETRY_S: Final = 60.0
"""After the archive was away."""
REST_S: Final = 1.0
PAGES: Final[Mapping[ArchiveKind, int]] = {
    ArchiveKind.EVENTS: 500,
    ArchiveKind.TRANSCRIPTS: 500,
    ArchiveKind.DELIVERIES: 500,
    ArchiveKind.METERING: 5_000,
}
"""Rows of a batch, which are deleted in one transaction; of metering events, where they have no day."""

log = structlog.get_logger()


class ArchiveOld(msgspec.Struct, Message[None], frozen=True):
    """Take a batch of each kind to the archive, and drop it."""


class ArchiveRounds(RoundsActor):
    """Every node has one; a batch is held by one of them at a time.

    Without an archive it does nothing, and what is past keeping is deleted by others.
    """

    kind = "archive_rounds"

    def rounds(self) -> Sequence[Round]:
        """As often as others delete what is old."""
        if self._world.archive is None:
            return ()
        return (Round(ArchiveOld(), ARCHIVE_EVERY_S, self._archive, first_s=FIRST_S),)

    async def _archive(self) -> float | None:
        archive, done = self._world.archive, 0
        if archive is None:
            return None
        counts, bounds = self._world.meters.archive.counts, self._bounds()
        for kind in ArchiveKind:
            try:
                dropped = await archive.work(kind, bounds, batch_id=self._world.new_id(), limits=PAGES)
            except RowsDiffer as fault:
                counts["changed"] += 1
                log.info("archive_batch_changed", why=str(fault), kept="every row; it is archived again")
                continue
            except SumsDiffer as fault:
                self._world.meters.compacted["refused"] += 1
                log.warning("compaction_refused", why=str(fault), kept="every metering row, as it was")
                continue
            except ObjectStoreFault as fault:
                counts["failed"] += 1
                self._failed(fault)
                return RETRY_S
            self._well()
            if dropped is not None:
                self._count(dropped)
                done += 1
        return REST_S if done else None

    def _bounds(self) -> Mapping[ArchiveKind, ArchiveBounds]:
        plans, transcript_days = self._world.terms.plans, self._world.transcripts.days
        return {
            ArchiveKind.EVENTS: ArchiveBounds(plan_bounds(plans, KeptClass.EVENTS), None),
            ArchiveKind.TRANSCRIPTS: ArchiveBounds(
                plan_bounds(plans, KeptClass.TRANSCRIPTS), transcript_days * DAY_MS
            ),
            ArchiveKind.DELIVERIES: ArchiveBounds(
                plan_bounds(plans, KeptClass.DELIVERIES), DELIVERIES_KEEP_MS
            ),
            ArchiveKind.METERING: ArchiveBounds({}, self._world.retention.slices_ms),
        }

    def _count(self, dropped: Dropped) -> None:
        meters, batch, rows = self._world.meters, dropped.batch, dropped.rows
        if batch.kind is ArchiveKind.METERING:
            meters.compacted["slices"] += rows.rows
            meters.compacted["runs"] += rows.left
        else:
            meters.dropped[KeptClass(batch.kind.value)] += rows.rows
        if dropped.sha256 is not None:
            meters.archive.counts["batches"] += 1
            meters.archive.counts["rows"] += rows.rows
            log.info(
                "archived", what=batch.kind, rows=rows.rows, number=batch.number, manifest=dropped.sha256
            )

    def _failed(self, fault: StorageError) -> None:
        meter = self._world.meters.archive
        if meter.waits_since is None:
            meter.waits_since = self._world.now_ms()
            log.warning("archive_failed", why=str(fault), kept="in the database, and tried again")

    def _well(self) -> None:
        meter = self._world.meters.archive
        if meter.waits_since is not None:
            meter.waits_since = None
            log.warning("archive_works_again")
