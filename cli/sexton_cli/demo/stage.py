"""What the acts of the demo have in common: a server, its users, and the agents that they watch."""

import secrets
import time
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Final

import trio

from sexton_actors.manifest.model import Signature, WebhookTrigger
from sexton_cli import example_files
from sexton_cli.demo.client import Answer, Client, StreamFrame
from sexton_cli.demo.environment import DemoServer
from sexton_cli.demo.model import Model
from sexton_cli.demo.narration import Narrator
from sexton_cli.demo.outside import Outside
from sexton_cli.example_files import Example
from sexton_cli.webhook_samples import Stamp, sample_of, signed

GITHUB: Final = WebhookTrigger("github", signature=Signature("github"))
RUN_S: Final = 45.0


class Watcher:
    """Follows one agent's stream, tells each frame, and lets others wait for one."""

    def __init__(self, client: Client, path: str, narrator: Narrator) -> None:
        self._client = client
        self._path = path
        self._narrator = narrator
        self.frames: list[StreamFrame] = []
        self._news = trio.Event()

    async def follow(self) -> None:
        # From the agent's first frame on: what it does before the stream is open belongs to the tale.
        last_id = "0"
        while True:
            async for frame in self._client.stream(self._path, last_id):
                last_id = frame.id
                self._narrator.frame(frame.id, frame.kind, frame.data)
                self.frames.append(frame)
                self._news.set()
                self._news = trio.Event()

    async def until(
        self, what: Callable[[StreamFrame], bool], within_s: float, *, after: int = 0
    ) -> StreamFrame:
        """The first frame, from the ``after``-th on, that is so; raises trio.TooSlowError."""
        with trio.fail_after(within_s):
            while True:
                for frame in self.frames[after:]:
                    if what(frame):
                        return frame
                news = self._news
                await news.wait()


class Stage:
    """One server, and what may be done with it."""

    def __init__(
        self,
        server: DemoServer,
        client: Client,
        admin: Client,
        narrator: Narrator,
        *,
        model: Model | None,
        outside: Outside,
    ) -> None:
        self.model = model
        self.server = server
        self.client = client
        self.admin = admin
        self.tell = narrator
        self.outside = outside
        self.workspace = f"/v1/workspaces/{server.ready['workspace_id']}"
        self.webhook_secret = secrets.token_hex(20)

    async def enrol(self, name: str) -> None:
        minted = await self.admin.post("/v1/fleet/enrolment-tokens")
        self.server.start_runner(name, minted.body["token"])
        self.tell.fact(f"runner {name!r} enrols itself with a one-time token")

    async def keep(self, claim: str, name: str, data: Mapping[str, str]) -> None:
        """Seal a credential."""
        kept = await self.client.post(f"{self.workspace}/credentials", {"name": name, "data": data})
        self.tell.check(claim, kept.status == HTTPStatus.CREATED, kept)

    async def install(self, example: str, files: Example | None = None) -> tuple[str, dict[str, str]]:
        files = files or example_files.load(example)
        made = await self.client.post(f"{self.workspace}/zombies", files._asdict())
        self.tell.check(f"agent {example} is installed", made.status == HTTPStatus.CREATED, made)
        self.tell.fact(f"zombie_id {made.body['zombie_id']}")
        return made.body["zombie_id"], made.body["webhook_urls"]

    async def deliver(
        self, url: str, event: str, body: bytes, delivery: str, *, secret: str | None = None
    ) -> Answer:
        path = "/" + url.split("/", 3)[3]
        stamp = Stamp(delivery, int(time.time()))
        made = sample_of(GITHUB, event, body, stamp)
        sent = signed(GITHUB, made, secret or self.webhook_secret, stamp)
        return await self.client.post_raw(path, sent.body, sent.headers)

    def watcher(self, zombie_id: str) -> Watcher:
        return Watcher(self.client, f"{self.workspace}/zombies/{zombie_id}/events/stream", self.tell)

    async def balance(self) -> int:
        return int((await self.client.get("/v1/tenants/me/billing")).body["balance_nanos"])
