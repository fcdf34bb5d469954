"""Frames: the lines of an agent's activity stream."""

import re
from collections.abc import Collection, Mapping, Sequence
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


class FramePlace(msgspec.Struct, frozen=True, order=True, gc=False):
    """A place between the frames of a workspace, in the order of their commits.

    >>> FramePlace(7, UUID(int=255), 3) < FramePlace(8, UUID(int=0), 0)
    True
    >>> place_of(str(FramePlace(7, UUID(int=255), 3)))
    FramePlace(commit=7, zombie_id=UUID('00000000-0000-0000-0000-0000000000ff'), seq=3)
    """

    commit: int
    zombie_id: UUID
    seq: int
    """A place before all frames of a commit has the minute in which it was given here, in ms."""

    def __str__(self) -> str:
        return f"{self.commit}-{self.zombie_id.hex}-{self.seq}"


NO_AGENT: Final = UUID(int=0)
EVERYBODY: Final = UUID(int=0)
"""The scope of what is the whole platform's."""
PAGE_CHANGES_KEEP_MS: Final = 600_000
"""How long it is known which rows of pages have changed; an open page asks every few seconds."""
_MINUTE_MS: Final = 60_000
PLACE: Final = r"^([0-9]{1,19})-([0-9a-f]{32})-([0-9]{1,19})$"
_PLACE: Final = re.compile(PLACE, re.ASCII)
_MAX: Final = 2**63 - 1


def place_before(commit: int, now: int) -> FramePlace:
    """Give the place before all frames of a commit; given within a minute, it is the same for all.

    >>> place_before(7, 60_001) == place_before(7, 119_999)
    True
    """
    return FramePlace(commit, NO_AGENT, now - now % _MINUTE_MS)


def place_of(text: str) -> FramePlace | None:
    """Read what ``str`` of a place gives; None for anything else.

    >>> place_of("7"), place_of("7-x-3"), place_of("9999999999999999999-00000000000000000000000000000000-0")
    (None, None, None)
    """
    found = _PLACE.fullmatch(text)
    if found is None or int(found[1]) > _MAX or int(found[3]) > _MAX:
        return None
    return FramePlace(int(found[1]), UUID(found[2]), int(found[3]))


class WorkspaceFrames(msgspec.Struct, frozen=True):
    """Frames of a workspace that follow a place."""

    frames: tuple[Frame, ...]
    places: tuple[FramePlace, ...]
    """The place of each of them."""
    upto: FramePlace
    """What is before it has been looked at."""
    is_all: bool
    """There was nothing more when it was read."""


class FrameStore(Protocol):
    async def read(
        self, zombie_id: UUID, *, after: int, limit: int, max_bytes: int = PAGE_BYTES
    ) -> Sequence[Frame]:
        """The frames that follow: at most ``limit``, and together ``max_bytes`` of data; at least one."""
        ...

    async def of_event(
        self, zombie_id: UUID, event_id: UUID, *, after: int, limit: int, max_bytes: int = PAGE_BYTES
    ) -> Sequence[Frame]:
        """As ``read``, of one of the agent's events; it looks through all that is kept of the agent."""
        ...

    async def last_of_kind(self, zombie_id: UUID, kind: str, *, since: int, among: int) -> int | None:
        """The number of the newest frame of a kind among the newest ``among``, if it is from ``since`` on."""
        ...

    async def bounds(self, zombie_id: UUID) -> tuple[int, int]:
        """``(oldest kept seq, newest seq)``.

        ``(newest + 1, newest)`` when none is kept, ``(1, 0)`` before the first.
        """
        ...

    async def workspace_head(self) -> FramePlace:
        """Give the place behind every commit of which nothing more can come."""
        ...

    async def read_workspace(
        self, workspace_id: UUID, *, after: FramePlace, limit: int, max_bytes: int = PAGE_BYTES
    ) -> WorkspaceFrames:
        """The frames of all agents of a workspace that follow a place, as ``read`` bounds them.

        In the order of their commits, and no frame comes to stand before one that was read: a commit is shown
        when none that began before it is still under way. Of a long time without frames a part is looked at.
        """
        ...

    async def has_gap(self, workspace_id: UUID, after: FramePlace, *, keep_ms: int, keep_frames: int) -> bool:
        """Whether frames that followed a place are gone, or may be; the bounds are those of ``prune``."""
        ...

    async def has_changed(self, scope_ids: Collection[UUID], *, after: FramePlace, upto: FramePlace) -> bool:
        """Whether rows that pages show were changed by commits between two places; frames do not count.

        Scopes are workspaces, tenants and ``EVERYBODY``. What is longer ago than ``PAGE_CHANGES_KEEP_MS`` is
        not known any more.
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
