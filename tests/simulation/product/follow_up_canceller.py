"""Who takes follow-ups back: some as soon as they are seen, most in the very moment in which they are due.

Then the server that fires it has read that it waits, and the other one writes that it does not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final
from uuid import UUID

import httpx2
import trio

from tests.simulation.product.people import Caller

TAKEN_BACK: Final = 0.75
"""The share of follow-ups that are not to come."""
AT_ONCE: Final = 0.1
"""The share of those that are taken back when they are seen."""
WHEN_DUE_S: Final = (0.019, 0.026)
"""After its time: a server looks 20 ms after it and has fired by 37 ms, and a request takes some 8 ms."""
GONE_ALREADY: Final = 409


class FollowUpCanceller:
    """One program. ``now_ms``: the database's clock."""

    def __init__(self, caller: Caller, now_ms: Callable[[], int]) -> None:
        self._caller, self._now_ms = caller, now_ms
        self._seen: set[str] = set()

    async def run(self) -> None:
        """Look at one agent after the other, and decide about each follow-up once."""
        caller = self._caller
        span = caller.habits.follow_ups
        assert span is not None
        async with caller.open() as http, trio.open_nursery() as nursery:
            while not caller.promises.is_calm:
                await trio.sleep(caller.rng.uniform(*span))
                agent = caller.rng.choice(caller.promises.agents)
                path = f"{caller.workspace}/zombies/{agent}/follow-ups"
                page = await caller.ask(http, "GET", path)
                for one in page.json()["items"]:
                    number = one["follow_up_id"]
                    if one["status"] != "pending" or number in self._seen:
                        continue
                    self._seen.add(number)
                    luck, at_once, after_s = (
                        caller.rng.random(),
                        caller.rng.random() < AT_ONCE,
                        caller.rng.uniform(*WHEN_DUE_S),
                    )
                    if luck < TAKEN_BACK:
                        wait_s = 0.0 if at_once else (one["at"] - self._now_ms()) / 1000 + after_s
                        nursery.start_soon(self._take_back, http, f"{path}/{number}", UUID(number), wait_s)

    async def _take_back(
        self, http: httpx2.AsyncClient, path: str, follow_up_id: UUID, wait_s: float
    ) -> None:
        await trio.sleep(max(0.0, wait_s))
        answer = await self._caller.ask(http, "DELETE", path)
        assert answer.status_code in (204, GONE_ALREADY), answer.text
        if answer.status_code == 204:
            self._caller.promises.taken_back.add(follow_up_id)
