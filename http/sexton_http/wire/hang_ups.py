"""Notices that a client has hung up while something waits on its behalf."""

import select
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeVar

import trio

from sexton_http.wire.asgi import Receive

T = TypeVar("T")
Ask = Callable[[], Awaitable[Any]]

UNLESS_GONE: Final = "sexton.unless_gone"
"""An extension of the scope: asks, and withdraws the question when the client hangs up."""
CAN_TELL: Final = hasattr(select, "epoll")
"""On Linux. Elsewhere each long poll has a task beside it that tries to read."""


async def unless_gone(
    scope: Mapping[str, Any], receive: Receive, ask: Callable[[], Awaitable[T]]
) -> T | None:
    """The answer; None when the client has hung up meanwhile, and then nothing more is sent to it.

    The body of the request must have been read.
    """
    extension: Callable[[Ask], Awaitable[T | None]] | None = scope.get("extensions", {}).get(UNLESS_GONE)
    return await (_unless_disconnected(receive, ask) if extension is None else extension(ask))


async def until_told(
    ask: Callable[[], Awaitable[T]], expect: Callable[[Callable[[], None]], None], forget: Callable[[], None]
) -> T | None:
    """The answer, or None once what was given to ``expect`` is called; the question is then withdrawn."""
    with trio.CancelScope() as scope:
        expect(scope.cancel)
        try:
            return await ask()
        finally:
            forget()
    return None


class HangUps:
    """Asks the kernel for one thing only: which of these sockets has its other end closed.

    One descriptor and one task for all, where a task that reads would cost each long poll more than its
    answer does. What such a client has sent before stays unread. Under TLS it is the same: whoever ends the
    session closes the socket as well.
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


async def _unless_disconnected(receive: Receive, ask: Callable[[], Awaitable[T]]) -> T | None:
    answers: list[T] = []

    async def watch(scope: trio.CancelScope) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        scope.cancel()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(watch, nursery.cancel_scope)
        answers.append(await ask())
        nursery.cancel_scope.cancel()
    return answers[0] if answers else None
