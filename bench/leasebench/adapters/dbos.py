"""DBOS: workflows on a queue; one that has begun is held, and one that returns is reported."""

import asyncio
from collections.abc import Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any

from dbos import DBOS, DBOSConfig

from bench.leasebench.adapter import Adapter, Lease, Place

QUEUE = "bench"
WAIT_S = 0.2
HOLDER: "list[Dbos]" = []
"""The one of this process, to which its workflows are handed over."""


@DBOS.workflow()
async def hold() -> int:
    """Begun: it is held. It goes on when the holder reports."""
    end: Future[None] = Future()
    HOLDER[0].begun(str(DBOS.workflow_id), end)
    await asyncio.wrap_future(end)
    return 1


class Dbos(Adapter):
    title = "DBOS"
    does_not = (
        "has no lease and nothing to renew: a workflow belongs to its executor",
        "takes nothing back from an executor that is away, without Conductor or a start under its name",
        "meters nothing and debits nobody",
    )
    packages = ("dbos",)
    workers = 64
    renews = False

    async def open(self, place: Place) -> None:
        settings: DBOSConfig = {
            "name": "bench",
            "system_database_url": place.dsn,
            "run_admin_server": False,
            "log_level": "CRITICAL",
            "executor_id": place.holder,
            "application_version": "1",
        }
        HOLDER[:] = [self]
        DBOS(config=settings)
        await asyncio.to_thread(DBOS.launch)
        self.limit = place.most
        self.queue: Any = None
        self.loop = asyncio.get_running_loop()
        self.waiting: asyncio.Queue[Lease] = asyncio.Queue()

    def begun(self, workflow: str, end: Future[None]) -> None:
        """Called wherever DBOS runs its workflows, which need not be this loop."""
        self.loop.call_soon_threadsafe(self.waiting.put_nowait, Lease(workflow, None, end))

    async def fill(self, jobs: int) -> None:
        self.queue = self.queue or await DBOS.register_queue_async(
            QUEUE, worker_concurrency=self.limit, polling_interval_sec=0.02
        )
        for _ in range(jobs):
            await self.queue.enqueue_async(hold)

    async def claim(self, most: int) -> list[Lease]:
        leases: list[Lease] = []
        while len(leases) < most:
            try:
                leases.append(await asyncio.wait_for(self.waiting.get(), WAIT_S))
            except TimeoutError:
                break
        return leases

    async def renew(self, leases: Sequence[Lease]) -> list[bool]:
        return [True] * len(leases)

    async def report(self, leases: Sequence[Lease]) -> list[bool]:
        for one in leases:
            one.handle.set_result(None)
        for one in leases:
            handle = await DBOS.retrieve_workflow_async(one.key)
            await handle.get_result(polling_interval_sec=0.01)
        return [True] * len(leases)

    async def close(self) -> None:
        await asyncio.to_thread(partial(DBOS.destroy, workflow_completion_timeout_sec=0))
