"""The sweeper: times out gates that no timer watches, ends periods of grace, deletes what is past keeping."""

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from sexton_actors.protocol.gate import Close, Expire
from sexton_actors.protocol.ledger import EndGrace
from sexton_actors.rounds import Round, RoundsActor
from sexton_actors.terms import (
    FRAMES_KEEP_COUNT,
    FRAMES_KEEP_MS,
    MORE_INTERVAL_S,
    PRUNE_INTERVAL_S,
    SWEEP_INTERVAL_S,
    TRANSCRIPTS_INTERVAL_S,
)
from sexton_engine import Message
from sexton_storage.records.retention import DAYS_MAX

SWEEP_PAGE = 5_000
PRUNE_PAGE = 10_000
PRUNE_CHUNKS = 256
"""Chunks of contents that nothing owns, in one round; 64 MiB."""
TRANSCRIPTS_PAGE = 100
"""Each may have thousands of entries."""


class Sweep(msgspec.Struct, Message[None], frozen=True):
    """Ask the database which gates and which periods of grace are overdue."""


class Prune(msgspec.Struct, Message[None], frozen=True):
    """Delete old frames and files, contents that nothing owns, dedup keys and tokens, a page at a time."""


class PruneTranscripts(msgspec.Struct, Message[None], frozen=True):
    """Delete transcripts and snapshots that are past keeping or over a bound, a page at a time."""


class Sweeper(RoundsActor):
    """Harmless when run twice: gates are closed by their own actors, and deleting again deletes nothing."""

    kind = "sweeper"

    def rounds(self) -> Sequence[Round]:
        """Gates are looked at at once; what is past keeping can wait."""
        return (
            Round(Sweep(), SWEEP_INTERVAL_S, self._sweep),
            Round(Prune(), PRUNE_INTERVAL_S, self._prune, first_s=PRUNE_INTERVAL_S),
            Round(
                PruneTranscripts(),
                TRANSCRIPTS_INTERVAL_S,
                self._prune_transcripts,
                first_s=TRANSCRIPTS_INTERVAL_S,
            ),
        )

    async def _sweep(self) -> float | None:
        overdue = await self._world.storage.gates.overdue(limit=SWEEP_PAGE)
        for gate_id in overdue:
            self.context.tell("gate", gate_id, Expire())
        # Whoever ended the event may have crashed before it could say so.
        for gate_id in await self._world.storage.gates.orphaned(limit=SWEEP_PAGE):
            self.context.tell("gate", gate_id, Close())
        # Of a plan, the end of its grace counts from the moment on, after a restart too.
        for tenant_id in await self._world.storage.plans.overdue(limit=SWEEP_PAGE):
            self.context.tell("ledger", tenant_id, EndGrace())
        return MORE_INTERVAL_S if len(overdue) == SWEEP_PAGE else None

    async def _prune(self) -> float | None:
        storage = self._world.storage
        # With an archive what is old leaves by way of it alone: the archive's rounds delete it.
        await storage.instance.sweep(self._world.now_ms(), deliveries=self._world.archive is None)
        pruned = await storage.frames.prune(
            keep_ms=FRAMES_KEEP_MS, keep_frames=FRAMES_KEEP_COUNT, limit=PRUNE_PAGE
        )
        keep_ms = self._world.files.keep_ms
        files = await storage.artefacts.prune(keep_ms=keep_ms, limit=PRUNE_PAGE)
        brought = await storage.event_files.prune(keep_ms=keep_ms, limit=PRUNE_PAGE)
        chunks = await storage.blobs.sweep(limit=PRUNE_CHUNKS)
        more = max(pruned, files, brought) >= PRUNE_PAGE or chunks >= PRUNE_CHUNKS
        return MORE_INTERVAL_S if more else None

    async def _prune_transcripts(self) -> float | None:
        transcripts, bounds = self._world.storage.transcripts, self._world.transcripts
        if self._world.archive is not None:
            bounds = replace(bounds, days=DAYS_MAX)
        pruned = await transcripts.prune(bounds, limit=TRANSCRIPTS_PAGE)
        pruned += await self._world.storage.kept_workspaces.prune(limit=TRANSCRIPTS_PAGE)
        return MORE_INTERVAL_S if pruned >= TRANSCRIPTS_PAGE else None
