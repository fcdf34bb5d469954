"""Frames: the lines of an agent's activity stream."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol
from uuid import UUID

import msgspec

from sexton_storage.documents import Json

PAGE_BYTES: Final = 256 * 1024
"""What one read of frames brings at most, unless its first frame is longer than that by itself."""


class Frame(msgspec.Struct, frozen=True, gc=False):
    """One line of an agent's activity stream; ``seq`` grows by one within the agent."""

    zombie_id: UUID
    seq: int
    event_id: UUID | None
    kind: str
    at_ms: int
    data: Json
    size: int
    """Bytes of ``data`` as JSON."""


class FrameStore(Protocol):
    async def read(
        self, zombie_id: UUID, *, after: int, limit: int, max_bytes: int = PAGE_BYTES
    ) -> Sequence[Frame]:
        """The frames that follow: at most ``limit``, and together ``max_bytes`` of data; at least one."""
        ...

    async def last_of_kind(self, zombie_id: UUID, kind: str, *, since: int, among: int) -> int | None:
        """The number of the newest frame of a kind among the newest ``among``, if it is from ``since`` on."""
        ...

    async def bounds(self, zombie_id: UUID) -> tuple[int, int]:
        """``(oldest kept seq, newest seq)``.

        ``(newest + 1, newest)`` when none is kept, ``(1, 0)`` before the first.
        """
        ...

    async def heads(self, zombie_ids: Sequence[UUID]) -> dict[UUID, int]: ...
    async def prune(self, *, keep_ms: int, keep_frames: int, limit: int) -> int:
        """Delete a bounded number of frames beyond retention."""
        ...


class NewFrame(msgspec.Struct, frozen=True, gc=False):
    """A stream frame before it has its number."""

    zombie_id: UUID
    event_id: UUID | None
    kind: str
    at_ms: int
    data: Mapping[str, Any]
