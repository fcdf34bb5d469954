"""What agents remember, as it is sent and shown."""

from typing import Annotated, Final

import msgspec

from sexton_http.answers import Problem
from sexton_http.bodies.shapes import Body, Shape
from sexton_storage.records.memories import Memory, MemoryChange

KEY_CHARS: Final = 255
CONTENT_BYTES: Final = 16 * 1024
CATEGORY_CHARS: Final = 64
DEFAULT_CATEGORY: Final = "conversation"
MAX_CHANGES: Final = 256
"""Entries that one report may change."""

Key = Annotated[str, msgspec.Meta(min_length=1, max_length=KEY_CHARS)]
Content = Annotated[str, msgspec.Meta(min_length=1, max_length=CONTENT_BYTES)]
Category = Annotated[str, msgspec.Meta(min_length=1, max_length=CATEGORY_CHARS)]


class MemoryEntry(Body):
    """What is to be remembered under the key, or, with ``delete``, that it is to be forgotten.

    The content is at most 16 KiB of UTF-8.
    """

    key: Key
    content: Content | None = None
    category: Category = DEFAULT_CATEGORY
    """``core`` never makes room for others, ``daily`` lives for 72 hours; any other is the agent's own."""
    delete: bool = False


class MemoryItem(Shape):
    key: str
    content: str
    category: str
    updated_at: int


class MemoryList(Shape):
    items: list[MemoryItem]
    total: int
    """All that were found, shown or not."""


def change_of(entry: MemoryEntry, pointer: str) -> MemoryChange:
    """Raises Problem UZ-REQ-001."""
    if entry.delete:
        if entry.content is not None:
            raise _wrong(f"{pointer}/content", "nothing is kept of what is to be forgotten")
        return MemoryChange(entry.key, None)
    if entry.content is None:
        raise _wrong(f"{pointer}/content", "is missing; `delete` forgets the entry")
    size = len(entry.content.encode())
    if size > CONTENT_BYTES:
        raise _wrong(f"{pointer}/content", f"{size} bytes, {CONTENT_BYTES} may be")
    return MemoryChange(entry.key, entry.content, entry.category)


def _wrong(pointer: str, why: str) -> Problem:
    return Problem("UZ-REQ-001", f"{pointer}: {why}", facts={"pointer": pointer})


def view_memory(memory: Memory) -> MemoryItem:
    return MemoryItem(memory.key, memory.content, memory.category, memory.updated_at)
