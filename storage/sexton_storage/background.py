"""Runs a task for as long as a block lasts, without hiding the block's errors in a group."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import trio


@asynccontextmanager
async def in_background(task: Callable[[], Awaitable[None]]) -> AsyncIterator[None]:
    """Start ``task`` and cancel it when the block ends; what the block raises comes out as it is."""
    failure: Exception | None = None
    async with trio.open_nursery() as nursery:
        nursery.start_soon(task)
        try:
            yield
        except Exception as error:  # noqa: BLE001 - raised again as soon as the nursery is closed
            failure = error
        nursery.cancel_scope.cancel()
    if failure is not None:
        raise failure
