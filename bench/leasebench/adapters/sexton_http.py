"""Sexton over HTTP, one lease a request: a server of its own over the same database."""

import asyncio
import itertools
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import orjson

from bench import product
from bench.leasebench.adapter import Adapter, Lease, Place
from bench.product import Site
from bench.wire import Answer, parse

SLOTS = 64
RUNNERS = 8
"""As one would have them: each with some slots, behind one holder."""
WAIT_MS = 200
UNBOUNDED = ("--busy-at", "0", "--max-waiting-agent", "0", "--max-waiting-workspace", "0")


class SextonHttp(Adapter):
    title = "Sexton, HTTP"
    does_not = (
        "runs one event of an agent at a time: there are no more leases than agents",
        "has a term of 30 s, which cannot be chosen",
    )
    packages = ("sexton",)
    fixed_term_s = 30.0
    agents = 64
    """One event of an agent runs at a time, so this is how many leases there can be at once."""

    def service(self, dsn: str, folder: Path) -> list[str]:
        words = ["up", "--data", str(folder / "data"), "--port", "0", "--runners", "0", "--database-url", dsn]
        return [
            sys.executable,
            "-m",
            "sexton_cli.main",
            *words,
            "--ready-file",
            str(folder / "ready"),
            *UNBOUNDED,
        ]

    def ready(self, folder: Path) -> dict[str, Any] | None:
        if not (folder / "ready").exists():
            return None
        told: dict[str, Any] = orjson.loads((folder / "ready").read_bytes())
        host, _, port = told["base_url"].rpartition("/")[2].rpartition(":")
        names = ("tenant_id", "workspace_id", "api_key", "admin_token")
        return {"address": [host, int(port)], "site": [told[name] for name in names]}

    async def setup(self, place: Place) -> dict[str, Any]:
        self._connect(place)
        await self.call(product.credit(self.site, 10**15))
        await self.call(product.keep_secret(self.site))
        made = [await self.call(product.create_agent(self.site, f"bench-{n}")) for n in range(self.agents)]
        return {"agents": [one["zombie_id"] for one in made]}

    def _connect(self, place: Place) -> None:
        self.site = Site(tuple(place.facts["address"]), *place.facts["site"])
        self.idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def open(self, place: Place) -> None:
        self._connect(place)
        self.tokens = itertools.cycle([await self._enrol(f"{place.holder}-{n}") for n in range(RUNNERS)])
        signed = [product.delivery(self.site, agent, product.payload()) for agent in place.facts["agents"]]
        signed = signed[place.first :] + signed[: place.first]
        self.deliveries = itertools.cycle(signed)

    async def _enrol(self, name: str) -> str:
        minted = await self.call(product.mint_enrolment(self.site))
        enrolled = await self.call(product.enrol(self.site, minted["token"], name, SLOTS))
        return str(enrolled["runner_token"])

    async def ask(self, data: bytes) -> Answer:
        """Send a request over a connection that is idle, or over a new one."""
        reader, writer = self.idle.pop() if self.idle else await asyncio.open_connection(*self.site.address)
        try:
            writer.write(data)
            buffer = bytearray()
            while (whole := parse(buffer)) is None:
                if not (more := await reader.read(262_144)):
                    raise ConnectionError("the server hung up")  # noqa: TRY301 -- closed below, as all that fails
                buffer += more
        except BaseException:
            writer.close()
            raise
        self.idle.append((reader, writer))
        return Answer(whole[0], whole[1], 0, 0)

    async def call(self, data: bytes) -> Any:
        answer = await self.ask(data)
        assert answer.status < 400, (answer.status, answer.body)
        return answer.json()

    async def fill(self, jobs: int) -> None:
        left = iter(range(jobs))

        async def send() -> None:
            for _ in left:
                await self.call(next(self.deliveries).with_id(str(uuid4())))

        await asyncio.gather(*(send() for _ in range(32)))

    async def claim(self, most: int) -> list[Lease]:
        token = next(self.tokens)
        answer = await self.call(product.poll(self.site, token, most=min(64, most), wait_ms=WAIT_MS))
        return [Lease(one.event_id, one.fencing_token, one) for one in product.held(token, answer)]

    async def renew(self, leases: Sequence[Lease]) -> list[bool]:
        return [(await self._write(product.renew(self.site, one.handle))) for one in leases]

    async def report(self, leases: Sequence[Lease]) -> list[bool]:
        return [(await self._write(product.report(self.site, one.handle))) for one in leases]

    async def _write(self, data: bytes) -> bool:
        answer = await self.ask(data)
        if answer.status >= 500:
            raise ConnectionError(f"the server answered {answer.status}")
        return answer.status == 200

    async def close(self) -> None:
        for _, writer in self.idle:
            writer.close()
