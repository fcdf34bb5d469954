"""Reads what readers of a stream have missed: page by page, and each page once for all who want it then."""

from uuid import UUID

import trio

from sexton_http.bodies.sse import encode_frame, encode_placed
from sexton_http.ceilings import Claim
from sexton_http.gateway.byte_budget import ByteBudget
from sexton_storage.records.frames import PAGE_BYTES, FramePlace, FrameStore, WorkspaceFrames

FRAMES_A_READ = 256
LOOK_S = 1.0
ROOM_S = 5.0
"""How long a reader waits for room for its next page; then it is cut, and comes back by its number."""

_Key = tuple[UUID, int | FramePlace]
"""An agent and a number, or a workspace and a place."""


class NoRoom(Exception):
    """There is no room for this page: too many answers are under way."""


class ReplayPage:
    """The frames that follow one number, encoded; nothing in it when there are none."""

    __slots__ = (
        "body",
        "charged",
        "found",
        "has_room",
        "is_read",
        "key",
        "last",
        "owner",
        "readers",
        "ready",
    )

    def __init__(self, key: _Key, owner: Claim) -> None:
        self.key = key
        self.owner = owner
        self.readers = 0
        self.charged = 0
        self.has_room = True
        self.ready = trio.Event()
        self.body = b""
        self.is_read = False
        self.last = 0 if isinstance(key[1], FramePlace) else key[1]
        """The number of its last frame; of no meaning for a workspace."""
        self.found: WorkspaceFrames | None = None
        """What was read of a workspace, before it is encoded."""


class Replays:
    """The pages that are being read or sent at this moment; none is kept for later.

    A thousand readers that come back at one place after an outage read the same pages at about the same
    time: those who find the page here share its bytes, and the store is asked once.
    """

    def __init__(self, frames: FrameStore, budget: ByteBudget) -> None:
        self._frames = frames
        self.budget = budget
        self._pages: dict[_Key, ReplayPage] = {}

    def __repr__(self) -> str:
        return f"<Replays {len(self._pages)} pages>"

    async def has_room(self, owner: Claim) -> bool:
        """Whether there is room for a page, within a moment; none is kept for the one who asks."""
        if not await self.budget.take(owner, PAGE_BYTES, LOOK_S):
            return False
        self.budget.give_back(owner, PAGE_BYTES)
        return True

    async def take(self, owner: Claim, zombie_id: UUID, after: int) -> ReplayPage:
        """The page after a number, to be given back with ``release`` once it is sent.

        Raises NoRoom and StorageError.
        """
        return await self._take((zombie_id, after), owner)

    async def take_of_workspace(self, owner: Claim, workspace_id: UUID, after: FramePlace) -> ReplayPage:
        """The same of a workspace, after a place."""
        return await self._take((workspace_id, after), owner)

    async def _take(self, key: _Key, owner: Claim) -> ReplayPage:
        while True:
            page = self._pages.get(key)
            if page is None:
                return await self._read(key, owner)
            page.readers += 1
            try:
                await page.ready.wait()
            except BaseException:
                self.release(page)
                raise
            if page.is_read:
                return page
            self.release(page)
            if not page.has_room:
                raise NoRoom
            # Whoever read it was cut short: this one reads for itself.

    def release(self, page: ReplayPage) -> None:
        page.readers -= 1
        if page.readers > 0:
            return
        if self._pages.get(page.key) is page:
            del self._pages[page.key]
        self.budget.give_back(page.owner, page.charged)
        page.charged = 0

    async def _read(self, key: _Key, owner: Claim) -> ReplayPage:
        page = self._pages[key] = ReplayPage(key, owner)
        page.readers = 1
        try:
            await self._charge(page)
            await self._fill(page)
            self._recharge(page, len(page.body))
            page.is_read = True
        except BaseException:
            self._pages.pop(key, None)
            self.release(page)
            raise
        finally:
            page.ready.set()
        return page

    async def _fill(self, page: ReplayPage) -> None:
        owner_id, after = page.key
        if isinstance(after, FramePlace):
            found = await self._frames.read_workspace(owner_id, after=after, limit=FRAMES_A_READ)
            page.found = found
            page.body = b"".join(map(encode_placed, found.frames, found.places))
            return
        frames = await self._frames.read(owner_id, after=after, limit=FRAMES_A_READ)
        if frames:
            page.last = frames[-1].seq
        page.body = b"".join(encode_frame(frame) for frame in frames)

    async def _charge(self, page: ReplayPage) -> None:
        page.has_room = await self.budget.take(page.owner, PAGE_BYTES, ROOM_S)
        if not page.has_room:
            raise NoRoom
        page.charged = PAGE_BYTES

    def _recharge(self, page: ReplayPage, size: int) -> None:
        self.budget.count(page.owner, size)
        self.budget.give_back(page.owner, page.charged)
        page.charged = size
