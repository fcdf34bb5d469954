"""Tells those who wait on a client's behalf that the client has hung up."""

import select
from collections.abc import Callable
from typing import Final

import trio

CAN_TELL: Final = hasattr(select, "epoll")
"""On Linux. Elsewhere each long poll has a task beside it that tries to read."""


class HangUps:
    """Asks the kernel for one thing only: which of these sockets has its other end closed.

    One descriptor and one task for all, where a task that reads would cost each long poll more than its
    answer does. What such a client has sent before stays unread.
    """

    __slots__ = ("_epoll", "_left")

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._left: dict[int, Callable[[], None]] = {}

    def expect(self, descriptor: int, left: Callable[[], None]) -> None:
        """Call ``left`` once if the other end closes, or has closed; until ``forget``."""
        self._epoll.register(descriptor, select.EPOLLRDHUP)
        self._left[descriptor] = left

    def forget(self, descriptor: int) -> None:
        if self._left.pop(descriptor, None) is not None:
            self._epoll.unregister(descriptor)

    async def watch(self) -> None:
        """Run beside the connections."""
        while True:
            await trio.lowlevel.wait_readable(self._epoll.fileno())
            for descriptor, _ in self._epoll.poll(0):
                left = self._left.get(descriptor)
                if left is not None:
                    self.forget(descriptor)
                    left()

    def close(self) -> None:
        """When the last connection has ended, however it did; what is cancelled still has to ``forget``."""
        self._epoll.close()
