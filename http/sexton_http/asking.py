"""Asks many actors at once."""

from collections.abc import Hashable, Sequence
from typing import TypeVar

from sexton_engine import ActorSystem, EngineError, Message
from sexton_storage.stores import StorageError

R = TypeVar("R")

Fault = EngineError | StorageError


async def ask_all(
    system: ActorSystem, kind: str, asks: Sequence[tuple[Hashable, Message[R]]]
) -> list[R | Fault]:
    """The replies in the order of the questions; one that failed has its fault in the place of a reply.

    All are under way together, so that what they write is committed together. Any other fault is raised.
    """
    replies: list[R | Fault] = []
    for reply in await system.ask_all(kind, asks):
        if isinstance(reply, Exception) and not isinstance(reply, EngineError | StorageError):
            raise reply
        replies.append(reply)
    return replies
