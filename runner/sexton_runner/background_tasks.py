"""Runs tasks beside a body of code whose own exceptions must stay what they are."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import trio


@asynccontextmanager
async def run_in_background(*tasks: Callable[[], Awaitable[None]]) -> AsyncIterator[None]:
    """Run ``tasks`` until the body ends.

    A nursery would wrap whatever leaves the body in a group; here only what a task raises is in one.
    """
    fault: BaseException | None = None
    async with trio.open_nursery() as nursery:
        for task in tasks:
            nursery.start_soon(task)
        try:
            yield
        except BaseException as raised:  # noqa: BLE001 - raised again below, cancellation included
            fault = raised
        nursery.cancel_scope.cancel()
    if fault is not None:
        raise fault
