"""Asks the control plane again while it is away."""

import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

import trio

from sexton_runner.errors import Unavailable
from sexton_runner.timing import Timing, backoff

T = TypeVar("T")


async def until_available(ask: Callable[[], Awaitable[T]], *, rng: random.Random, timing: Timing) -> T:
    """Give the first answer, after pauses that the control plane names or that grow; until cancelled."""
    attempt = 0
    while True:
        try:
            return await ask()
        except Unavailable as fault:
            await trio.sleep(fault.retry_after_s or backoff(attempt, rng.random(), timing))
            attempt += 1
