"""Pages that many people have open: when they are told to look again, and what they share then."""

from collections.abc import Awaitable, Callable
from typing import Final, Generic, TypeVar

import trio

from sexton_http.answers import RequestHead

MOST: Final = 256
"""Pages that are kept at once; of more the oldest ones go."""
LEAST_PAUSE_S: Final = 1.0
PAUSE_EACH_S: Final = 0.025
"""What each open page adds to the pause of all, so that together they ask some forty times a second."""
MOST_PAUSE_S: Final = 10.0

AS_OF: Final = b"sexton-as-of"
"""The header by which an open page asks for its parts only: the id of the change that it was told of."""
PAGE: Final = "text/html"

T = TypeVar("T")


def asks_for_parts(head: RequestHead, media: str) -> bool:
    """Whether an open page asks for what may have changed of it, as all open pages do again and again."""
    return AS_OF in head.headers and media == PAGE and head.method == "GET"


def promise_s(pause_s: float) -> float:
    """Within how long an open page hears from the server again, if it is there.

    The server keeps it with room for a slow moment: it speaks when its next look could come after half of it.

    >>> promise_s(1.0), promise_s(5.0)
    (6.0, 22.0)
    """
    return 4 * pause_s + 2.0


class _Page(Generic[T]):
    """One page that is being made, or was made a moment ago."""

    __slots__ = ("began_ms", "made_at", "ready", "value")

    def __init__(self, began_ms: int) -> None:
        self.began_ms = began_ms
        self.ready = trio.Event()
        self.value: T | None = None
        self.made_at = 0.0


class PageParts(Generic[T]):
    """Pages by what they show and who may see it: two people of one role in one workspace share them."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._pages: dict[object, _Page[T]] = {}
        self.watchers = 0
        """Pages that are open and wait to be told."""

    def __repr__(self) -> str:
        return f"<PageParts of {self.watchers} open pages, {len(self._pages)} kept>"

    @property
    def pause_s(self) -> float:
        """How long an open page waits at least until it is told again.

        >>> parts = PageParts(lambda: 0.0)
        >>> parts.pause_s
        1.0
        >>> parts.watchers = 200
        >>> parts.pause_s
        5.0
        """
        return min(MOST_PAUSE_S, max(LEAST_PAUSE_S, self.watchers * PAUSE_EACH_S))

    @property
    def spread_s(self) -> float:
        """Within how long all of them ask, so that they do not come in one moment.

        >>> parts = PageParts(lambda: 0.0)
        >>> parts.spread_s
        0.0
        >>> parts.watchers = 200
        >>> parts.spread_s
        4.0
        """
        return self.pause_s - LEAST_PAUSE_S

    async def share(
        self, key: object, make: Callable[[], Awaitable[T]], *, now_ms: int, newer_than_ms: int = -1
    ) -> T:
        """What ``make`` gives, or gave somebody else for the same key within the last pause.

        It was begun after ``newer_than_ms``, when what the asker shows was begun: not all that changes is
        heard of, and nobody's page goes back behind what they have done. Whoever asks while it is being made
        waits for it; if that fails each makes it for themselves.
        """
        page = self._pages.get(key)
        if page is not None and page.began_ms > newer_than_ms and self._is_fresh(page):
            await page.ready.wait()
            if page.value is not None:
                return page.value
            return await make()
        page = self._pages[key] = _Page(now_ms)
        try:
            made = page.value = await make()
        except BaseException:
            self._pages.pop(key, None)
            raise
        finally:
            page.made_at = self._monotonic()
            page.ready.set()
        self._forget()
        return made

    def _is_fresh(self, page: _Page[T]) -> bool:
        return not page.ready.is_set() or self._monotonic() - page.made_at < self.pause_s

    def _forget(self) -> None:
        self._pages = {key: page for key, page in self._pages.items() if self._is_fresh(page)}
        while len(self._pages) > MOST:
            del self._pages[next(iter(self._pages))]
