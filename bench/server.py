"""Starts the product as its user does, ``sexton up``, on an empty folder and a free port."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import orjson
import trio

from bench.load import Client
from bench.machine import plain_environment
from bench.product import (
    Delivery,
    Held,
    Site,
    create_agent,
    credit,
    delivery,
    enrol,
    held,
    keep_secret,
    mint_enrolment,
    poll,
)

PYTHON = os.environ.get("BENCH_SERVER_PYTHON", sys.executable)
"""The interpreter that the server runs on: another one's environment may hold another release of it."""
READY_S = 60.0
POLL_S = 0.002
STOP_S = 30.0
LEASES_A_POLL = 64
UNHURRIED = ("--busy-at", "0")
"""For benchmarks of what a server can take in: it is not to hold any of it back."""
PURSE_NANOS = 10**15
"""A million dollars; a lease costs a few a day."""


class Server:
    """One server process and its folder, over as many lives as a benchmark needs."""

    def __init__(self, folder: Path, python: str = PYTHON) -> None:
        self.folder = folder
        self._python = python
        self._process: subprocess.Popen[bytes] | None = None

    async def start(self, *options: str) -> Site:
        """Start it and wait until it says that it is ready; raises AssertionError with its last words."""
        ready_file = self.folder / "ready.json"
        ready_file.unlink(missing_ok=True)
        self._process = self._spawn(ready_file, options)
        until = time.monotonic() + READY_S
        while not ready_file.exists():
            assert self._process.poll() is None, f"the server ended: {self.last_words()}"
            assert time.monotonic() < until, f"the server is not ready: {self.last_words()}"
            await trio.sleep(POLL_S)
        return _site(orjson.loads(ready_file.read_bytes()))

    def _spawn(self, ready_file: Path, options: Sequence[str]) -> subprocess.Popen[bytes]:
        words = ["up", "--data", str(self.folder / "data"), "--port", "0", "--runners", "0", *options]
        with (self.folder / "server.log").open("ab") as log:
            return subprocess.Popen(
                [self._python, "-m", "sexton_cli.main", *words, "--ready-file", str(ready_file)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env={name: v for name, v in plain_environment().items() if not name.startswith("SEXTON_")},
            )

    async def stop(self) -> None:
        """Gently; after a while, not."""
        process, self._process = self._process, None
        if process is None or process.poll() is not None:
            return
        process.send_signal(signal.SIGTERM)
        with trio.move_on_after(STOP_S):
            await trio.to_thread.run_sync(process.wait, abandon_on_cancel=True)
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    @property
    def pid(self) -> int:
        """The memory of the server's process; its database is another."""
        assert self._process is not None
        return self._process.pid

    def last_words(self) -> str:
        return (self.folder / "server.log").read_text(errors="replace")[-3000:]

    def database_url(self) -> str:
        """The embedded database's own socket, for looking at it."""
        found = sorted(self.folder.rglob(".s.PGSQL.*[0-9]"))
        assert found, "the embedded database has no socket in the server's folder"
        socket = found[0]
        port = socket.name.rpartition(".")[2]
        return f"postgresql:///sexton?host={socket.parent}&port={port}&user=sexton"


def _site(ready: dict[str, Any]) -> Site:
    url = urlsplit(ready["base_url"])
    assert url.hostname is not None
    assert url.port is not None
    names = ("tenant_id", "workspace_id", "api_key", "admin_token")
    return Site((url.hostname, url.port), *(ready[name] for name in names))


@asynccontextmanager
async def open_folder(python: str = PYTHON) -> AsyncIterator[Server]:
    """A server that is not started yet, and nothing of it left at the end."""
    folder = Path(tempfile.mkdtemp(prefix="sexton-bench-"))
    server = Server(folder, python)
    try:
        yield server
    finally:
        with trio.CancelScope(shield=True):
            await server.stop()
        shutil.rmtree(folder, ignore_errors=True)


# --- filling it ---------------------------------------------------------------------------------------------


async def make_agents(client: Client, site: Site, count: int) -> list[str]:
    """Install that many agents that sleep until a signed webhook comes; give their ids."""
    await client.call(site.address, keep_secret(site))
    requests = [create_agent(site, f"bench-{number}") for number in range(count)]
    return [made["zombie_id"] for made in await client.call_all(site.address, requests)]


async def make_runners(client: Client, site: Site, count: int, slots: int) -> list[str]:
    """Enrol that many runners; give their tokens."""
    minted = await client.call_all(site.address, [mint_enrolment(site)] * count)
    requests = [enrol(site, one["token"], f"bench-{n}", slots) for n, one in enumerate(minted)]
    return [made["runner_token"] for made in await client.call_all(site.address, requests)]


async def wake(client: Client, site: Site, deliveries: Sequence[Delivery], times: int) -> list[str]:
    """Send each delivery that many times under new ids; give the ids of the events."""
    requests = [one.with_id(f"fill-{n}-{i}") for n in range(times) for i, one in enumerate(deliveries)]
    return [answer["event_id"] for answer in await client.call_all(site.address, requests)]


async def lease_all(client: Client, site: Site, token: str, count: int) -> list[Held]:
    """Take that many leases for one runner."""
    taken: list[Held] = []
    while len(taken) < count:
        most = min(LEASES_A_POLL, count - len(taken))
        answer = await client.call(site.address, poll(site, token, most=most, wait_ms=5000))
        assert answer["leases"], f"only {len(taken)} of {count} leases were given"
        taken += held(token, answer)
    return taken


def deliveries_of(site: Site, agents: Sequence[str], payload: dict[str, Any]) -> list[Delivery]:
    return [delivery(site, zombie_id, payload) for zombie_id in agents]


async def fill_purse(client: Client, site: Site) -> int:
    """Give the tenant more than a run can use up; answers its balance then."""
    await client.call(site.address, credit(site, PURSE_NANOS))
    return await balance(client, site)


async def balance(client: Client, site: Site) -> int:
    return int((await client.call(site.address, site.get("/v1/tenants/me/billing")))["balance_nanos"])


async def metering(client: Client, site: Site, events: Sequence[str]) -> tuple[int, int]:
    """How many rows these events have, and their sum, as the tenant is shown them."""
    paths = [f"/v1/tenants/me/billing/charges/{event_id}/metering-periods" for event_id in events]
    rows = [
        row
        for page in await client.call_all(site.address, [site.get(p) for p in paths])
        for row in page["items"]
    ]
    return len(rows), sum(row["charged_nanos"] for row in rows)


async def history(client: Client, site: Site) -> list[dict[str, Any]]:
    """All events of the workspace, page by page."""
    items: list[dict[str, Any]] = []
    cursor = ""
    while True:
        page = await client.call(site.address, site.get(f"{site.workspace}/events?limit=200{cursor}"))
        items += page["items"]
        if page["next_cursor"] is None:
            return items
        cursor = f"&cursor={page['next_cursor']}"
