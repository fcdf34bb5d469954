"""Runners and readers of streams on the mixed day, a process for each."""

import asyncio
import os
import random
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import cycle

import orjson

from bench.day_clients import Effort, Lines, phase_at
from bench.day_plan import Plan
from bench.day_senders import BEHIND
from bench.product import Held, held, poll, renew, report
from bench.wire import request

RUNNER_PATIENCE_S = 60.0
POLL_MS = 10_000
BEAT_S = 5.0
SHORT_S = (0.1, 0.3)
"""How long most runs work."""
LONG_S = 6.0
LONG_SHARE = 1 / 40
"""The part of all runs that work long enough to renew."""
RENEW_S = 1.0
AGAIN_S = 0.5
"""After a refusal a runner waits this long, give or take half."""
BACK_S = (1.5, 2.5)
"""After how long the reader of a broken stream comes back."""
CONNECTIONS = 6_000
GONE = frozenset({403, 404, 409, 410})
"""To a runner: the lease is no longer its own."""


# --- runners ------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Worked:
    """What the runners saw."""

    finished: list[tuple[int, str]] = field(default_factory=list)
    """When the report was answered, and the event."""
    slacks: list[tuple[int, float]] = field(default_factory=list)
    """When a renewal was answered, and how many ms its lease had left; less than none: it was late."""
    lost: list[int] = field(default_factory=list)
    """When a runner was told that a lease was no longer its own."""
    refused: Counter[tuple[int, int]] = field(default_factory=Counter)
    """Calls of runners that were turned away, by phase and status."""


def work(plan: Plan) -> tuple[Worked, Effort]:
    """Poll for leases, run them, renew the long ones, report. Finishing is what is measured: not nice."""
    return asyncio.run(_work(plan))


async def _work(plan: Plan) -> tuple[Worked, Effort]:
    worked, effort = Worked(), Effort()
    lines = Lines(plan.site.address, CONNECTIONS)
    runners = [_Runner(plan, lines, token, worked) for token in plan.runners]
    try:
        async with asyncio.timeout((plan.end_ns - time.perf_counter_ns()) / 1e9):
            async with asyncio.TaskGroup() as group:
                group.create_task(effort.keep())
                for runner in runners:
                    group.create_task(runner.live(group))
                    group.create_task(runner.beat())
    except TimeoutError:
        pass
    lines.close()
    return worked, effort


class _Runner:
    """One runner with its slots."""

    def __init__(self, plan: Plan, lines: Lines, token: str, worked: Worked) -> None:
        self._plan = plan
        self._lines = lines
        self._token = token
        self._worked = worked
        self._held: dict[str, Held] = {}
        self._freed = asyncio.Event()

    async def live(self, group: asyncio.TaskGroup) -> None:
        while True:
            while len(self._held) >= self._plan.slots:
                self._freed.clear()
                await self._freed.wait()
            free = self._plan.slots - len(self._held)
            status, body = await self._call(poll(self._plan.site, self._token, most=free, wait_ms=POLL_MS))
            if status != 200:
                await _pause()
                continue
            for lease in held(self._token, orjson.loads(body)):
                self._held[lease.lease_id] = lease
                group.create_task(self._run(lease))

    async def beat(self) -> None:
        while True:
            await asyncio.sleep(BEAT_S * random.uniform(0.8, 1.2))
            told = {"active_lease_ids": list(self._held)}
            await self._call(self._plan.site.post("/v1/runners/me/heartbeats", told, token=self._token))

    async def _run(self, lease: Held) -> None:
        try:
            await self._show(lease)
            if random.random() >= LONG_SHARE:
                await asyncio.sleep(random.uniform(*SHORT_S))
            elif not await self._renew(lease):
                self._worked.lost.append(time.perf_counter_ns())
                return
            if not await self._report(lease):
                self._worked.lost.append(time.perf_counter_ns())
        finally:
            del self._held[lease.lease_id]
            self._freed.set()

    async def _show(self, lease: Held) -> None:
        frames = [{"kind": "chunk", "text": "Looking at the log of the failed build."}]
        path = f"/v1/runners/me/leases/{lease.lease_id}/activity"
        await self._call(self._plan.site.post(path, {"frames": frames}, token=self._token))

    async def _renew(self, lease: Held) -> bool:
        """Work long; whether the lease is still there."""
        ends_at, until = lease.expires_at, time.monotonic() + LONG_S
        while time.monotonic() < until:
            await asyncio.sleep(RENEW_S)
            status, body = await self._call(renew(self._plan.site, lease))
            if status in GONE:
                return False
            self._worked.slacks.append((time.perf_counter_ns(), ends_at - time.time() * 1000))
            if status == 200:
                ends_at = orjson.loads(body)["lease_expires_at"]
        return True

    async def _report(self, lease: Held) -> bool:
        """Until it is taken; whether it was."""
        while True:
            status, _ = await self._call(report(self._plan.site, lease))
            if status == 200:
                self._worked.finished.append((time.perf_counter_ns(), lease.event_id))
                return True
            if status in GONE:
                return False
            await _pause()

    async def _call(self, data: bytes) -> tuple[int, bytes]:
        reply = await self._lines.call(data, RUNNER_PATIENCE_S)
        if not 200 <= reply.status < 300:
            phase = phase_at(self._plan.phases, time.perf_counter_ns())
            self._worked.refused[phase, reply.status] += 1
        return reply


