"""procrastinate: jobs from the queue to `succeeded`, in one worker, until none is left."""

import asyncio
import json
import logging
import sys
from time import perf_counter

import procrastinate

CONCURRENCY = 100


async def main(dsn: str, jobs: int) -> dict[str, float]:
    app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=dsn, min_size=4, max_size=16))
    done = 0

    @app.task(name="nothing")
    async def nothing() -> None:
        nonlocal done
        done += 1

    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        await nothing.batch_defer_async(*({} for _ in range(jobs)))
        began = perf_counter()
        await app.run_worker_async(concurrency=CONCURRENCY, wait=False, install_signal_handlers=False)
        seconds = perf_counter() - began
        left = await app.connector.execute_query_one_async(
            "SELECT count(*) AS n FROM procrastinate_jobs WHERE status <> 'succeeded'"
        )
    assert done == jobs, f"{done} of {jobs} jobs were done"
    assert left["n"] == 0, f"{left['n']} jobs are left"
    return {"jobs": jobs, "seconds": seconds}


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    print(json.dumps(asyncio.run(main(sys.argv[1], int(sys.argv[2])))))
