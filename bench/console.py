"""What pages of the console take among 100,000 events of 10,000 agents, and what 200 open ones cost.

The server is ``sexton up``; agents and events are written by SQL. Each page is asked for as a browser does,
one after the other. Then many browsers keep a page open: they hear of changes and ask for its parts again,
while nothing happens and while ten events a second come.
"""

import json
import re
import secrets
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from time import perf_counter
from urllib.parse import urlsplit

import httpx2
import trio

sys.path.insert(0, str(Path(__file__).parents[1]))  # so that the file also runs by itself

from bench import console_by_hand, harness, machine
from bench.load import open_client
from bench.product import Site
from bench.server import PYTHON, UNHURRIED, Server, make_agents, open_folder

PLACES = (
    *("now", "events", "events?status=agent_error", "events?q=agent:a-17", "approvals", "agents"),
    *("failures", "jobs", "webhooks", "schedules", "credentials", "models", "fleet", "tree", "money"),
    *("audit", "settings"),
)
AGENTS = harness.size("CONSOLE_AGENTS", 10_000)
EVENTS = harness.size("CONSOLE_EVENTS", 100_000)
BEGAN = re.compile(r'data-began="(\d+)"')
ROUNDS = 5
CONSOLES = harness.size("CONSOLES", 200)
WATCHED_S = harness.size("CONSOLE_SECONDS", 12)
EVENTS_A_SECOND = 10
SETTLE_S = 4.0
SETTLED_AFTER_S = harness.size("CONSOLE_SETTLE", 30)
QUIET_SHARE = 0.06
"""Less of a core than this is a server that has nothing to do."""
MOST_MS, MOST_KB, MOST_PERCENT = 200, 100, 5
PERCENT = 100


@asynccontextmanager
async def open_browser(server: Server, site: Site) -> AsyncIterator[httpx2.AsyncClient]:
    """Signed in as the first admin."""
    data = ["--data", str(server.folder / "data")]
    command = [PYTHON, "-m", "sexton_cli.main", "sign-in-link", *data]
    done = await trio.run_process(command, capture_stdout=True, capture_stderr=True)
    link = urlsplit(done.stdout.decode().strip())
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=None)
    async with httpx2.AsyncClient(
        base_url=f"http://{site.host}", timeout=60, limits=limits, headers={"accept": "text/html"}
    ) as client:
        answer = await client.post(
            f"{link.path}?{link.query}", headers={"sec-fetch-site": "same-origin"}, follow_redirects=False
        )
        assert answer.status_code == httpx2.codes.SEE_OTHER, answer.text
        yield client


async def pages(client: httpx2.AsyncClient, site: Site) -> list[harness.Figure]:
    figures = []
    for place in PLACES:
        samples, size = [], 0
        for _ in range(ROUNDS + 1):
            began = perf_counter()
            answer = await client.get(f"/console/{site.workspace_id}/{place}")
            samples.append((perf_counter() - began) * 1000)
            assert answer.status_code == httpx2.codes.OK, f"{place}: {answer.status_code}"
            size = len(answer.content)
        time_of = harness.Spread.of(samples[1:])
        figures += [
            harness.Figure(place, time_of, "ms", budgets=(harness.at_most(MOST_MS, "ms"),)),
            harness.Figure(
                f"{place}: bytes",
                harness.once(size / 1000),
                "kB",
                budgets=(harness.at_most(MOST_KB, "kB"),),
            ),
        ]
    return figures


async def keep_open(client: httpx2.AsyncClient, site: Site, began: str, asked: list[int]) -> None:
    """As the script of a page does: hear of a change, and ask for the page's parts as of then.

    ``began`` says when the page was made that it shows at first.
    """
    here = f"/console/{site.workspace_id}"
    async with client.stream("GET", f"{here}/changes") as stream:
        assert stream.status_code == httpx2.codes.OK, stream.status_code
        place = ""
        async for line in stream.aiter_lines():
            name, _, value = line.partition(": ")
            if name == "id":
                place = value
            elif name == "data" and "within_ms" in (told := json.loads(value)):
                within_s = told["within_ms"] / 1000
                await trio.sleep(within_s * secrets.randbelow(1000) / 1000)
                headers = {"sexton-as-of": place, "sexton-shown": began}
                answer = await client.get(f"{here}/now", headers=headers)
                if answer.status_code == httpx2.codes.SERVICE_UNAVAILABLE:
                    continue  # All are one person's, whose answers under way are bounded.
                assert answer.status_code == httpx2.codes.OK, answer.text
                [began] = BEGAN.findall(answer.text)
                asked.append(len(answer.content))


