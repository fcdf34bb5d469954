"""DBOS: workflows of one step each, started and finished in one process."""

import asyncio
import json
import logging
import sys
from time import perf_counter

from dbos import DBOS, DBOSConfig

CONCURRENCY = 64


@DBOS.step()
async def nothing() -> int:
    return 1


@DBOS.workflow()
async def one_step() -> int:
    return await nothing()


async def work(share: int) -> int:
    done = 0
    for _ in range(share):
        handle = await DBOS.start_workflow_async(one_step)
        done += await handle.get_result(polling_interval_sec=0.01)
    return done


async def main(jobs: int) -> dict[str, float]:
    share = jobs // CONCURRENCY
    await work(1)
    began = perf_counter()
    done = sum(await asyncio.gather(*(work(share) for _ in range(CONCURRENCY))))
    seconds = perf_counter() - began
    assert done == share * CONCURRENCY, f"{done} workflows were done"
    return {"jobs": done, "seconds": seconds}


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    settings: DBOSConfig = {
        "name": "bench",
        "system_database_url": sys.argv[1],
        "run_admin_server": False,
        "log_level": "CRITICAL",
    }
    DBOS(config=settings)
    DBOS.launch()
    try:
        print(json.dumps(asyncio.run(main(int(sys.argv[2])))))
    finally:
        DBOS.destroy()
