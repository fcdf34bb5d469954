"""Asks many actors at once."""

from collections.abc import Hashable, Sequence
from typing import Any, TypeVar

import trio

from sexton_engine import ActorSystem, EngineError, Message
from sexton_storage.stores import StorageError

R = TypeVar("R")

Fault = EngineError | StorageError


async def ask_all(
    system: ActorSystem, kind: str, asks: Sequence[tuple[Hashable, Message[R]]]
) -> list[R | Fault]:
    """The replies in the order of the questions; one that failed has its fault in the place of a reply.

    All are under way together, so that what they write is committed together.
    """
    replies: list[Any] = [None] * len(asks)

    async def ask(place: int, key: Hashable, message: Message[R]) -> None:
        try:
            replies[place] = await system.ask(kind, key, message)
        except (EngineError, StorageError) as fault:
            replies[place] = fault

    async with trio.open_nursery() as nursery:
        for place, (key, message) in enumerate(asks):
            nursery.start_soon(ask, place, key, message)
    return replies
