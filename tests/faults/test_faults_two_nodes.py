"""Two servers on one PostgreSQL: what one of them began the other goes on with, and nothing is done twice."""

import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import trio

from sexton_cli.exits import CONFIG
from tests.faults.server_process import ServerProcess, open_server

SKILL = """---
name: {name}
description: Is leased by hand.
version: 1.0.0
---
Wait.
"""
TRIGGER = """---
name: {name}
triggers:
  - type: cron
    schedule: "0 0 1 1 *"
---
"""
AGENTS, MESSAGES = 12, 6
WAIT_MS = 5_000
USAGE = {"input_tokens": 0, "cached_input_tokens": 0, "output_tokens": 0}
PATIENCE_S = 120


class Node:
    """One of the servers, and the calls that are made of it."""

    def __init__(self, server: ServerProcess, http: httpx2.AsyncClient) -> None:
        self.server = server
        self.workspace = f"/v1/workspaces/{server.ready['workspace_id']}"
        self._http = http

    async def call(self, method: str, path: str, body: Any = None, token: str = "api_key") -> Any:
        """``token`` names one of the server's own, or is a runner's."""
        bearer = self.server.ready.get(token, token)
        headers = {"authorization": f"Bearer {bearer}"}
        answer = await self._http.request(method, path, json=body, headers=headers)
        assert answer.status_code < 300, answer.text
        return answer.json()

    async def refusal(self, path: str, body: Any, token: str) -> str:
        """The code with which a POST is refused."""
        headers = {"authorization": f"Bearer {token}"}
        answer = await self._http.post(path, json=body, headers=headers)
        assert answer.status_code >= 400, answer.text
        return str(answer.json()["error_code"])

    async def install(self, name: str) -> str:
        files = {
            "source_markdown": SKILL.format(name=name),
            "trigger_markdown": TRIGGER.format(name=name),
        }
        return str((await self.call("POST", f"{self.workspace}/zombies", files))["zombie_id"])

    async def say(self, zombie_id: str) -> str:
        path = f"{self.workspace}/zombies/{zombie_id}/messages"
        return str((await self.call("POST", path, {"message": "go on"}))["event_id"])

    async def enrol(self, host_id: str) -> str:
        minted = await self.call("POST", "/v1/fleet/enrolment-tokens", {}, "admin_token")
        body = {"host_id": host_id, "sandbox_tier": "bubblewrap", "labels": [], "slots": 8}
        return str((await self.call("POST", "/v1/runners", body, minted["token"]))["runner_token"])

    async def lease(self, runner: str) -> dict[str, Any] | None:
        asked = {"wait_ms": WAIT_MS, "max": 1}
        lease: dict[str, Any] | None = (await self.call("POST", "/v1/runners/me/leases", asked, runner))[
            "lease"
        ]
        return lease

    async def renew(self, runner: str, lease: dict[str, Any]) -> dict[str, Any]:
        renewed = await self.call("POST", f"/v1/runners/me/leases/{lease['lease_id']}/renew", USAGE, runner)
        return dict(renewed)

    async def report(self, runner: str, lease: dict[str, Any]) -> dict[str, Any]:
        report = {
            "lease_id": lease["lease_id"],
            "event_id": lease["event"]["event_id"],
            "fencing_token": lease["fencing_token"],
            "outcome": "processed",
            "response_text": "done",
            **USAGE,
            "telemetry": {"time_to_first_token_ms": None, "wall_ms": 1},
        }
        return dict(await self.call("POST", "/v1/runners/me/reports", report, runner))

    async def history(self) -> list[dict[str, Any]]:
        page = await self.call("GET", f"{self.workspace}/events?limit=200")
        assert page["next_cursor"] is None
        return list(page["items"])

    async def balance(self) -> int:
        return int((await self.call("GET", "/v1/tenants/me/billing"))["balance_nanos"])


