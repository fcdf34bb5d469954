"""Waits for something, but not longer than the server lives."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import trio

T = TypeVar("T")


async def until_stopped(stop: trio.Event, ask: Callable[[], Awaitable[T]]) -> T | None:
    """The answer, or None once the server has been told to stop; the question is then withdrawn."""
    if stop.is_set():
        return None
    answers: list[T] = []

    async def watch(scope: trio.CancelScope) -> None:
        await stop.wait()
        scope.cancel()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(watch, nursery.cancel_scope)
        answers.append(await ask())
        nursery.cancel_scope.cancel()
    return answers[0] if answers else None
