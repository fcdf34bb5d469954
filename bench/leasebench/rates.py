"""Renewals, and claims with their reports, in closed and in open loops; in the holder's process."""

import time
from array import array
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio

from bench.leasebench.adapter import Adapter, Lease, Place

WARM_S = 1.0
"""At most, before each loop that counts: connections, plans and caches are warm then."""
OPEN_SHARE = 0.5
"""An open loop asks for half of what the closed one reached, so that a queue is the system's own doing."""
SPARE = 1.5
"""How much more work is laid in than the last rate would use up."""
MOST_JOBS = 60_000
IDLE_S = 0.005
PATIENCE_S = 10.0
"""Without a job for so long there is none."""
Mark = Callable[..., Awaitable[str]]


@dataclass(slots=True)
class Seen:
    """What one loop found."""

    began: float = 0.0
    over: float = 0.0
    """Nothing is begun after it."""
    last: float = 0.0
    done: int = 0
    refused: int = 0
    late: int = 0
    """Renewals that were answered after the end that their lease had by the last answer."""
    slack_s: float = float("inf")
    """The least time that a lease had left."""
    due_ns: "array[int]" = field(default_factory=lambda: array("q"))
    """Latencies from when a call was due; in a closed loop that is when it was sent."""
    sent_ns: "array[int]" = field(default_factory=lambda: array("q"))
    """The same from when it was sent, which in an open loop hides the wait before that."""

    def note(self, due: float, sent: float, had: float, done: int) -> None:
        if done and had <= self.over + PATIENCE_S:
            self.done += done
            self.last = had
            self.due_ns.append(int((had - due) * 1e9))
            self.sent_ns.append(int((had - sent) * 1e9))

    def told(self, name: str, folder: Path) -> dict[str, Any]:
        """Put the latencies into files; the rest as JSON."""
        (folder / f"{name}.due").write_bytes(self.due_ns.tobytes())
        (folder / f"{name}.sent").write_bytes(self.sent_ns.tobytes())
        seconds = max(self.last - self.began, 1e-9)
        slack = None if self.slack_s == float("inf") else self.slack_s
        return {
            "done": self.done,
            "seconds": seconds,
            "calls": len(self.due_ns),
            "refused": self.refused,
            "late": self.late,
            "slack_s": slack,
        }


class Timetable:
    """When each call of each worker is due; all times are fixed before the first."""

    def __init__(self, workers: int, calls_per_s: float) -> None:
        self._workers = workers
        self._every = 1 / calls_per_s if calls_per_s else 0.0

    def due(self, worker: int, turn: int, began: float) -> float:
        """0 in a closed loop: at once.

        >>> table = Timetable(2, 10)
        >>> [table.due(worker, turn, 100.0) for turn in (0, 1) for worker in (0, 1)]
        [100.0, 100.1, 100.2, 100.3]
        """
        return began + (worker + turn * self._workers) * self._every if self._every else 0.0

    async def wait(self, worker: int, turn: int, began: float) -> float:
        """Wait until it is due, if that is still to come; answers when it was."""
        due = self.due(worker, turn, began)
        if (left := due - time.monotonic()) > 0:
            await anyio.sleep(left)
        return due or time.monotonic()


async def measure_rates(adapter: Adapter, place: Place, seconds: float, mark: Mark, folder: str) -> None:
    """Four loops, each between two marks; two where nothing can be renewed."""
    loops = _Loops(adapter, place, seconds, mark, Path(folder))
    if adapter.renews:
        await loops.renewals()
    await loops.cycles()


