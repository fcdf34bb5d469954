"""Waits for something, but not longer than the server lives."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import trio

T = TypeVar("T")


class Stop:
    """Says once, to all that wait meanwhile, that it is over.

    A ``trio.Event`` that also knows whom to interrupt: a long poll needs no task beside it that waits for the
    end, which would cost more than the poll itself.
    """

    __slots__ = ("_event", "_waits")

    def __init__(self) -> None:
        self._event = trio.Event()
        self._waits: set[trio.CancelScope] = set()

    def is_set(self) -> bool:
        return self._event.is_set()

    async def wait(self) -> None:
        await self._event.wait()

    def set(self) -> None:
        self._event.set()
        for scope in tuple(self._waits):
            scope.cancel()

    def expect(self, scope: trio.CancelScope) -> None:
        """Cancel the scope when it is over."""
        self._waits.add(scope)

    def forget(self, scope: trio.CancelScope) -> None:
        self._waits.discard(scope)


async def until_stopped(ask: Callable[[], Awaitable[T]], *stops: Stop) -> T | None:
    """The answer, or None once one has said stop; the question is then withdrawn."""
    if any(stop.is_set() for stop in stops):
        return None
    with trio.CancelScope() as scope:
        for stop in stops:
            stop.expect(scope)
        try:
            return await ask()
        finally:
            for stop in stops:
                stop.forget(scope)
    return None
