"""Guests, whose keys and tokens expire, and who try them before and after."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Final, NamedTuple

import httpx2
import trio

from tests.simulation.product.people import Caller, Presented

HOLDS_S: Final = (300, 14_400)
"""How long a key holds, the least and the most."""
TRIED_MS: Final = 6 * 3_600_000
"""What has expired is tried for so long."""


class Credential(NamedTuple):
    """Something to come in with."""

    what: str
    value: str
    expires_ms: int


class Guests:
    """One program for all of them. ``now_ms``: the database's clock.

    ``user_token`` gives a token that is minted at that time, and when it expires.
    """

    def __init__(
        self, host: Caller, now_ms: Callable[[], int], user_token: Callable[[int], tuple[str, int]]
    ) -> None:
        self._host, self._now_ms, self._user_token = host, now_ms, user_token
        self._held: list[Credential] = []

    async def run(self) -> None:
        """Come again and again."""
        span = self._host.habits.guests
        assert span is not None
        async with self._host.open() as http:
            for number in itertools.count():
                await trio.sleep(self._host.rng.uniform(*span))
                now = self._now_ms()
                if number % 3 == 0:
                    self._held.append(Credential(f"token {number}", *self._user_token(now)))
                elif number % 3 == 1:
                    await self._mint(http, number, now)
                self._held = [one for one in self._held if now - one.expires_ms < TRIED_MS]
                for one in self._held:
                    await self._try(http, one)

    async def _mint(self, http: httpx2.AsyncClient, number: int, now: int) -> None:
        expires_ms = now + round(1000 * self._host.rng.uniform(*HOLDS_S))
        body = {"key_name": f"guest-{number}", "role": "user", "expires_at": expires_ms}
        made = await self._host.ask(http, "POST", "/v1/api-keys", json=body)
        # One that nobody heard of was made all the same: its value is lost, and its name is taken.
        if made.status_code == 201:
            self._held.append(Credential(f"key {number}", made.json()["key"], expires_ms))

    async def _try(self, http: httpx2.AsyncClient, one: Credential) -> None:
        asked_ms, bearer = self._now_ms(), {"authorization": f"Bearer {one.value}"}
        try:
            answer = await http.request("GET", f"{self._host.workspace}/zombies", headers=bearer)
        except httpx2.TransportError:
            return
        shown = Presented(one.what, asked_ms, self._now_ms(), one.expires_ms, answer.status_code)
        self._host.promises.presented.append(shown)
