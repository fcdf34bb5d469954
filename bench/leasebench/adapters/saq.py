"""SAQ on PostgreSQL: jobs that are dequeued one by one, kept by a heartbeat, and swept when it stops."""

from collections.abc import Sequence
from math import ceil
from typing import Any

from saq.job import Job, Status
from saq.queue.postgres import PostgresQueue

from bench.leasebench.adapter import Adapter, Lease, Place

WAIT_S = 0.2


class Saq(Adapter):
    title = "SAQ"
    does_not = (
        "has no fencing token: a worker that was thought dead may renew and finish what another has",
        "sweeps from whichever worker came first, and nobody sweeps for it while it is away",
        "meters nothing and debits nobody",
    )
    packages = ("saq", "psycopg")

    async def setup(self, place: Place) -> dict[str, Any]:
        await self.open(place)
        await self.close()
        return {}

    async def open(self, place: Place) -> None:
        self.term = ceil(place.term_s)
        self.queue = PostgresQueue.from_url(place.dsn, min_size=1, max_size=min(16, place.workers))
        await self.queue.connect()

    async def fill(self, jobs: int) -> None:
        for _ in range(jobs):
            await self.queue.enqueue(Job("nothing", heartbeat=self.term, timeout=0, retries=9))

    async def claim(self, most: int) -> list[Lease]:
        leases: list[Lease] = []
        while len(leases) < most and (job := await self.queue.dequeue(WAIT_S)):
            job.status = Status.ACTIVE
            await job.update(status=Status.ACTIVE)
            leases.append(Lease(job.key, None, job))
        return leases

    async def renew(self, leases: Sequence[Lease]) -> list[bool]:
        for one in leases:
            await one.handle.update()
        return [True] * len(leases)

    async def report(self, leases: Sequence[Lease]) -> list[bool]:
        for one in leases:
            await self.queue.finish(one.handle, Status.COMPLETE)
        return [True] * len(leases)

    async def keep_house(self) -> None:
        await self.queue.sweep(abort=0.1)

    async def close(self) -> None:
        await self.queue.disconnect()
