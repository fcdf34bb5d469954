"""An operator of the platform, who grants credit some time after a tenant has used up what it had."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from random import Random
from typing import Final
from uuid import UUID

import httpx2
import trio

from sexton_actors.plans import STARTER_CREDIT_NANOS
from tests.simulation.product.people import Caller

SHORT_EACH: Final = 3
"""In one seed in this number credit is short."""
FIRST_NANOS: Final = (4_000_000, 20_000_000)
"""What the tenant begins with then. A run costs 100,000 a second."""
GRANTED_NANOS: Final = (3_000_000, 15_000_000)
LOOK_S: Final = (2.0, 6.0)
OPEN: Final = 409
"""What a key is answered whose first request has no answer yet."""


def first_credit(seed: int) -> int | None:
    """What the tenant of a seed begins with; None: as much as any, which lasts.

    >>> first_credit(0), first_credit(1), first_credit(4)
    (None, 6254257, 7960229)
    """
    if seed % SHORT_EACH != 1:
        return None
    # A generator of its own: all else of a seed is the same as if credit were not short.
    return Random(seed).randint(*FIRST_NANOS)


class Treasurer:
    """One program. ``admin_token`` gives a token of a platform admin that holds for a while."""

    def __init__(self, caller: Caller, tenant_id: UUID, admin_token: Callable[[], str]) -> None:
        self._caller, self._tenant_id, self._admin_token = caller, tenant_id, admin_token

    async def run(self) -> None:
        """Look what is left, again and again; once nothing is, grant more after a while."""
        caller = self._caller
        span = caller.habits.credit
        assert span is not None
        async with caller.open() as http:
            for number in itertools.count(1):
                while not await self._is_exhausted(http):
                    await trio.sleep(caller.rng.uniform(*LOOK_S))
                await trio.sleep(caller.rng.uniform(*span))
                await self._grant(http, f"grant-{number}")

    async def _is_exhausted(self, http: httpx2.AsyncClient) -> bool:
        shown = await self._caller.ask(http, "GET", "/v1/tenants/me/billing")
        assert shown.status_code == 200, shown.text
        return bool(shown.json()["is_exhausted"])

    async def _grant(self, http: httpx2.AsyncClient, reason: str) -> None:
        """Grant it under a key, until there is an answer."""
        promises, rng = self._caller.promises, self._caller.rng
        nanos = STARTER_CREDIT_NANOS if promises.is_calm else rng.randint(*GRANTED_NANOS)
        promises.granted[reason] = nanos
        path, body = f"/v1/admin/tenants/{self._tenant_id}/credit", {"amount_nanos": nanos, "reason": reason}
        while True:
            headers = {"authorization": f"Bearer {self._admin_token()}", "idempotency-key": reason}
            answer = await self._caller.ask(http, "POST", path, json=body, headers=headers)
            if answer.status_code != OPEN:
                assert answer.status_code == 200, answer.text
                promises.credited.add(reason)
                return
            await trio.sleep(rng.uniform(2, 4))
