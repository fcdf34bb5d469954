"""Asks many actors at once, and finds out why one has not answered."""

from collections.abc import Hashable, Sequence
from typing import Final, TypeVar

from sexton_engine import ActorSystem, AskTimeout, EngineError, Message
from sexton_storage.errors import StorageError, StorageUnavailable
from sexton_storage.stores import Storage

R = TypeVar("R")

Fault = EngineError | StorageError


STALLED_S: Final = 1.0
"""A write that has waited longer than this waits for the database."""


async def ask_all(
    system: ActorSystem, kind: str, asks: Sequence[tuple[Hashable, Message[R]]], *, timeout: float
) -> list[R | Fault]:
    """The replies in the order of the questions; one that failed has its fault in place of a reply.

    All are under way together, so that what they write is committed together. Any other fault is raised.
    """
    replies: list[R | Fault] = []
    for reply in await system.ask_all(kind, asks, timeout=timeout):
        if isinstance(reply, Exception) and not isinstance(reply, EngineError | StorageError):
            raise reply
        replies.append(reply)
    return replies


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
