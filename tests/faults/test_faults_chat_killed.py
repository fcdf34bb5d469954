"""A server that is killed between asking Slack and hearing its answer has asked people once."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import asyncpg
import httpx2
import pytest
import trio

from tests.fakes.chat_platform import CLIENT_ID, CLIENT_SECRET, SIGNING_SECRET, open_slack_server, signed
from tests.worlds.server_process import ServerProcess, open_server

SKILL = "---\nname: asks\ndescription: d\nversion: 1.0.0\n---\nLook.\n"
TRIGGER = """---
name: asks
triggers: [{type: webhook, source: alarms}]
gates: {timeout_ms: %d, rules: [{tool: message, action: '*', behavior: approve}]}
---
"""


def configure(folder: Path, slack_url: str) -> None:
    data = folder / "data"
    data.mkdir(mode=0o700)
    lines = {
        "client_id": CLIENT_ID,
        "client_secret": CLIENT_SECRET,
        "signing_secret": SIGNING_SECRET,
        "authorize_url": f"{slack_url}/oauth/v2/authorize",
        "api_url": f"{slack_url}/api",
    }
    file = data / "identity.toml"
    file.write_text("[slack]\n" + "".join(f"{name} = {json.dumps(value)}\n" for name, value in lines.items()))
    file.chmod(0o600)


class Api:
    def __init__(self, server: ServerProcess, http: httpx2.AsyncClient) -> None:
        self._http = http
        self.ws = f"/v1/workspaces/{server.ready['workspace_id']}"
        self._key = {"authorization": f"Bearer {server.ready['api_key']}"}

    async def call(self, method: str, path: str, status: int, **rest: Any) -> httpx2.Response:
        answer = await self._http.request(method, path, headers=self._key, **rest)
        assert answer.status_code == status, answer.text
        return answer

    async def connect(self) -> None:
        left = await self.call("GET", f"{self.ws}/chat/slack/install", 303)
        async with httpx2.AsyncClient() as away:
            back = (await away.get(left.headers["location"])).headers["location"]
            assert (await away.get(back)).status_code == 200

    async def ask(self, timeout_ms: int) -> str:
        """A message that a gate stands before; the gate's id."""
        files = {"source_markdown": SKILL, "trigger_markdown": TRIGGER % timeout_ms}
        agent = (await self.call("POST", f"{self.ws}/zombies", 201, json=files)).json()
        await self.call(
            "POST", f"{self.ws}/zombies/{agent['zombie_id']}/messages", 202, json={"message": "go"}
        )
        listed = (await self.call("GET", f"{self.ws}/approvals?status=pending", 200)).json()
        gate_id: str = listed["items"][0]["gate_id"]
        return gate_id

    async def gate(self, gate_id: str) -> dict[str, Any]:
        gate: dict[str, Any] = (await self.call("GET", f"{self.ws}/approvals/{gate_id}", 200)).json()
        return gate


@asynccontextmanager
async def calling(server: ServerProcess) -> AsyncIterator[Api]:
    async with httpx2.AsyncClient(base_url=server.ready["base_url"], timeout=30) as http:
        yield Api(server, http)


async def expire_claims(folder: Path) -> None:
    """Let the minute pass that a dead node's claim is respected for."""
    socket = min(folder.rglob(".s.PGSQL.*[0-9]"))
    port = socket.name.rpartition(".")[2]
    dsn = f"postgresql:///sexton?host={socket.parent}&port={port}&user=sexton"

    async def expire() -> None:
        connection = await asyncpg.connect(dsn)
        try:
            await connection.execute("UPDATE chat_posts SET due_at = 0")
        finally:
            await connection.close()

    await trio.to_thread.run_sync(lambda: asyncio.run(expire()))


async def test_a_request_that_slack_has_heard_is_posted_once_and_closed(tmp_path: Path) -> None:
    async with open_slack_server() as slack:
        configure(tmp_path, slack.url)
        async with open_server(tmp_path, "--port", "0", "--runners", "0") as server:
            async with calling(server) as api:
                await api.connect()
                slack.hold = trio.Event()
                gate_id = await api.ask(timeout_ms=3_600_000)
                await slack.until(lambda: len(slack.messages) == 1)
                server.kill()
            slack.hold.set()
            slack.hold = None
            await expire_claims(tmp_path)
            await server.start()
            await slack.until(lambda: slack.calls.count("chat.postMessage") == 2)
            [message] = slack.messages.values()
            body = slack.press(message.values[1])
            async with httpx2.AsyncClient(base_url=server.ready["base_url"], timeout=30) as http:
                pressed = await http.post(
                    "/v1/chat/slack/interactions", content=body, headers=signed(body, time.time())
                )
                assert (pressed.status_code, pressed.json()["status"]) == (200, "denied"), pressed.text
            await slack.until(lambda: message.values == [])
            assert len(slack.messages) == 1

            async with calling(server) as api:
                assert (await api.gate(gate_id))["resolved_by"] == "slack:U7"


@pytest.mark.parametrize("killed", [False, True], ids=["alive", "killed"])
async def test_a_gate_is_timed_out_by_a_living_server_and_by_the_next_one(
    tmp_path: Path, killed: bool
) -> None:
    async with open_server(tmp_path, "--port", "0", "--runners", "0") as server:
        async with calling(server) as api:
            gate_id = await api.ask(timeout_ms=1_500)
        if killed:
            server.kill()
            await server.start()
        async with calling(server) as api:
            while (gate := await api.gate(gate_id))["status"] == "pending":
                await trio.sleep(0.1)

        assert (gate["status"], gate["resolved_by"]) == ("timed_out", "system:timeout")
        assert gate["updated_at"] >= gate["timeout_at"]
