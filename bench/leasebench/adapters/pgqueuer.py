"""pgqueuer: jobs that are picked in batches, kept by a heartbeat, and moved to a log."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import uuid4

import asyncpg
from pgqueuer.adapters.drivers.asyncpg import AsyncpgPoolDriver
from pgqueuer.ports.repository import EntrypointExecutionParameter
from pgqueuer.queries import Queries

from bench.leasebench.adapter import Adapter, Lease, Place

ANY = {"nothing": EntrypointExecutionParameter(concurrency_limit=0)}


class PgQueuer(Adapter):
    title = "pgqueuer"
    does_not = (
        "has no fencing token: a worker that was thought dead may renew and finish what another has",
        "meters nothing and debits nobody",
        "keeps no order within a key, and no fairness",
    )
    packages = ("pgqueuer", "asyncpg")
    workers = 4
    batch = 64

    async def setup(self, place: Place) -> dict[str, Any]:
        async with asyncpg.create_pool(place.dsn, min_size=1, max_size=1) as pool:
            await Queries(AsyncpgPoolDriver(pool)).install()
        return {}

    async def open(self, place: Place) -> None:
        self.term, self.me = timedelta(seconds=place.term_s), uuid4()
        self.pool = await asyncpg.create_pool(place.dsn, min_size=1, max_size=min(8, place.workers))
        self.queries = Queries(AsyncpgPoolDriver(self.pool))

    async def fill(self, jobs: int) -> None:
        await self.queries.enqueue(["nothing"] * jobs, [None] * jobs, [0] * jobs)

    async def claim(self, most: int) -> list[Lease]:
        jobs = await self.queries.dequeue(most, ANY, self.me, None, self.term)
        return [Lease(str(job.id), None, job.id) for job in jobs]

    async def renew(self, leases: Sequence[Lease]) -> list[bool]:
        # It says nothing of each: the statement does not look at who asks.
        await self.queries.update_heartbeat([one.handle for one in leases])
        return [True] * len(leases)

    async def report(self, leases: Sequence[Lease]) -> list[bool]:
        # The statement of `log_jobs`, run here so that the number of rows that it moved is seen.
        ids = [one.handle for one in leases]
        moved = await self.pool.execute(
            self.queries.qbq.build_log_job_query(), ids, ["successful"] * len(ids), [None] * len(ids)
        )
        count = int(moved.rpartition(" ")[2])
        return [at < count for at in range(len(ids))]

    async def close(self) -> None:
        self.pool.terminate()
