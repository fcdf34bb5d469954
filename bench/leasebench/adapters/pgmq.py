"""pgmq: messages that are invisible for a while after they were read, and deleted when done."""

import asyncio
from collections.abc import Sequence
from math import ceil
from typing import Any

import asyncpg
from pgmq.async_queue import PGMQueue
from pgmq.install import get_embedded_install_sql, install_pgmq_sql

from bench.leasebench.adapter import Adapter, Lease, Place

QUEUE = "bench"


class Pgmq(Adapter):
    title = "pgmq"
    does_not = (
        "has no fencing token: any client may hide or delete a message that it knows the number of",
        "meters nothing and debits nobody",
        "keeps no order within a key here, and no fairness",
    )
    packages = ("pgmq", "asyncpg")
    workers = 4
    batch = 64

    async def setup(self, place: Place) -> dict[str, Any]:
        await asyncio.to_thread(install_pgmq_sql, get_embedded_install_sql(), dsn=place.dsn)
        await self.open(place)
        await self.queue.create_queue(QUEUE)
        await self.close()
        return {}

    async def open(self, place: Place) -> None:
        self.term = ceil(place.term_s)
        self.pool = await asyncpg.create_pool(place.dsn, min_size=1, max_size=min(8, place.workers))
        self.queue = PGMQueue(pool=self.pool, init_extension=False)
        await self.queue.init()

    async def fill(self, jobs: int) -> None:
        for begin in range(0, jobs, 5000):
            await self.queue.send_batch(QUEUE, [{}] * min(5000, jobs - begin))

    async def claim(self, most: int) -> list[Lease]:
        found = await self.queue.read_batch(QUEUE, vt=self.term, batch_size=most)
        return [Lease(str(one.msg_id), None, one.msg_id) for one in found]

    async def renew(self, leases: Sequence[Lease]) -> list[bool]:
        found = await self.queue.set_vt(QUEUE, [one.handle for one in leases], self.term) or []
        ids = {one.msg_id for one in found}
        return [one.handle in ids for one in leases]

    async def report(self, leases: Sequence[Lease]) -> list[bool]:
        ids = set(await self.queue.delete_batch(QUEUE, [one.handle for one in leases]))
        return [one.handle in ids for one in leases]

    async def close(self) -> None:
        self.pool.terminate()