class _Loops:
    def __init__(self, adapter: Adapter, place: Place, seconds: float, mark: Mark, folder: Path) -> None:
        self._adapter = adapter
        self._place = place
        self._seconds = seconds
        self._mark = mark
        self._folder = folder

    async def renewals(self) -> None:
        count = self._adapter.workers * self._adapter.batch
        await self._adapter.fill(count)
        shares: list[list[Lease]] = []
        ends: dict[str, float] = {}
        while len(shares) < self._adapter.workers:
            asked = time.monotonic()
            share = await self._claim(self._adapter.batch)
            shares.append(share)
            ends.update({lease.key: asked + self._place.term_s for lease in share})
        warm = await self._renew(shares, ends, min(WARM_S, self._seconds), 0)
        await self._mark("renew closed begins")
        closed = await self._renew(shares, ends, self._seconds, 0)
        await self._mark("renew closed", **closed.told("renew closed", self._folder))
        calls = OPEN_SHARE * len(closed.due_ns) / (closed.last - closed.began)
        await self._mark("renew open begins")
        paced = await self._renew(shares, ends, self._seconds, calls)
        await self._mark(
            "renew open", rate=calls * self._adapter.batch, **paced.told("renew open", self._folder)
        )
        assert warm.done
        for share in shares:
            await self._adapter.report(share)

    async def _claim(self, most: int) -> list[Lease]:
        """Exactly that many; raises TimeoutError."""
        taken: list[Lease] = []
        until = time.monotonic() + PATIENCE_S
        while len(taken) < most:
            if time.monotonic() > until:
                raise TimeoutError(f"only {len(taken)} of {most} leases were granted in {PATIENCE_S} s")
            taken += await self._adapter.claim(most - len(taken))
        return taken

    async def _renew(
        self, shares: Sequence[Sequence[Lease]], ends: dict[str, float], seconds: float, calls_per_s: float
    ) -> Seen:
        seen = Seen(began=time.monotonic())
        seen.over = seen.began + seconds
        table = Timetable(len(shares), calls_per_s)

        async def work(worker: int) -> None:
            turn = 0
            while (due := await table.wait(worker, turn, seen.began)) < seen.over:
                sent = time.monotonic()
                oks = await self._adapter.renew(shares[worker])
                had = time.monotonic()
                turn += 1
                for lease, ok in zip(shares[worker], oks, strict=True):
                    seen.slack_s = min(seen.slack_s, ends[lease.key] - had)
                    seen.late += had > ends[lease.key]
                    seen.refused += not ok
                    ends[lease.key] = sent + self._place.term_s
                seen.note(due, sent, had, sum(oks))

        async with anyio.create_task_group() as group:
            for worker in range(len(shares)):
                group.start_soon(work, worker)
        return seen

    async def cycles(self) -> None:
        """The first round tells how much work the others need."""
        few = max(256, 2 * self._adapter.workers * self._adapter.batch)
        rate = await self._warm(few)
        rate = await self._warm(
            min(MOST_JOBS, max(self._adapter.batch, int(rate * min(WARM_S, self._seconds))))
        )
        await self._adapter.fill(min(MOST_JOBS, int(SPARE * rate * self._seconds)))
        await self._mark("cycle closed begins")
        closed = await self._cycle(self._seconds, 0)
        await self._mark("cycle closed", **closed.told("cycle closed", self._folder))
        calls = OPEN_SHARE * len(closed.due_ns) / (closed.last - closed.began)
        jobs = OPEN_SHARE * closed.done / (closed.last - closed.began)
        await self._adapter.fill(min(MOST_JOBS, int(SPARE * jobs * self._seconds)))
        await self._mark("cycle open begins")
        paced = await self._cycle(self._seconds, calls)
        await self._mark("cycle open", rate=jobs, **paced.told("cycle open", self._folder))

    async def _warm(self, jobs: int) -> float:
        await self._adapter.fill(jobs)
        seen = await self._cycle(PATIENCE_S, 0, jobs)
        return seen.done / (seen.last - seen.began)

    async def _cycle(self, seconds: float, calls_per_s: float, most: float = float("inf")) -> Seen:
        seen = Seen(began=time.monotonic())
        seen.over = seen.last = seen.began + seconds
        table = Timetable(self._adapter.workers, calls_per_s)
        fresh = [seen.began]

        async def work(worker: int) -> None:
            turn = 0
            while (due := await table.wait(worker, turn, seen.began)) < seen.over and seen.done < most:
                sent = time.monotonic()
                leases = await self._adapter.claim(self._adapter.batch)
                if not leases:
                    if time.monotonic() > min(seen.over, fresh[0] + 1.0):
                        return  # the work has run out, and what is left is in others' hands
                    await anyio.sleep(IDLE_S)
                    continue
                oks = await self._adapter.report(leases)
                had = fresh[0] = time.monotonic()
                turn += 1
                seen.refused += len(oks) - sum(oks)
                seen.note(due, sent, had, sum(oks))

        async with anyio.create_task_group() as group:
            for worker in range(self._adapter.workers):
                group.start_soon(work, worker)
        return seen
