"""A server that is killed under load has lost nothing it had accepted, and bills nothing twice."""

import hashlib
import hmac
import random
import uuid
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import orjson
import pytest
import trio

from tests.thorough import amount
from tests.worlds.server_process import ServerProcess, open_server

SECRET = "a secret that signs"
SENDERS = 12
REPEATS = 0.1
DELIVERIES_BEFORE_THE_KILL = amount(40, 150, variable="SEXTON_DELIVERIES")
SETTLED_S = 180

SKILL = """---
name: counter
description: Counts what it is given.
version: 1.0.0
---
```sh
cat >/dev/null
echo '{"counted": 1}'
```
"""
TRIGGER = """---
name: counter
runtime: command
triggers:
  - type: webhook
    source: github
    signature:
      secret_ref: github
---
"""


class Api:
    """The calls this test makes."""

    def __init__(self, server: ServerProcess, http: httpx2.AsyncClient) -> None:
        self._http = http
        self._workspace = f"/v1/workspaces/{server.ready['workspace_id']}"
        self._headers = {"authorization": f"Bearer {server.ready['api_key']}"}

    async def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        answer = await self._http.post(self._workspace + path, json=body, headers=self._headers)
        assert answer.status_code in (201, 202), answer.text
        return dict(answer.json())

    async def get(self, path: str) -> dict[str, Any]:
        answer = await self._http.get(path, headers=self._headers)
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    async def history(self) -> AsyncIterator[dict[str, Any]]:
        cursor = ""
        while True:
            page = await self.get(f"{self._workspace}/events?limit=200{cursor}")
            for item in page["items"]:
                yield item
            if page["next_cursor"] is None:
                return
            cursor = f"&cursor={page['next_cursor']}"

    async def deliver(self, zombie_id: str, delivery: str) -> httpx2.Response:
        body = orjson.dumps({"action": "opened", "delivery": delivery})
        digest = hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()
        headers = {
            "x-github-event": "issues",
            "x-github-delivery": delivery,
            "x-hub-signature-256": f"sha256={digest}",
            "content-type": "application/json",
        }
        return await self._http.post(f"/v1/webhooks/{zombie_id}/github", content=body, headers=headers)


class Load:
    """Senders who post until the server goes away, and remember what they were told."""

    def __init__(self, api: Api, zombie_id: str, seed: int) -> None:
        self._api = api
        self._zombie_id = zombie_id
        self._random = random.Random(seed)
        self.sent: list[str] = []
        self.accepted: dict[str, str] = {}
        self.enough = trio.Event()

    async def send(self) -> None:
        while True:
            repeat = self.sent and self._random.random() < REPEATS
            delivery = self._random.choice(self.sent) if repeat else str(uuid.uuid4())
            self.sent.append(delivery)
            try:
                answer = await self._api.deliver(self._zombie_id, delivery)
            except httpx2.HTTPError:
                return
            self.note(delivery, answer)

    def note(self, delivery: str, answer: httpx2.Response) -> None:
        if answer.status_code in (200, 202):
            event_id = answer.json()["event_id"]
            assert self.accepted.setdefault(delivery, event_id) == event_id, "one delivery, two events"
        if len(self.accepted) >= DELIVERIES_BEFORE_THE_KILL:
            self.enough.set()


@pytest.mark.parametrize("seed", [1])
async def test_a_server_killed_under_load_keeps_every_accepted_webhook_once_and_every_cent(
    tmp_path: Path, seed: int
) -> None:
    async with open_server(tmp_path, "--port", "0", "--runners", "1") as server:
        async with httpx2.AsyncClient(base_url=server.ready["base_url"], timeout=30) as http:
            api = Api(server, http)
            await api.post("/credentials", {"name": "github", "data": {"webhook_secret": SECRET}})
            agent = await api.post("/zombies", {"source_markdown": SKILL, "trigger_markdown": TRIGGER})
            zombie_id = agent["zombie_id"]
            before = (await api.get("/v1/tenants/me/billing"))["balance_nanos"]
            load = Load(api, zombie_id, seed)
            async with trio.open_nursery() as nursery:
                for _ in range(SENDERS):
                    nursery.start_soon(load.send)
                await load.enough.wait()
                server.kill()
        await server.start()
        async with httpx2.AsyncClient(base_url=server.ready["base_url"], timeout=30) as http:
            api = Api(server, http)
            await _every_accepted_one_is_there_once(api, load)
            for delivery in dict.fromkeys(load.sent):
                load.note(delivery, await api.deliver(zombie_id, delivery))
            await _every_accepted_one_is_there_once(api, load)
            assert set(load.accepted) == set(load.sent)

            await _all_are_processed(api, len(load.accepted))
            charged = await _sum_of_metering(api, load)
            after = (await api.get("/v1/tenants/me/billing"))["balance_nanos"]
            assert charged == before - after
            assert charged > 0


async def _every_accepted_one_is_there_once(api: Api, load: Load) -> None:
    events = [event async for event in api.history()]
    by_id = Counter(event["event_id"] for event in events)
    by_delivery = Counter(event["source_event_id"] for event in events)
    assert {by_id[event_id] for event_id in load.accepted.values()} == {1}
    assert set(by_delivery.values()) == {1}


async def _all_are_processed(api: Api, count: int) -> None:
    with trio.fail_after(SETTLED_S):
        while True:
            statuses = Counter([event["status"] async for event in api.history()])
            if statuses == {"processed": count}:
                return
            assert not statuses.keys() - {"received", "running", "processed"}, statuses
            await trio.sleep(0.5)


async def _sum_of_metering(api: Api, load: Load) -> int:
    total = 0
    for event_id in load.accepted.values():
        rows = await api.get(f"/v1/tenants/me/billing/charges/{event_id}/metering-periods")
        total += sum(row["charged_nanos"] for row in rows["items"])
    return total
