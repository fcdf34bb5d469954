"""What a store of objects does for contents that are whole."""

from collections.abc import AsyncGenerator, AsyncIterable
from typing import Protocol
from uuid import UUID

import msgspec

from sexton_storage.errors import StorageError


class ObjectStoreFault(StorageError):
    """The store does not answer, refuses, or gives something else than it was given; the text says which.

    Nothing is lost by it: what the store has not given back whole is still in the database.
    """


class ObjectMissing(ObjectStoreFault):
    """The store has no object of this name."""


class ObjectPage(msgspec.Struct, frozen=True):
    """Some of what a store has, in the order of their names."""

    objects: tuple[tuple[UUID, int], ...]
    """Contents and when they were written (Unix ms); whatever else is there is left out, and left alone."""
    following: str | None
    """Where the next page begins; None: there is none."""


class ObjectStore(Protocol):
    """Keeps each content as an object whose name is the content's id.

    All calls may raise ObjectStoreFault. None of them holds more than a part of a content in memory.
    """

    async def settle_owner(self, owner: bytes) -> bytes:
        """Write down whose objects these are, unless somebody did; gives who it is."""
        ...

    async def put(self, object_id: UUID, size: int, pieces: AsyncIterable[bytes]) -> None:
        """Keep a content of ``size`` bytes; one that was kept before, whole or in part, is replaced."""
        ...

    async def measure(self, object_id: UUID) -> int:
        """Give the length of an object. Raises ObjectMissing."""
        ...

    def read(self, object_id: UUID, start: int, end: int) -> AsyncGenerator[bytes, None]:
        """Give the bytes from ``start`` to before ``end``, no more and no fewer. Raises ObjectMissing."""
        ...

    async def delete(self, object_id: UUID) -> None:
        """Delete an object and what came of it in part; without one, nothing happens."""
        ...

    async def listed(self, after: str) -> ObjectPage:
        """Give the objects whose names come after this one, whole or in part, a page of them."""
        ...