async def _pause() -> None:
    await asyncio.sleep(AGAIN_S * random.uniform(0.5, 1.5))


# --- readers of streams -------------------------------------------------------------------------------------


@dataclass(slots=True)
class Followed:
    """What the readers of streams saw."""

    frames: Counter[int] = field(default_factory=Counter)
    """By phase."""
    breaks: Counter[int] = field(default_factory=Counter)
    """Streams that ended or could not be opened, by phase."""


def follow(plan: Plan) -> tuple[Followed, Effort]:
    """Keep all streams open, and come back by the last number when one breaks."""
    os.nice(BEHIND)
    return asyncio.run(_follow(plan))


async def _follow(plan: Plan) -> tuple[Followed, Effort]:
    followed, effort = Followed(), Effort()
    agents = cycle(plan.agents)
    try:
        async with asyncio.timeout((plan.end_ns - time.perf_counter_ns()) / 1e9):
            async with asyncio.TaskGroup() as group:
                group.create_task(effort.keep())
                for _ in range(plan.streams):
                    group.create_task(_keep_reading(plan, next(agents), followed))
    except TimeoutError:
        pass
    return followed, effort


async def _keep_reading(plan: Plan, agent: str, followed: Followed) -> None:
    site, last = plan.site, ""
    path = f"{site.workspace}/zombies/{agent}/events/stream"
    await asyncio.sleep(random.random())

    def note(counter: Counter[int]) -> Callable[[int], None]:
        def add(count: int) -> None:
            counter[phase_at(plan.phases, time.perf_counter_ns())] += count

        return add

    while True:
        data = request("GET", path, host=site.host, token=site.api_key, last_event_id=last)
        reader = _Reader(data, note(followed.frames))
        try:
            transport, _ = await asyncio.get_running_loop().create_connection(lambda: reader, *site.address)  # noqa: B023 - it is called before the next round
        except OSError:
            pass
        else:
            try:
                await reader.over.wait()
            finally:
                transport.abort()
        last = reader.last or last
        note(followed.breaks)(1)
        await asyncio.sleep(random.uniform(*BACK_S))


class _Reader(asyncio.Protocol):
    """One stream; it counts frames, and remembers the last number."""

    def __init__(self, data: bytes, count: Callable[[int], None]) -> None:
        self.over = asyncio.Event()
        self.last = ""
        self._begun = False
        self._data = data
        self._count = count

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.write(self._data)

    def data_received(self, data: bytes) -> None:
        if not self._begun:
            self._begun = True
            if b" 200 " not in data[:16]:
                self.over.set()
                return
        if frames := data.count(b"\ndata: "):
            self._count(frames)
        # A server sends whole frames; a number that is cut in two is passed over.
        number, ended, _ = data.rpartition(b"\nid: ")[2].partition(b"\n")
        if ended and number.isdigit():
            self.last = number.decode()

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self.over.set()
