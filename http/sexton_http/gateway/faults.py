"""Finds out which fault is to blame, and the code that it is answered with."""

from typing import Final

import structlog

from sexton_actors.refusal import Refusal
from sexton_engine import ActorStopped, AskTimeout, EngineError, MailboxFull
from sexton_http.answers import Problem
from sexton_storage.errors import StorageError, StorageUnavailable
from sexton_storage.stores import Storage

BUSY_WAIT_S: Final = 1
STORAGE_WAIT_S: Final = 2
STALLED_S: Final = 1.0
"""A write that has waited longer than this waits for the database."""

log = structlog.get_logger()


def as_problem(fault: Exception) -> Problem:
    """The code that a fault of a wing below is answered with."""
    match fault:
        case Problem():
            return fault
        case StorageUnavailable():
            return Problem("UZ-INTERNAL-001", "the database cannot be reached now", wait_s=STORAGE_WAIT_S)
        case StorageError():
            log.error("storage_fault", fault=repr(fault))
            return Problem("UZ-INTERNAL-002", "the database refused the operation")
        case MailboxFull() | AskTimeout() | ActorStopped():
            return Problem("UZ-API-003", "the actor in charge is busy", wait_s=BUSY_WAIT_S)
        case EngineError():
            log.error("engine_fault", fault=repr(fault))
            return Problem(
                "UZ-INTERNAL-003", "an actor failed while handling this; look for the request id in the log"
            )
        case _:
            log.error("handler_crashed", exc_info=fault)
            return Problem("UZ-INTERNAL-003", "the server failed; look for the request id in its log")


def refused(refusal: Refusal) -> Problem:
    """The domain's no, as it is answered."""
    return Problem(
        refusal.code,
        refusal.detail,
        facts=refusal.facts,
        wait_s=refusal.retry_after_s,
        status=refusal.status,
    )


async def blamed(fault: Exception, storage: Storage) -> Exception:
    """The fault, or that of storage where an actor's deadline has passed because storage does not answer."""
    if isinstance(fault, AskTimeout) and await is_stalled(storage):
        return StorageUnavailable(str(fault))
    return fault


async def is_stalled(storage: Storage) -> bool:
    """Whether the database keeps its callers waiting; takes a second at most."""
    try:
        journal = storage.statistics().journal
    except StorageUnavailable:
        return True
    if max(journal.hot.oldest_s, journal.bulk.oldest_s) > STALLED_S:
        return True
    return not await storage.healthy()
