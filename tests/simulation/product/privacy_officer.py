"""A privacy officer, who has the addresses of customers erased."""

from __future__ import annotations

import itertools
from typing import Final

import httpx2
import trio

from tests.simulation.product.customers import CUSTOMERS, PATH
from tests.simulation.product.people import Caller

ONLY_COUNTED: Final = 0.2
"""The share of erasures that change nothing."""
STOPPED: Final = 0.15
"""The share of erasures that are stopped soon."""
STOPPED_S: Final = (0.0, 4.0)
REFUSED: Final = (409, 422)


class PrivacyOfficer:
    """One program."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    async def run(self) -> None:
        """Begin one erasure after the other until all is calm; each takes as long as it takes."""
        caller = self._caller
        span = caller.habits.erasures
        assert span is not None
        async with caller.open() as http:
            for number in itertools.count(1):
                # There is ever more to look through, so it is done ever more rarely.
                await trio.sleep(caller.rng.uniform(*span) * number)
                if caller.promises.is_calm:
                    return
                await self._begin(http, f"erasure-{number}")

    async def _begin(self, http: httpx2.AsyncClient, key: str) -> None:
        caller, rng = self._caller, self._caller.rng
        body = {"path": PATH, "value": rng.choice(CUSTOMERS), "dry_run": rng.random() < ONLY_COUNTED}
        is_stopped = rng.random() < STOPPED
        path = f"{caller.workspace}/erasures"
        begun = await caller.ask(http, "POST", path, json=body, headers={"idempotency-key": key})
        # A key whose answer was erased, or is not there yet, is answered 409; it is begun all the same.
        assert begun.status_code in (202, *REFUSED), begun.text
        if is_stopped and begun.status_code == 202:
            await trio.sleep(rng.uniform(*STOPPED_S))
            await caller.ask(http, "POST", f"{path}/{begun.json()['erasure_id']}:stop", json={})
