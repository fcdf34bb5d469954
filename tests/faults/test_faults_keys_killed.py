"""Messages under Idempotency-Keys when the server is killed: each is kept once, each repeat is answered."""

from collections import Counter
from pathlib import Path

import httpx2
import trio

from sexton_storage.terms import KEY_SOON_MS
from tests.patience import PATIENCE_S
from tests.worlds.samples import YEARLY, agent_files
from tests.worlds.server_process import ServerProcess, open_server
from tests.worlds.trust import TRUST

MESSAGES = 24
BEFORE_THE_KILL = 4
ACCEPTED, OPEN = 202, 409


class Sender:
    """Sends its messages, each under a key of its own."""

    def __init__(self, server: ServerProcess, zombie_id: str) -> None:
        self._server = server
        self._path = f"/v1/workspaces/{server.ready['workspace_id']}/zombies/{zombie_id}/messages"
        self.answers: dict[int, str] = {}
        self.statuses: Counter[int] = Counter()

    async def send(self, number: int) -> None:
        headers = {
            "authorization": f"Bearer {self._server.ready['api_key']}",
            "idempotency-key": f"message-{number}",
        }
        async with self._client() as http:
            try:
                answer = await http.post(self._path, json={"message": f"number {number}"}, headers=headers)
            except httpx2.HTTPError:
                # It was killed.
                return
        self.statuses[answer.status_code] += 1
        if answer.status_code == ACCEPTED:
            event_id = answer.json()["event_id"]
            assert self.answers.setdefault(number, event_id) == event_id

    def _client(self) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(base_url=self._server.ready["base_url"], timeout=30, verify=TRUST)

    async def events(self) -> list[str]:
        headers = {"authorization": f"Bearer {self._server.ready['api_key']}"}
        path = self._path.removesuffix("/messages") + "/events?limit=100"
        async with self._client() as http:
            return [event["event_id"] for event in (await http.get(path, headers=headers)).json()["items"]]


async def install(server: ServerProcess) -> str:
    files = agent_files("w", trigger=YEARLY)
    headers = {"authorization": f"Bearer {server.ready['api_key']}"}
    path = f"/v1/workspaces/{server.ready['workspace_id']}/zombies"
    async with httpx2.AsyncClient(base_url=server.ready["base_url"], timeout=30) as http:
        return str((await http.post(path, json=files, headers=headers)).json()["zombie_id"])


async def test_no_message_stays_open_or_is_kept_twice_when_the_server_is_killed(
    tmp_path: Path, postgres_dsn: str
) -> None:
    options = ("--database-url", postgres_dsn, "--port", "0", "--runners", "0")
    async with open_server(tmp_path, *options) as server:
        api_key = server.ready["api_key"]
        sender = Sender(server, await install(server))
        async with trio.open_nursery() as nursery:
            for number in range(MESSAGES):
                nursery.start_soon(sender.send, number)
            with trio.fail_after(PATIENCE_S):
                while len(sender.answers) < BEFORE_THE_KILL:
                    await trio.lowlevel.checkpoint()
            server.kill()

        await server.start()
        server.ready["api_key"] = api_key
        with trio.fail_after(PATIENCE_S):
            while len(sender.answers) < MESSAGES:
                for number in range(MESSAGES):
                    await sender.send(number)
                await trio.sleep(KEY_SOON_MS / 10_000)

        assert sender.statuses.keys() <= {ACCEPTED, OPEN}
        assert sorted(await sender.events()) == sorted(sender.answers.values())
