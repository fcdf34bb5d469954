"""pgqueuer: jobs from the queue to their log, in one worker, drained."""

import asyncio
import json
import sys
from time import perf_counter

import asyncpg
from pgqueuer.adapters.drivers.asyncpg import AsyncpgPoolDriver
from pgqueuer.domain.types import QueueExecutionMode
from pgqueuer.models import Job
from pgqueuer.qm import QueueManager
from pgqueuer.queries import Queries

BATCH = 100


async def main(dsn: str, jobs: int) -> dict[str, float]:
    async with asyncpg.create_pool(dsn, min_size=4, max_size=8) as pool:
        queries = Queries(AsyncpgPoolDriver(pool))
        await queries.install()
        await queries.enqueue(["nothing"] * jobs, [None] * jobs, [0] * jobs)
        manager = QueueManager(queries)
        done = 0

        @manager.entrypoint("nothing")
        async def nothing(_: Job) -> None:
            nonlocal done
            done += 1

        began = perf_counter()
        await manager.run(batch_size=BATCH, mode=QueueExecutionMode.drain)
        seconds = perf_counter() - began
        left = await pool.fetchval("SELECT count(*) FROM pgqueuer")
    assert done == jobs, f"{done} of {jobs} jobs were done"
    assert left == 0, f"{left} jobs are left"
    return {"jobs": jobs, "seconds": seconds}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(main(sys.argv[1], int(sys.argv[2])))))
