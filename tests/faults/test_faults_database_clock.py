"""The database's clock is set back by minutes, and put right again, while work is under way."""

import os
import shlex
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from sexton_storage.embedded import EmbeddedSettings, open_embedded_server, programs
from sexton_storage.postgres import open_postgres_storage
from tests.worlds.cluster_template import put_cluster
from tests.worlds.http import HttpWorld, open_http_world_on
from tests.worlds.http_agents import report, steer
from tests.worlds.wrong_clock import LIBRARY, Clock

BACK = "-120s"
AHEAD = "+60s"
"""More than the term of a lease."""
WITHIN_S = 30
USAGE = {"input_tokens": 1_000, "cached_input_tokens": 0, "output_tokens": 500}

pytestmark = pytest.mark.skipif(
    LIBRARY is None, reason="libfaketime is missing: install the package `faketime`"
)


class ClockWorld:
    """A server in this process, and a database whose clock can be set."""

    def __init__(self, world: HttpWorld, clock: Clock) -> None:
        self.world = world
        self._clock = clock

    async def set_clock(self, skew: str) -> None:
        """Set the database's clock, and wait until the server follows it."""
        self._clock.set(skew)
        wanted = float(skew.removesuffix("s")) * 1000
        with trio.fail_after(WITHIN_S):
            while abs(await self._database_ms() - real_ms() - wanted) > 20_000:
                await trio.sleep(0.05)
            while abs(self.world.actors_world.now_ms() - real_ms() - wanted) > 20_000:
                await self.world.get("/readyz", None)
                await trio.sleep(0.05)

    async def _database_ms(self) -> float:
        [[now]] = await self.world.storage.instance._rows(  # type: ignore[attr-defined]
            "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::float8"
        )
        return float(now)

    async def poll(self, runner: str, wait_ms: int = 500) -> dict[str, Any] | None:
        answer = await self.world.post("/v1/runners/me/leases", {"wait_ms": wait_ms}, runner)
        assert answer.status_code == 200, answer.text
        lease: dict[str, Any] | None = answer.json()["lease"]
        return lease

    async def until_leased(self, runner: str) -> dict[str, Any]:
        with trio.fail_after(WITHIN_S):
            while (lease := await self.poll(runner, 1_000)) is None:
                pass
        return lease

    async def renew(self, runner: str, lease: dict[str, Any]) -> None:
        answer = await self.world.post(f"/v1/runners/me/leases/{lease['lease_id']}/renew", USAGE, runner)
        assert answer.status_code == 200, answer.text

    async def slices(self, lease: dict[str, Any]) -> list[tuple[int, int]]:
        """Milliseconds and nanos of each slice of an event."""
        rows = await self.world.storage.metering.list(
            self.world.installation.tenant_id, lease["event"]["event_id"]
        )
        return [(row.run_ms, row.charged_nanos) for row in rows]


def real_ms() -> float:
    return time.time() * 1000


@pytest.fixture
async def stage(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ClockWorld]:
    # Whoever runs the database as root's other user must be able to read the file.
    with tempfile.TemporaryDirectory(prefix="sx") as folder:
        Path(folder).chmod(0o755)
        clock = Clock(Path(folder) / "clock")
        async with _open(Path(folder), clock, monkeypatch) as stage:
            yield stage


@asynccontextmanager
async def _open(folder: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ClockWorld]:
    await put_cluster(folder / "pg")
    wrapped = _programs(folder / "bin", clock)
    monkeypatch.setattr(programs, "find_bindir", lambda _: wrapped)
    async with (
        open_embedded_server(EmbeddedSettings(folder / "pg", server={"fsync": "off"})) as server,
        open_postgres_storage(server.dsn) as storage,
        open_http_world_on(storage) as world,
    ):
        yield ClockWorld(world, clock)


def _programs(folder: Path, clock: Clock) -> Path:
    """PostgreSQL's own, of which the server alone goes by this clock: what root begins could not share it."""
    real = programs.find_bindir(os.environ)
    folder.mkdir()
    for program in real.iterdir():
        (folder / program.name).symlink_to(program.resolve())
    server = folder / "postgres"
    server.unlink()
    settings = " ".join(f"{name}={shlex.quote(value)}" for name, value in clock.environment.items())
    server.write_text(f'#!/bin/sh\nexec env {settings} {shlex.quote(str(real / "postgres"))} "$@"\n')
    server.chmod(0o755)
    return folder


async def test_a_clock_set_back_gives_no_lease_twice_forgets_nothing_and_bills_nothing_negative(
    stage: ClockWorld,
) -> None:
    world = stage.world
    agent, other = await world.install("one"), await world.install("two")
    first, second = [await world.enrol(host) for host in ("first", "second")]
    said = [await steer(world, agent, f"message {number}") for number in range(2)]
    lost = await steer(world, other)
    leases = {
        lease["event"]["event_id"]: lease for lease in [await stage.until_leased(first) for _ in range(2)]
    }
    working, dying = leases[said[0]], leases[lost]
    await stage.renew(first, working)

    await stage.set_clock(BACK)
    await stage.renew(first, working)
    while_back = await stage.poll(second)
    said.append(await steer(world, agent, "message 2"))
    await report(world, first, working, **USAGE)
    done = [working["event"]["event_id"]]
    for _ in range(2):
        lease = await stage.until_leased(second)
        done.append(lease["event"]["event_id"])
        await stage.renew(second, lease)
        await report(world, second, lease, **USAGE)

    await stage.set_clock(AHEAD)
    again = await stage.until_leased(second)
    await report(world, second, again, **USAGE)
    left = await stage.poll(second)
    slices = [await stage.slices(lease) for lease in (working, dying)]

    assert while_back is None, "each agent's event is leased already"
    assert done == said, "in the order in which they were sent"
    assert again["event"]["event_id"] == lost, "whose runner is gone is given out again"
    assert again["fencing_token"] > dying["fencing_token"]
    assert left is None
    assert all(ms >= 0 and nanos >= 0 for rows in slices for ms, nanos in rows), slices
