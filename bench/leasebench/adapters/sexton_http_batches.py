"""Sexton over HTTP, 64 leases a poll, a renewal and a report."""

from collections.abc import Callable, Sequence
from itertools import groupby

from bench import product
from bench.leasebench.adapter import Lease
from bench.leasebench.adapters import sexton_http
from bench.product import Held, Site


class SextonHttpBatches(sexton_http.SextonHttp):
    title = "Sexton, HTTP, 64 a request"
    workers = 4
    batch = 64
    agents = 256

    async def renew(self, leases: Sequence[Lease]) -> list[bool]:
        return await self._many(product.renew_many, leases)

    async def report(self, leases: Sequence[Lease]) -> list[bool]:
        return await self._many(product.report_many, leases)

    async def _many(self, spell: Callable[[Site, list[Held]], bytes], leases: Sequence[Lease]) -> list[bool]:
        # A call is one runner's; what one poll brought is one runner's as well.
        oks: list[bool] = []
        for _, mine in groupby(leases, key=_runner):
            answer = await self.call(spell(self.site, [one.handle for one in mine]))
            oks += [result["ok"] for result in answer["results"]]
        return oks


def _runner(lease: Lease) -> str:
    return str(lease.handle.token)
