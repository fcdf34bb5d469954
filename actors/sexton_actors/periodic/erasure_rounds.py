"""Works on erasures, a page at a time, beside the work of others."""

from collections.abc import Sequence
from typing import Final

import msgspec
import structlog
import trio

from sexton_actors.pace import rest_s
from sexton_actors.rounds import Round, RoundsActor
from sexton_engine import Message
from sexton_storage.decisions.tombstones import written

ERASURES_INTERVAL_S: Final = 1.0
LIST_INTERVAL_S: Final = 10.0
AT_ONCE: Final = 4

log = structlog.get_logger()


class LookForErasures(msgspec.Struct, Message[None], frozen=True):
    """Do a page of each erasure that is due."""


class ListErasures(msgspec.Struct, Message[None], frozen=True):
    """Write the list of what was erased, if it has changed."""


class ErasureRounds(RoundsActor):
    """Several nodes may come to one erasure; the lock of its row lets one of them work on it.

    A page and how far the erasure is are one commit, so whoever comes after a node that died goes on there.
    """

    kind = "erasure_rounds"
    _listed: bytes | None = None

    def rounds(self) -> Sequence[Round]:
        """At once: a restart may have cut some off."""
        return (
            Round(LookForErasures(), ERASURES_INTERVAL_S, self._look),
            Round(ListErasures(), LIST_INTERVAL_S, self._list),
        )

    async def _look(self) -> float | None:
        storage = self._world.storage
        began, queued = trio.current_time(), storage.journal.statistics().hot.depth
        due = await storage.erasures.due(now=self._world.now_ms(), limit=AT_ONCE)
        for erasure_id in due:
            await storage.erasures.step(erasure_id)
        return rest_s(trio.current_time() - began, len(due), queued, 0) if due else None

    async def _list(self) -> None:
        """Keep the list outside the database, whole or not at all."""
        path = self._world.erasures_file
        if path is None:
            return
        content = written(await self._world.storage.erasures.tombstones())
        if content == self._listed:
            return
        beside = trio.Path(path.with_name(f"{path.name}.{self._world.new_id().hex}"))
        try:
            await beside.touch(mode=0o600)
            await beside.write_bytes(content)
            await beside.rename(path)
        except OSError as fault:
            log.warning("erasures_not_listed", path=str(path), fault=str(fault))
            return
        self._listed = content
