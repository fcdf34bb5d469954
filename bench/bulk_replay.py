"""How fast a bulk job replays, over a ``kill -9`` too, and how fast failures are shown.

Each event is replayed once, whatever is killed: that is asserted.
``BENCH_EVENTS=50000 BENCH_AGENTS=50 python -m bench.bulk_replay``.
"""

import asyncio
import os
import signal
import sys
from collections import Counter
from pathlib import Path
from time import perf_counter
from typing import Any, Final

import asyncpg
import trio

sys.path.insert(0, str(Path(__file__).parents[1]))  # so that the file also runs by itself

from bench import harness, machine, server
from bench.load import Client, open_client
from bench.product import Site

EVENTS: Final = harness.size("EVENTS", 50_000)
AGENTS: Final = harness.size("AGENTS", 50)
LOOKS: Final = 20
OVER: Final = frozenset({"done", "stopped", "failed"})
LIMIT_S: Final = 600
# As if runs had failed: what follows a status by trigger is there too.
SEED: Final = """
INSERT INTO events (id, zombie_id, workspace_id, tenant_id, actor, event_type, status, request_json,
                    created_at, updated_at)
SELECT gen_random_uuid(), z.id, z.workspace_id, z.tenant_id, 'steer:bench', 'message', 'running',
       '{"message": "number ' || n || '"}', 1000000 + n, 1000000 + n
  FROM generate_series(1, $1) n JOIN (SELECT *, row_number() OVER (ORDER BY id) - 1 AS place FROM zombies) z
    ON z.place = n % $2
"""
FAIL: Final = """
UPDATE events SET status = 'agent_error', failure_label = 'agent_run', error_code = 'UZ-EXEC-013',
                  completed_at = created_at,
                  response_text = 'step ' || (arrival % 7) || ' failed after ' || arrival || ' ms'
 WHERE status = 'running' AND actor = 'steer:bench'
"""


async def _sql(dsn: str, query: str, *args: Any) -> list[Any]:
    async def run() -> list[Any]:
        connection = await asyncpg.connect(dsn)
        try:
            return list(await connection.fetch(query, *args, timeout=LIMIT_S))
        finally:
            await connection.close()

    return await trio.to_thread.run_sync(lambda: asyncio.run(run()))


class Run:
    """One server with many failed events."""

    def __init__(self, client: Client, process: server.Server, site: Site) -> None:
        self._client = client
        self._process = process
        self.site = site

    async def seed(self) -> None:
        await server.make_agents(self._client, self.site, AGENTS)
        await _sql(self._process.database_url(), SEED, EVENTS, AGENTS)
        await _sql(self._process.database_url(), FAIL)
        await _sql(self._process.database_url(), "ANALYZE")

    async def grouped(self) -> None:
        """Wait until each failure is in its group."""
        query = "SELECT count(*) FROM failure_events WHERE group_id IS NULL"
        while True:
            if not (await _sql(self._process.database_url(), query))[0][0]:
                return
            await trio.sleep(0.2)

    async def failures_ms(self) -> list[float]:
        request = self.site.get(f"/v1/workspaces/{self.site.workspace_id}/failures?limit=100")
        took = []
        for _ in range(LOOKS):
            began = perf_counter()
            await self._client.call(self.site.address, request)
            took.append(1000 * (perf_counter() - began))
        return took

    async def begin(self) -> str:
        path = f"/v1/workspaces/{self.site.workspace_id}/events:replay"
        made = await self._client.call(
            self.site.address, self.site.post(path, {"filter": "status:agent_error"})
        )
        return str(made["job"]["job_id"])

    async def job(self, job_id: str) -> dict[str, Any]:
        path = f"/v1/workspaces/{self.site.workspace_id}/jobs/{job_id}"
        return dict(await self._client.call(self.site.address, self.site.get(path)))

    async def until_over(self, job_id: str) -> dict[str, Any]:
        with trio.fail_after(LIMIT_S):
            while True:
                found = await self.job(job_id)
                if found["status"] in OVER:
                    return found
                await trio.sleep(0.1)

    async def replays(self) -> Counter[Any]:
        """How often each event was replayed."""
        query = "SELECT resumes_event_id FROM events WHERE resumes_event_id IS NOT NULL"
        return Counter(row[0] for row in await _sql(self._process.database_url(), query))


async def _whole(client: Client, process: server.Server) -> tuple[dict[str, Any], float, list[float]]:
    run = Run(client, process, await process.start(*server.UNHURRIED))
    await run.seed()
    await run.grouped()
    shown_ms = await run.failures_ms()
    began = perf_counter()
    found = await run.until_over(await run.begin())
    rate = EVENTS / (perf_counter() - began)
    assert found["done"] == EVENTS, found
    return machine.describe_with(process.database_url()), rate, shown_ms


async def _killed(client: Client, process: server.Server) -> float:
    site = await process.start(*server.UNHURRIED)
    run = Run(client, process, site)
    await run.seed()
    began = perf_counter()
    job_id = await run.begin()
    while True:
        if (await run.job(job_id))["done"] >= EVENTS // 3:
            break
        await trio.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    again = await process.start(*server.UNHURRIED)
    run.site = again._replace(api_key=site.api_key)
    found = await run.until_over(job_id)
    took_s = perf_counter() - began
    assert (found["done"], found["skipped"], found["failed"]) == (EVENTS, 0, 0), found
    replays = await run.replays()
    assert (len(replays), max(replays.values())) == (EVENTS, 1), (len(replays), max(replays.values()))
    return took_s


async def measure() -> dict[str, Any]:
    with open_client() as client:
        async with server.open_folder() as process:
            about, rate, shown_ms = await _whole(client, process)
        async with server.open_folder() as process:
            killed_s = await _killed(client, process)
    spread = harness.Spread.of
    return harness.report(
        "bulk_replay",
        about,
        [
            harness.Figure(
                f"{EVENTS} events of {AGENTS} agents replayed",
                spread([rate]),
                "a second",
                budgets=(harness.at_least(2_000, "a second"),),
            ),
            harness.Figure("the same over a kill -9, each once", spread([killed_s]), "s"),
            harness.Figure("failures shown", spread(shown_ms), "ms", budgets=(harness.at_most(100, "ms"),)),
        ],
    )


def run() -> dict[str, Any]:
    return trio.run(measure)


if __name__ == "__main__":
    print(harness.line(run()))
