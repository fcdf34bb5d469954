"""A server that is killed while agents are trusted with things has kept every word that it gave."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

import httpx2
import trio

from tests.worlds.samples import YEARLY, agent_files
from tests.worlds.server_process import ServerProcess, open_server

WORDS_BEFORE_THE_KILL = 40
"""Of each kind that the server has answered."""


class Site:
    """The calls this test makes, on one life of the server."""

    def __init__(self, server: ServerProcess, http: httpx2.AsyncClient) -> None:
        self._http = http
        self.workspace = f"/v1/workspaces/{server.ready['workspace_id']}"
        self._key: str = server.ready["api_key"]
        self.admin: str = server.ready["admin_token"]

    async def call(self, method: str, path: str, body: Any = None, token: str = "") -> httpx2.Response:
        headers = {"authorization": f"Bearer {token or self._key}"}
        return await self._http.request(method, path, json=body, headers=headers)

    async def made(self, path: str, body: Any, token: str = "", status: int = 201) -> dict[str, Any]:
        answer = await self.call("POST", path, body, token)
        assert answer.status_code == status, answer.text
        return dict(answer.json())


@asynccontextmanager
async def visiting(server: ServerProcess) -> AsyncIterator[Site]:
    async with httpx2.AsyncClient(base_url=server.ready["base_url"], timeout=30) as http:
        yield Site(server, http)


class Trust:
    """Two who work until the server goes away, and remember what they were told."""

    def __init__(self, site: Site, zombie_id: str, key: str, runner: str, lease: dict[str, Any]) -> None:
        self._site = site
        self._agent = f"{site.workspace}/zombies/{zombie_id}"
        self._memory = f"/v1/runners/me/memory/{zombie_id}"
        self._key = key
        self._runner = runner
        self._fence = {name: lease[name] for name in ("lease_id", "fencing_token")}
        self.grants: dict[str, str] = {}
        """Service to the status that was answered last."""
        self.remembered: dict[str, str] = {}
        self.words = 0
        self.enough = trio.Event()

    async def ask(self) -> None:
        """Ask with the agent's key, approve, revoke, and ask again, over a few services."""
        for turn in count():
            service = f"s{turn % 5}"
            body = {"service": service, "reason": f"turn {turn}"}
            path = f"{self._agent}/integration-requests"
            answer = await self._said("POST", path, body, self._key)
            if answer is None:
                return
            self.grants[service] = answer["status"]
            for status in ("approved", "revoked")[: turn % 3]:
                one = f"{self._agent}/integration-grants/{answer['grant_id']}"
                decided = await self._said("PATCH", one, {"status": status}, "")
                if decided is None:
                    return
                self.grants[service] = decided["status"]

    async def remember(self) -> None:
        for turn in count():
            entry = {"key": f"k{turn % 20}", "content": f"turn {turn}", "category": "core"}
            if await self._said("POST", self._memory, {**self._fence, **entry}, self._runner) is None:
                return
            self.remembered[entry["key"]] = entry["content"]

    async def _said(self, method: str, path: str, body: Any, token: str) -> dict[str, Any] | None:
        """The answer; None when there is no server any more."""
        try:
            answer = await self._site.call(method, path, body, token)
        except httpx2.HTTPError:
            return None
        assert answer.is_success, answer.text
        self.words += 1
        if self.words >= 2 * WORDS_BEFORE_THE_KILL:
            self.enough.set()
        return dict(answer.json())


async def settle(site: Site) -> tuple[str, str, str, dict[str, Any]]:
    """An agent, its key, a runner, and the runner's lease on the agent's first event."""
    files = agent_files("keeper", trigger=YEARLY)
    zombie_id = (await site.made(f"{site.workspace}/zombies", files))["zombie_id"]
    key = await site.made(f"{site.workspace}/agent-keys", {"zombie_id": zombie_id, "name": "outside"})
    token = (await site.made("/v1/fleet/enrolment-tokens", {}, site.admin))["token"]
    host = {"host_id": "by-hand", "sandbox_tier": "bubblewrap"}
    runner = (await site.made("/v1/runners", host, token))["runner_token"]
    await site.made(f"{site.workspace}/zombies/{zombie_id}/messages", {"message": "begin"}, status=202)
    polled = await site.made("/v1/runners/me/leases", {"wait_ms": 10_000}, runner, 200)
    return zombie_id, key["key"], runner, polled["lease"]


async def test_every_word_about_trust_outlives_a_kill(tmp_path: Path) -> None:
    async with open_server(tmp_path, "--port", "0", "--runners", "0") as server:
        async with visiting(server) as site:
            zombie_id, key, runner, lease = await settle(site)
            trust = Trust(site, zombie_id, key, runner, lease)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(trust.ask)
                nursery.start_soon(trust.remember)
                await trust.enough.wait()
                server.kill()
        await server.start()
        async with visiting(server) as site:
            await the_grants_are_as_they_were_told(site, zombie_id, trust)
            await what_was_kept_is_remembered(site, zombie_id, key, trust)


async def the_grants_are_as_they_were_told(site: Site, zombie_id: str, trust: Trust) -> None:
    answer = await site.call("GET", f"{site.workspace}/zombies/{zombie_id}/integration-grants")
    kept = {item["service"]: item["status"] for item in answer.json()["items"]}
    assert len(answer.json()["items"]) == len(kept), "one grant a service"
    # The one word that was under way when the server was killed may be kept, too, though nobody was told.
    moved = {service for service, status in kept.items() if trust.grants.get(service) != status}
    assert len(moved) <= 1, (kept, trust.grants)
    assert trust.grants.keys() <= kept.keys()


async def what_was_kept_is_remembered(site: Site, zombie_id: str, key: str, trust: Trust) -> None:
    path = f"{site.workspace}/zombies/{zombie_id}/memories?limit=200"
    shown = await site.call("GET", path, token=key)
    kept = {item["key"]: item["content"] for item in shown.json()["items"]}
    moved = {name for name, content in kept.items() if trust.remembered.get(name) != content}
    assert len(moved) <= 1, (kept, trust.remembered)
    assert trust.remembered.keys() <= kept.keys()
