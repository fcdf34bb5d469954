"""Waits for something, but not longer than the server lives."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import trio

T = TypeVar("T")


async def until_stopped(stop: trio.Event, ask: Callable[[], Awaitable[T]], *others: trio.Event) -> T | None:
    """The answer, or None once the server, or another, has said stop; the question is then withdrawn."""
    stops = (stop, *others)
    if any(event.is_set() for event in stops):
        return None
    answers: list[T] = []

    async def watch(event: trio.Event, scope: trio.CancelScope) -> None:
        await event.wait()
        scope.cancel()

    async with trio.open_nursery() as nursery:
        for event in stops:
            nursery.start_soon(watch, event, nursery.cancel_scope)
        answers.append(await ask())
        nursery.cancel_scope.cancel()
    return answers[0] if answers else None