@asynccontextmanager
async def two_nodes(folder: Path, database_url: str) -> AsyncIterator[tuple[Node, Node]]:
    """They share the database, and the folder with the keys that open what is sealed in it."""
    options = ("--database-url", database_url, "--port", "0", "--runners", "0")
    async with AsyncExitStack() as stack:
        nodes = []
        for name in ("first", "second"):
            (folder / name).mkdir()
            server = await stack.enter_async_context(
                open_server(folder / name, *options, data=folder / "data")
            )
            base_url = server.ready["base_url"]
            http = await stack.enter_async_context(httpx2.AsyncClient(base_url=base_url, timeout=60))
            nodes.append(Node(server, http))
        yield nodes[0], nodes[1]


async def test_a_lease_of_a_node_that_was_killed_is_taken_up_by_the_other(
    tmp_path: Path, postgres_dsn: str
) -> None:
    async with two_nodes(tmp_path, postgres_dsn) as (first, second):
        zombie_id = await first.install("watcher")
        lost, heir = await first.enrol("lost"), await second.enrol("heir")
        event_id = await first.say(zombie_id)
        before = await first.lease(lost)
        assert before is not None
        first.server.kill()
        with trio.fail_after(PATIENCE_S):
            while (after := await second.lease(heir)) is None:
                pass
        assert (before["event"]["event_id"], after["event"]["event_id"]) == (event_id, event_id)
        assert after["fencing_token"] > before["fencing_token"]
        # The one runner is late, and is told so by a node that never saw it; the other's report counts.
        late = await second.refusal(f"/v1/runners/me/leases/{before['lease_id']}/renew", USAGE, lost)
        assert late == "UZ-RUN-011"
        assert (await second.report(heir, after))["status"] == "processed"
        [event] = await second.history()
        assert (event["event_id"], event["status"]) == (event_id, "processed")


async def test_two_nodes_give_each_event_to_one_runner_and_take_each_cent_once(
    tmp_path: Path, postgres_dsn: str
) -> None:
    async with two_nodes(tmp_path, postgres_dsn) as nodes:
        first, second = nodes
        before = await first.balance()
        runners = [await nodes[n % 2].enrol(f"runner-{n}") for n in range(4)]
        agents = [await nodes[n % 2].install(f"agent-{n}") for n in range(AGENTS)]
        said = [await nodes[(n + m) % 2].say(a) for n, a in enumerate(agents) for m in range(MESSAGES)]
        leased: Counter[str] = Counter()

        async def work(number: int, runner: str) -> None:
            """Each call goes to the other node than the one before."""
            turn = number
            while sum(leased.values()) < len(said):
                lease = await nodes[turn % 2].lease(runner)
                if lease is not None:
                    leased[lease["event"]["event_id"]] += 1
                    renewed = await nodes[(turn + 1) % 2].renew(runner, lease)
                    assert renewed["state"] == "active"
                    done = await nodes[turn % 2].report(runner, lease)
                    assert (done["status"], done["duplicate"]) == ("processed", False)
                turn += 1

        with trio.fail_after(PATIENCE_S):
            async with trio.open_nursery() as nursery:
                for number, runner in enumerate(runners):
                    nursery.start_soon(work, number, runner)
        assert leased == Counter(said)
        events = await second.history()
        assert {event["event_id"]: event["status"] for event in events} == dict.fromkeys(said, "processed")
        gone = before - await first.balance()
        assert gone == sum(event["charged_nanos"] for event in events) > 0


async def test_a_server_whose_keys_do_not_open_the_database_says_so_and_ends(
    tmp_path: Path, postgres_dsn: str
) -> None:
    options = ("--database-url", postgres_dsn, "--port", "0", "--runners", "0")
    (tmp_path / "first").mkdir()
    async with open_server(tmp_path / "first", *options):
        words = [sys.executable, "-m", "sexton_cli.main", "up", "--data", str(tmp_path / "other"), *options]
        ended = await trio.run_process(words, check=False, capture_stderr=True, capture_stdout=True)
    [line] = ended.stderr.decode().splitlines()
    assert ended.returncode == CONFIG
    assert line.startswith("sexton: UZ-STARTUP-002: the master keys of this folder do not open")
    assert "SEXTON_MASTER_KEY" in line
