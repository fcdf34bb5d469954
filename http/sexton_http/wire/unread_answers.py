"""Bounds what answers take whose handlers are done with them and whose clients do not read."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, Protocol

from sexton_http.wire.http2_patience import Patience

UNREAD_BYTES: Final = 32 * 1024 * 1024
"""For all connections of a server. Over HTTP/2 one connection may leave 256 answers of 16 KiB unread."""
OWN_BYTES: Final = 1024
"""What an answer takes beside its body, roughly."""


class Left(Protocol):
    """An answer that waits for its client."""

    @property
    def patience(self) -> Patience:
        """Until when it waits."""
        ...

    def left_bytes(self) -> int:
        """How much of its body waits."""
        ...


class Holder(Protocol):
    """A connection on which answers may wait that nobody makes any more."""

    def left_behind(self) -> Sequence[Left]: ...


def to_give_up(waits: Iterable[tuple[float, int]], most: int) -> tuple[float, int]:
    """Until which time answers are given up, and what is left then. Each is when it is due, and its bytes.

    Those that have waited longest go first, until half of what there may be is free: whoever reads has not
    waited long.

    >>> to_give_up([(9.0, 40), (5.0, 40), (7.0, 40)], most=100)
    (7.0, 40)
    >>> to_give_up([(9.0, 40), (5.0, 40)], most=100)
    (-inf, 80)
    """
    ordered = sorted(waits)
    left, until = sum(size for _, size in ordered), float("-inf")
    if left <= most:
        return until, left
    for due, size in ordered:
        if left <= most // 2:
            break
        left, until = left - size, due
    return until, left


class UnreadAnswers:
    """What is unread on all connections of a server. What handlers still hold is bounded elsewhere."""

    def __init__(self, most: int = UNREAD_BYTES) -> None:
        self.most = most
        self._holders: dict[Holder, None] = {}

    def __repr__(self) -> str:
        return f"<UnreadAnswers {self.now()}/{self.most}>"

    @contextmanager
    def of(self, holder: Holder) -> Iterator[None]:
        """Count this connection's as long as it lives."""
        self._holders[holder] = None
        try:
            yield
        finally:
            del self._holders[holder]

    def now(self) -> int:
        """Bytes that wait."""
        return sum(_size(left) for left in self._all())

    def trim(self) -> None:
        """If there are too many, have those that have waited longest be cut by their connections."""
        if self.now() <= self.most:
            return
        waiting = list(self._all())
        until, _ = to_give_up(((left.patience.due, _size(left)) for left in waiting), self.most)
        for left in waiting:
            if left.patience.due <= until:
                left.patience.exhaust()

    def _all(self) -> Iterator[Left]:
        for holder in self._holders:
            yield from holder.left_behind()


def _size(left: Left) -> int:
    return left.left_bytes() + OWN_BYTES
