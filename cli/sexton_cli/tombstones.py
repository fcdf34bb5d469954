"""Erases again, before a server serves, what an older database has brought back."""

from pathlib import Path

from sexton_storage.decisions.tombstones import read
from sexton_storage.records.erasures import OVER, ErasureStatus
from sexton_storage.stores import Storage

RESTORED_MAX = 100_000


async def apply_tombstones(storage: Storage, path: Path) -> int:
    """Do the erasures of the list that the database does not know; how many. Raises OSError and ValueError.

    Those that were begun at an earlier start are gone on with. What waits for events to end waits behind the
    start. Without a file there is nothing to do: a server that has it for the first time writes it.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return 0
    await storage.erasures.restore(read(content))
    done = 0
    for erasure_id in await storage.erasures.due(now=storage.clock.now_ms(), limit=RESTORED_MAX):
        erasure = await storage.erasures.load(erasure_id)
        if erasure is None or not erasure.restored or erasure.status is not ErasureStatus.RUNNING:
            continue
        done += 1
        while (erasure := await storage.erasures.step(erasure_id)) is not None:
            if erasure.status in {*OVER, ErasureStatus.WAITING}:
                break
    return done
