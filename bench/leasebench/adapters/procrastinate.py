"""procrastinate: jobs that are fetched one by one, kept by their worker's heartbeat, and marked as done."""

from collections.abc import Sequence
from typing import Any

import procrastinate
from procrastinate.exceptions import ConnectorException
from procrastinate.jobs import Job, Status
from procrastinate.utils import utcnow

from bench.leasebench.adapter import Adapter, Lease, Place


class Procrastinate(Adapter):
    title = "procrastinate"
    does_not = (
        "has no fencing token: a worker that was thought dead may finish what another has",
        "renews a worker, not a job: one heartbeat keeps all that it holds, and is never refused",
        "takes nothing back by itself: here each holder looks for stalled jobs once a second",
        "meters nothing and debits nobody",
    )
    packages = ("procrastinate", "psycopg")

    async def setup(self, place: Place) -> dict[str, Any]:
        async with self._app(place).open_async() as app:
            await app.schema_manager.apply_schema_async()
        return {}

    def _app(self, place: Place) -> procrastinate.App:
        size = min(16, place.workers)
        return procrastinate.App(
            connector=procrastinate.PsycopgConnector(conninfo=place.dsn, min_size=1, max_size=size)
        )

    async def open(self, place: Place) -> None:
        self.term_s, self.app = place.term_s, self._app(place)
        await self.app.open_async()
        self.manager = self.app.job_manager
        self.me = await self.manager.register_worker()

    async def fill(self, jobs: int) -> None:
        nothing = Job(id=None, queue="default", lock=None, queueing_lock=None, task_name="nothing")
        for begin in range(0, jobs, 1000):
            await self.manager.batch_defer_jobs_async([nothing] * min(1000, jobs - begin))

    async def claim(self, most: int) -> list[Lease]:
        leases: list[Lease] = []
        while len(leases) < most and (job := await self.manager.fetch_job(queues=None, worker_id=self.me)):
            leases.append(Lease(str(job.id), None, job))
        return leases

    async def renew(self, leases: Sequence[Lease]) -> list[bool]:
        await self.manager.update_heartbeat(self.me)
        return [True] * len(leases)

    async def report(self, leases: Sequence[Lease]) -> list[bool]:
        return [await self._finish(one.handle) for one in leases]

    async def _finish(self, job: Job) -> bool:
        try:
            await self.manager.finish_job(job, Status.SUCCEEDED, delete_job=False)
        except ConnectorException:
            return False
        return True

    async def keep_house(self) -> None:
        for job in await self.manager.get_stalled_jobs(seconds_since_heartbeat=self.term_s):
            await self.manager.retry_job(job, retry_at=utcnow())

    async def close(self) -> None:
        await self.app.close_async()
