"""Several servers on one PostgreSQL, and the calls that are made of them."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import orjson

from tests.worlds.samples import YEARLY, agent_files
from tests.worlds.server_process import ServerProcess, open_server
from tests.worlds.trust import TRUST

WAIT_MS = 5_000
USAGE = {"input_tokens": 0, "cached_input_tokens": 0, "output_tokens": 0}


async def _frames(lines: AsyncIterator[str]) -> AsyncIterator[dict[str, Any]]:
    async for line in lines:
        if line.startswith("data: "):
            yield orjson.loads(line.removeprefix("data: "))


class Node:
    """One of the servers, and the calls that are made of it."""

    def __init__(self, server: ServerProcess, http: httpx2.AsyncClient) -> None:
        self.server = server
        self.workspace = f"/v1/workspaces/{server.ready['workspace_id']}"
        self._http = http
        self._keys: dict[str, str] = dict(server.ready)

    def seen_by(self, workspace: str, api_key: str) -> "Node":
        """The same node for another tenant."""
        node = Node(self.server, self._http)
        node.workspace = workspace
        node._keys["api_key"] = api_key
        return node

    @property
    def api_key(self) -> str:
        return self._keys["api_key"]

    async def call(self, method: str, path: str, body: Any = None, token: str = "api_key") -> Any:
        """``token`` names one of the server's own, or is a runner's."""
        bearer = self._keys.get(token, token)
        headers = {"authorization": f"Bearer {bearer}"}
        answer = await self._http.request(method, path, json=body, headers=headers)
        assert answer.status_code < 300, answer.text
        return answer.json()

    async def post(self, path: str, body: Any, token: str) -> httpx2.Response:
        """Whatever the answer is."""
        headers = {"authorization": f"Bearer {self._keys.get(token, token)}"}
        return await self._http.post(path, json=body, headers=headers)

    async def get(self, path: str, token: str = "") -> httpx2.Response:
        """Whatever the answer is; without a token, what anybody may read."""
        headers = {"authorization": f"Bearer {self._keys.get(token, token)}"} if token else {}
        return await self._http.get(path, headers=headers)

    @asynccontextmanager
    async def stream(self, zombie_id: str) -> AsyncIterator[AsyncIterator[dict[str, Any]]]:
        """The frames of an agent, from now on."""
        headers = {"authorization": f"Bearer {self._keys['api_key']}"}
        path = f"{self.workspace}/zombies/{zombie_id}/events/stream"
        async with self._http.stream("GET", path, headers=headers) as answer:
            assert answer.status_code < 300
            yield _frames(answer.aiter_lines())

    async def metric(self, name: str) -> float:
        """One number of those that the node shows to Prometheus, by its name with labels; 0 of none."""
        lines = (await self._http.get("/metrics")).text.splitlines()
        found = [line for line in lines if line.startswith(name)]
        return float(found[0].rsplit(" ", 1)[-1]) if found else 0.0

    async def refusal(self, path: str, body: Any, token: str) -> str:
        """The code with which a POST is refused."""
        answer = await self.post(path, body, token)
        assert answer.status_code >= 400, answer.text
        return str(answer.json()["error_code"])

    async def install(self, name: str, config: str = "", tags: str = "") -> str:
        files = agent_files(name, config, trigger=YEARLY, tags=tags)
        return str((await self.call("POST", f"{self.workspace}/zombies", files))["zombie_id"])

    async def say(self, zombie_id: str) -> str:
        path = f"{self.workspace}/zombies/{zombie_id}/messages"
        return str((await self.call("POST", path, {"message": "go on"}))["event_id"])

    async def enrol(self, host_id: str, *labels: str) -> str:
        minted = await self.call("POST", "/v1/fleet/enrolment-tokens", {}, "admin_token")
        body = {"host_id": host_id, "sandbox_tier": "bubblewrap", "labels": labels, "slots": 8}
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
async def open_nodes(
    folder: Path,
    database_url: str | Sequence[str],
    *extra: str,
    environments: Sequence[Mapping[str, str]] = ({}, {}),
) -> AsyncIterator[Sequence[Node]]:
    """One node an environment; they share the database, and the folder with the keys of what is sealed.

    Each goes its own way to the database where several are given.
    """
    urls = [database_url] * len(environments) if isinstance(database_url, str) else database_url
    options = ("--port", "0", "--runners", "0", *extra)
    async with AsyncExitStack() as stack:
        servers = []
        for number, (environment, url) in enumerate(zip(environments, urls, strict=True)):
            own = folder / f"node-{number}"
            own.mkdir()
            opening = open_server(
                own, "--database-url", url, *options, data=folder / "data", environment=environment
            )
            servers.append(await stack.enter_async_context(opening))
        yield await stack.enter_async_context(visit_nodes(servers))


@asynccontextmanager
async def visit_nodes(servers: Sequence[ServerProcess]) -> AsyncIterator[Sequence[Node]]:
    """Nodes that run already, which the tests of a module share."""
    async with AsyncExitStack() as stack:
        nodes = []
        for server in servers:
            client = httpx2.AsyncClient(base_url=server.ready["base_url"], timeout=60, verify=TRUST)
            nodes.append(Node(server, await stack.enter_async_context(client)))
        yield nodes
