"""A reader of a stream whose server is killed goes on where it was: nothing missing, nothing twice."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import trio

from tests.patience import PATIENCE_S
from tests.worlds.event_stream import listening
from tests.worlds.samples import YEARLY, agent_files
from tests.worlds.server_process import ServerProcess, open_server

FRAMES_A_LIFE = 40


class Watched:
    """One agent, those who send it messages, and one who follows its stream over all lives of the server."""

    def __init__(self, server: ServerProcess) -> None:
        self.server = server
        self.zombie_id = ""
        self.seen: list[dict[str, Any]] = []
        self.accepted: list[str] = []

    @property
    def path(self) -> str:
        return f"/v1/workspaces/{self.server.ready['workspace_id']}/zombies"

    async def install(self) -> None:
        async with self._client() as http:
            made = await http.post(self.path, json=agent_files("listener", trigger=YEARLY))
            assert made.status_code == 201, made.text
            self.zombie_id = made.json()["zombie_id"]

    def _client(self) -> httpx2.AsyncClient:
        headers = {"authorization": f"Bearer {self.server.ready['api_key']}"}
        return httpx2.AsyncClient(base_url=self.server.ready["base_url"], headers=headers, timeout=30)

    async def send(self) -> None:
        """Until the server goes away."""
        async with self._client() as http:
            while True:
                try:
                    sent = await http.post(
                        f"{self.path}/{self.zombie_id}/messages", json={"message": "hello"}
                    )
                except httpx2.HTTPError:
                    return
                assert sent.status_code == 202, sent.text
                self.accepted.append(sent.json()["event_id"])

    def told(self) -> list[str]:
        """The event of each frame that was seen."""
        return [frame["event_id"] for frame in self.seen]

    def has_seen(self, frames: int) -> bool:
        return len(self.seen) >= frames

    def has_seen_all(self) -> bool:
        return set(self.accepted) <= set(self.told())

    async def follow(self, is_enough: Callable[[], bool]) -> None:
        """Until what was seen is enough."""
        base_url, api_key = self.server.ready["base_url"], self.server.ready["api_key"]
        last_id = str(self.seen[-1]["id"]) if self.seen else "0"
        path = f"{self.path}/{self.zombie_id}/events/stream"
        with trio.fail_after(PATIENCE_S):
            async with listening(base_url, path, api_key, last_event_id=last_id) as stream:
                while not is_enough():
                    self.seen.append(await stream.frame())


async def test_a_stream_is_resumed_over_a_kill_without_a_gap_or_a_repeat(tmp_path: Path) -> None:
    async with open_server(tmp_path, "--port", "0", "--runners", "0") as server:
        watched = Watched(server)
        await watched.install()
        for life in (1, 2):
            async with trio.open_nursery() as nursery:
                for _ in range(3):
                    nursery.start_soon(watched.send)
                await watched.follow(partial(watched.has_seen, life * FRAMES_A_LIFE))
                server.kill()
            await server.start()
        # What was written after the reader had seen enough: a kept event whose answer the kill swallowed is
        # among it, so frames are not counted.
        await watched.follow(watched.has_seen_all)
        numbers = [frame["id"] for frame in watched.seen]

        assert numbers == list(range(1, len(numbers) + 1))
        assert len(set(watched.told())) == len(watched.told())
