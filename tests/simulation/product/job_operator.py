"""An operator, who replays and cancels events in bulk, and pauses, resumes and stops some of these jobs.

Most of all while the database is slow: then a page takes long, and more can come in between.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, Final
from uuid import UUID

import httpx2
import trio

from tests.simulation.product.people import AskedJob, Caller

REPLAYS: Final = 0.55
"""The share of jobs that replay; the others cancel."""
REPLAYED_MS: Final = (15_000, 75_000)
"""A replay is about events that came between these two times ago."""
CANCELLED_MS: Final = (-30_000, 6_000)
"""A cancellation would be about events of the future too; they are none of its, since it was made before."""
ONE_A_SECOND: Final = 0.5
"""The share of jobs that do no more than one event a second, so that their pages have one event."""
HELD_UP: Final = 0.3
"""The share of jobs that are paused or stopped."""
HELD_UP_S: Final = (0.0, 3.0)
LOOK_S: Final = 1.0
"""How often it is looked whether the database is slow."""
OPEN: Final = 409
"""What a key is answered whose first request has no answer yet, or one that was erased."""
TRIES: Final = 40


class Operator:
    """One program. ``now_ms``: the database's clock. ``is_slow``: whether the database is."""

    def __init__(self, caller: Caller, now_ms: Callable[[], int], is_slow: Callable[[], bool]) -> None:
        self._caller, self._now_ms, self._is_slow = caller, now_ms, is_slow

    async def run(self) -> None:
        """Begin one job after the other until all is calm, and see to it that none stays paused."""
        caller = self._caller
        async with caller.open() as http:
            for number in itertools.count(1):
                await self._wait()
                if caller.promises.is_calm:
                    return
                await self._begin(http, f"job-{number}")

    async def _wait(self) -> None:
        span = self._caller.habits.jobs
        assert span is not None
        least_s = span[0]
        await trio.sleep(least_s)
        left_s = self._caller.rng.uniform(*span) - least_s
        while left_s > 0 and not self._is_slow():
            await trio.sleep(min(left_s, LOOK_S))
            left_s -= LOOK_S

    async def _begin(self, http: httpx2.AsyncClient, mark: str) -> None:
        caller, rng, now = self._caller, self._caller.rng, self._now_ms()
        agent, replays = rng.choice(caller.promises.agents), rng.random() < REPLAYS
        latest, earliest = REPLAYED_MS if replays else CANCELLED_MS
        asked = AskedJob(mark, agent, now - earliest, now - latest, now, replays=replays)
        caller.promises.jobs[asked.filter] = asked
        body: dict[str, Any] = {"filter": asked.filter}
        if replays:
            body["merge"] = {"job": mark}
        if rng.random() < ONE_A_SECOND:
            body["rate"] = 1
        path = f"{caller.workspace}/events:{'replay' if replays else 'cancel'}"
        job_id = await self._ask_once(http, path, body, mark)
        if job_id is not None and rng.random() < HELD_UP:
            await self._hold_up(http, job_id)

    async def _ask_once(
        self, http: httpx2.AsyncClient, path: str, body: dict[str, Any], key: str
    ) -> UUID | None:
        """Ask under a key, until there is an answer or it is clear that there will be none."""
        for _ in range(TRIES):
            headers = {"idempotency-key": key}
            answer = await self._caller.ask(http, "POST", path, json=body, headers=headers)
            if answer.status_code != OPEN:
                assert answer.status_code == 202, answer.text
                return UUID(answer.json()["job"]["job_id"])
            await trio.sleep(self._caller.rng.uniform(2, 4))
        return None

    async def _hold_up(self, http: httpx2.AsyncClient, job_id: UUID) -> None:
        """Stop the job, or pause it and let it go on; one that is over refuses either."""
        rng, path = self._caller.rng, f"{self._caller.workspace}/jobs/{job_id}"
        words = ("stop",) if rng.random() < 0.4 else ("pause", "resume")
        for word in words:
            await trio.sleep(rng.uniform(*HELD_UP_S))
            answer = await self._caller.ask(http, "POST", f"{path}:{word}", json={})
            assert answer.status_code in (200, OPEN), answer.text
