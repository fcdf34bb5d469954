"""A server that is told to stop lets its runners finish while it still answers them."""

import os
import signal
from pathlib import Path
from typing import Any

import httpx2

from tests.worlds.event_stream import listening
from tests.worlds.runner import eventually, gone, processes_with
from tests.worlds.server_process import ServerProcess, open_server

SKILL = """---
name: sleeper
description: Sleeps, then is done.
version: 1.0.0
---
```sh
sleep {marker}
echo '{{"rested": true}}'
```
"""
TRIGGER = """---
name: sleeper
runtime: command
triggers:
  - type: webhook
    source: nobody
---
"""


class Api:
    """A person with a key, over the lives of a server."""

    def __init__(self, server: ServerProcess) -> None:
        self._server = server

    async def call(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        headers = {"authorization": f"Bearer {self._server.ready['api_key']}"}
        async with httpx2.AsyncClient(base_url=self._server.ready["base_url"], timeout=30) as http:
            answer = await http.request(method, path, json=body, headers=headers)
        assert answer.is_success, answer.text
        return dict(answer.json())

    @property
    def workspace(self) -> str:
        return f"/v1/workspaces/{self._server.ready['workspace_id']}"

    async def sleeper(self, marker: str) -> str:
        """Wake an agent and wait until its run sleeps in its sandbox; the id of the agent."""
        files = {"source_markdown": SKILL.format(marker=marker), "trigger_markdown": TRIGGER}
        zombie = (await self.call("POST", f"{self.workspace}/zombies", files))["zombie_id"]
        await self.call("POST", f"{self.workspace}/zombies/{zombie}/messages", {"message": "Sleep."})
        await eventually(lambda: processes_with(f"sleep\0{marker}"))
        return str(zombie)

    async def event(self, zombie: str) -> dict[str, Any]:
        (event,) = (await self.call("GET", f"{self.workspace}/zombies/{zombie}/events"))["items"]
        return dict(event)

    async def cause_of_the_first_reclaim(self, zombie: str) -> str:
        """Why a lease was taken back, from the agent's stream since its beginning."""
        path = f"{self.workspace}/zombies/{zombie}/events/stream"
        ready = self._server.ready
        async with listening(ready["base_url"], path, ready["api_key"], last_event_id="0") as stream:
            while True:
                frame = await stream.frame()
                if frame["kind"] == "lease_reclaimed":
                    return str(frame["cause"])

    async def balance(self) -> int:
        return int((await self.call("GET", "/v1/tenants/me/billing"))["balance_nanos"])


async def test_a_run_in_progress_is_finished_before_the_server_closes_its_doors(tmp_path: Path) -> None:
    marker = f"3.{os.getpid()}"
    async with open_server(tmp_path, "--port", "0", "--runners", "1") as server:
        api = Api(server)
        before = await api.balance()
        zombie = await api.sleeper(marker)

        assert await server.stop() == 0
        assert processes_with(f"sleep\0{marker}") == []

        log = (tmp_path / "data" / "runners" / "runner-1.log").read_text()
        await server.start()

        event = await api.event(zombie)
        assert (event["status"], event["attempts"]) == ("processed", 1), log
        assert event["evidence"] == {"rested": True}

        path = f"/v1/tenants/me/billing/charges/{event['event_id']}/metering-periods"
        rows = (await api.call("GET", path))["items"]
        charged = sum(row["charged_nanos"] for row in rows)
        assert charged == event["charged_nanos"] == before - await api.balance() > 0
        assert {row["attempt"] for row in rows} == {1}
        assert '"lease_released"' not in log
        assert '"draining"' in log


async def test_a_second_signal_gives_the_runs_back_at_once(tmp_path: Path) -> None:
    marker = f"8642.{os.getpid()}"
    async with open_server(tmp_path, "--port", "0", "--runners", "1", "--drain", "8000") as server:
        api = Api(server)
        zombie = await api.sleeper(marker)

        server.send(signal.SIGINT)
        await eventually(lambda: '"draining"' in (tmp_path / "data/runners/runner-1.log").read_text())
        assert processes_with(f"sleep\0{marker}") != []
        assert (await api.event(zombie))["status"] == "running"

        assert await server.stop() == 0

        await gone(f"sleep\0{marker}")
        await server.start("--runners", "0")
        event = await api.event(zombie)
        assert (event["status"], event["attempts"]) == ("received", 0)
