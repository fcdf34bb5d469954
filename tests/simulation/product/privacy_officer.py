"""A privacy officer, who has customers' addresses erased, and somebody who replays their events meanwhile.

Most of all while the database is slow: then an event is read, erased and written again in between.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Final

import httpx2
import trio

from tests.simulation.product.customers import CUSTOMERS, PATH, about
from tests.simulation.product.people import Caller

ONLY_COUNTED: Final = 0.2
"""The share of erasures that change nothing."""
STOPPED: Final = 0.15
"""The share of erasures that are stopped soon."""
STOPPED_S: Final = (0.0, 4.0)
REFUSED: Final = (409, 422)
WITHOUT_CREDIT: Final = 402
WAITS_FOR_SLOWNESS_S: Final = 60.0
WAITS_OF_TROUBLE: Final = 0.25
"""How long it is waited for a slow database, at most, in seconds and as a share of the trouble."""
LOOK_S: Final = 1.0
REPLAYS: Final = 4
"""How many events of the customer are to be replayed beside an erasure; many of them are not over."""
BESIDE_S: Final = (0.0, 8.0)


class PrivacyOfficer:
    """One program. ``is_slow``: whether the database is; ``trouble_s``: how long things go wrong."""

    def __init__(self, caller: Caller, is_slow: Callable[[], bool], trouble_s: float) -> None:
        self._caller, self._is_slow = caller, is_slow
        self._waits_s = min(WAITS_FOR_SLOWNESS_S, trouble_s * WAITS_OF_TROUBLE)

    async def run(self) -> None:
        """Begin one erasure after the other until all is calm; each takes as long as it takes."""
        caller = self._caller
        span = caller.habits.erasures
        assert span is not None
        async with caller.open() as http:
            for number in itertools.count(1):
                # There is ever more to look through, so it is done ever more rarely.
                await trio.sleep(caller.rng.uniform(*span) * number)
                await self._wait()
                if caller.promises.is_calm:
                    return
                customer = caller.rng.choice(CUSTOMERS)
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._replay, http, customer, f"beside-{number}")
                    await self._begin(http, customer, f"erasure-{number}")

    async def _wait(self) -> None:
        left_s = self._waits_s
        while left_s > 0 and not self._is_slow() and not self._caller.promises.is_calm:
            await trio.sleep(LOOK_S)
            left_s -= LOOK_S

    async def _replay(self, http: httpx2.AsyncClient, customer: str, key: str) -> None:
        """Replay some of the customer's events; one that is not over, or changes meanwhile, refuses it."""
        caller = self._caller
        found = [
            event_id
            for event_id, delivery in caller.promises.accepted.items()
            if about(delivery)["customer"]["email"] == customer
        ]
        # The oldest first: those are over most often.
        for event_id in found[:REPLAYS]:
            await trio.sleep(caller.rng.uniform(*BESIDE_S) / REPLAYS)
            path = f"{caller.workspace}/events/{event_id}/replay"
            headers = {"idempotency-key": f"{key}-{event_id}"}
            answer = await caller.ask(http, "POST", path, json={}, headers=headers)
            assert answer.status_code in (202, WITHOUT_CREDIT, *REFUSED), answer.text

    async def _begin(self, http: httpx2.AsyncClient, customer: str, key: str) -> None:
        caller, rng = self._caller, self._caller.rng
        body = {"path": PATH, "value": customer, "dry_run": rng.random() < ONLY_COUNTED}
        is_stopped = rng.random() < STOPPED
        path = f"{caller.workspace}/erasures"
        begun = await caller.ask(http, "POST", path, json=body, headers={"idempotency-key": key})
        # A key whose answer was erased, or is not there yet, is answered 409; it is begun all the same.
        assert begun.status_code in (202, *REFUSED), begun.text
        if is_stopped and begun.status_code == 202:
            await trio.sleep(rng.uniform(*STOPPED_S))
            await caller.ask(http, "POST", f"{path}/{begun.json()['erasure_id']}:stop", json={})
