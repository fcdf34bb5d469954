"""Sexton without its front end: the actors of one node in the holder's own process."""

from collections.abc import Sequence
from contextlib import AsyncExitStack
from itertools import cycle
from typing import Any
from uuid import UUID

import trio

from bench.house import open_house, report_of
from bench.leasebench.adapter import Adapter, Lease, Place
from sexton_actors.protocol.lease import Renew, Renewal, Reported

AGENTS = 256
WAIT_MS = 200


class SextonActors(Adapter):
    title = "Sexton, its actors alone"
    does_not = (
        "answers nobody over a network here: each holder is a node of its own",
        "runs one event of an agent at a time: there are no more leases than agents",
        "has a term of 30 s, which cannot be chosen",
    )
    packages = ("sexton",)
    backend = "trio"
    workers = 8
    batch = 32
    fixed_term_s = 30.0

    async def setup(self, place: Place) -> dict[str, Any]:
        async with open_house(place.dsn) as house:
            workspace = await house.tenant("bench")
            agents = [await house.install(workspace, f"bench-{number}") for number in range(AGENTS)]
        return {"workspace": str(workspace.id), "agents": [str(agent) for agent in agents]}

    async def open(self, place: Place) -> None:
        self.stack = AsyncExitStack()
        self.house = await self.stack.enter_async_context(open_house(place.dsn))
        self.runner = await self.house.enrol(place.holder)
        self.workspace = await self.house.world.storage.workspaces.load(UUID(place.facts["workspace"]))
        agents = [UUID(agent) for agent in place.facts["agents"]]
        self.agents = cycle(agents[place.first :] + agents[: place.first])

    async def fill(self, jobs: int) -> None:
        left = iter(range(jobs))

        async def keep() -> None:
            for _ in left:
                assert self.workspace is not None
                self.house.tell(await self.house.keep(self.workspace, next(self.agents)))

        async with trio.open_nursery() as nursery:
            for _ in range(128):
                nursery.start_soon(keep)

    async def claim(self, most: int) -> list[Lease]:
        grants = await self.house.poll(self.runner, most=min(64, most), wait_ms=WAIT_MS)
        return [Lease(str(one.event.id), one.lease.fencing_token, one) for one in grants]

    async def renew(self, leases: Sequence[Lease]) -> list[bool]:
        asks = [(one.handle.lease.id, Renew(self.runner, 0, 0, 0, fencing_token=one.token)) for one in leases]
        return [isinstance(answer, Renewal) for answer in await self.house.system.ask_all("lease", asks)]

    async def report(self, leases: Sequence[Lease]) -> list[bool]:
        asks = [(one.handle.lease.id, report_of(self.runner, one.handle)) for one in leases]
        return [isinstance(answer, Reported) for answer in await self.house.system.ask_all("lease", asks)]

    async def close(self) -> None:
        await self.stack.aclose()
