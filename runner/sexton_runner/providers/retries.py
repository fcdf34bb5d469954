"""Retries a model that is unavailable, a bounded number of times."""

import random
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass

import trio

from sexton_runner.providers.base import Again, Delta, Prompt, Provider, TextDelta, ToolCalled
from sexton_runner.providers.faults import ModelAway


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How often, and how long, in seconds; ``wait_max_s`` bounds also what a provider asks to wait."""

    tries: int = 6
    wait_first_s: float = 1.0
    wait_max_s: float = 60.0


class RetryingProvider:
    """A provider that is asked again after a passing fault; after the last try the fault is raised."""

    def __init__(self, inner: Provider, patience: Patience, rng: random.Random) -> None:
        self._inner, self._patience, self._rng = inner, patience, rng

    def __repr__(self) -> str:
        return f"<RetryingProvider {self._inner!r}>"

    async def stream(self, prompt: Prompt) -> AsyncGenerator[Delta, None]:
        """Ask until answered, as ``Provider`` says; ``Again`` tells that what was shown is void."""
        for number in range(self._patience.tries):
            shown = False
            try:
                async with aclosing(self._inner.stream(prompt)) as deltas:
                    async for delta in deltas:
                        shown = shown or isinstance(delta, TextDelta | ToolCalled)
                        yield delta
            except ModelAway as fault:
                if number + 1 == self._patience.tries:
                    raise
                yield Again(str(fault), void=shown)
                await trio.sleep(self._wait(number, fault.retry_after_s))
            else:
                return

    def _wait(self, number: int, asked_s: float | None) -> float:
        most = self._patience.wait_max_s
        if asked_s is not None:
            return min(asked_s, most)
        full = min(most, self._patience.wait_first_s * 2.0**number)
        return full * (0.5 + 0.5 * self._rng.random())