async def steer(client: httpx2.AsyncClient, site: Site) -> None:
    """Wake agents at a rate; nobody runs them."""
    path = f"/v1{site.workspace.removeprefix('/v1')}/zombies"
    agents = [row["zombie_id"] for row in (await call(client, site, f"{path}?limit=50"))["items"]]
    number = 0
    while True:
        agent = agents[number % len(agents)]
        headers = {"authorization": f"Bearer {site.api_key}"}
        await client.post(f"{path}/{agent}/messages", json={"message": "Look."}, headers=headers)
        number += 1
        await trio.sleep(1 / EVENTS_A_SECOND)


async def call(client: httpx2.AsyncClient, site: Site, path: str) -> dict[str, list[dict[str, str]]]:
    headers = {"authorization": f"Bearer {site.api_key}", "accept": "application/json"}
    answer: dict[str, list[dict[str, str]]] = (await client.get(path, headers=headers)).json()
    return answer


async def spent(server: Server, asked: list[int]) -> tuple[float, float]:
    """The share of a core in percent, and how many parts were asked for a second."""
    before, count, began = machine.processor_s(server.pid), len(asked), perf_counter()
    await trio.sleep(WATCHED_S)
    took = perf_counter() - began
    return PERCENT * (machine.processor_s(server.pid) - before) / took, (len(asked) - count) / took


async def settle(server: Server) -> None:
    """Wait until the server has looked at all that was written beside it, for a bounded time."""
    until = perf_counter() + SETTLED_AFTER_S
    while perf_counter() < until:
        before = machine.processor_s(server.pid)
        await trio.sleep(SETTLE_S)
        if machine.processor_s(server.pid) - before < SETTLE_S * QUIET_SHARE:
            return


async def consoles(server: Server, client: httpx2.AsyncClient, site: Site) -> list[harness.Figure]:
    asked: list[int] = []
    alone, _ = await spent(server, asked)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(steer, client, site)
        await trio.sleep(1)
        events, _ = await spent(server, asked)
        nursery.cancel_scope.cancel()
    opened = await client.get(f"/console/{site.workspace_id}/now")
    [began] = BEGAN.findall(opened.text)
    async with trio.open_nursery() as nursery:
        for _ in range(CONSOLES):
            nursery.start_soon(keep_open, client, site, began, asked)
            await trio.sleep(0.01)
        harness.tell(f"{CONSOLES} pages open")
        await trio.sleep(2 * SETTLE_S)
        memory = machine.resident_bytes(server.pid)
        quiet, _ = await spent(server, asked)
        nursery.start_soon(steer, client, site)
        await trio.sleep(1)
        busy, rate = await spent(server, asked)
        grown = machine.resident_bytes(server.pid) - memory
        nursery.cancel_scope.cancel()
    bound = (harness.at_most(MOST_PERCENT, "% of a core"),)
    once = harness.once
    return [
        harness.Figure("nobody looks", once(alone), "% of a core"),
        harness.Figure(f"{EVENTS_A_SECOND} events a second, nobody looks", once(events), "% of a core"),
        harness.Figure(f"{CONSOLES} open pages add", once(quiet - alone), "% of a core", budgets=bound),
        harness.Figure(
            f"{CONSOLES} open pages add while events come", once(busy - events), "% of a core", budgets=bound
        ),
        harness.Figure("parts asked for meanwhile", once(rate), "a second"),
        harness.Figure("resident memory meanwhile", once(grown / 2**20), "MiB more"),
    ]


async def main() -> None:
    async with open_folder() as server:
        site = await server.start(*UNHURRIED)
        with open_client() as begun:
            [first] = await make_agents(begun, site, 1)
        harness.tell(f"writing {EVENTS:,} events of {AGENTS:,} agents")
        url, began = server.database_url(), perf_counter()
        write = partial(console_by_hand.plant, url, first, agents=AGENTS, events=EVENTS)
        await trio.to_thread.run_sync(write)
        written = harness.Figure("rows written", harness.once(perf_counter() - began), "s")
        await settle(server)
        async with open_browser(server, site) as client:
            try:
                figures = [written, *await pages(client, site), *await consoles(server, client, site)]
            except AssertionError:
                harness.tell(server.last_words())
                raise
        about = machine.describe_with(server.database_url())
    print(harness.line(harness.report("console", about, figures)))


if __name__ == "__main__":
    try:
        trio.run(main)
    except* subprocess.CalledProcessError as group:
        raise SystemExit(str(group.exceptions[0])) from None
