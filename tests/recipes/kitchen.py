"""A server, a runner with the real sandbox, stand-ins and a scripted model: what carries recipes out."""

import random
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import trio

from sexton_actors.manifest.model import Manifest, WebhookTrigger
from sexton_actors.manifest.parse import parse
from sexton_cli.webhook_samples import Stamp, sample_of, signed
from sexton_runner.egress_settings import EgressSettings
from sexton_runner.main import run_runner
from sexton_runner.providers.settings import ModelSettings
from sexton_runner.runner import Runner
from sexton_runner.settings import RunnerSettings
from sexton_runner.supervisors.launcher import Launcher
from sexton_runner.supervisors.messages import Pipe
from sexton_runner.tool_settings import ToolSettings
from tests.fakes.model_servers import KEY, Fail, ModelServer, Say, open_model, words_of
from tests.patience import PATIENCE_S
from tests.recipes.stand_ins import StandIns, open_stand_ins
from tests.worlds.http import HttpWorld, open_http_world
from tests.worlds.runner import PACE

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
PRELOADED = Path(__file__).resolve().parents[1] / "worlds" / "preloaded"
WEBHOOK_SECRET = "the senders sign with this"
HOSTS = (
    "api.example.com",
    "api.github.com",
    "backups.example.com",
    "docs.example.com",
    "old.example.com",
    "prometheus.internal",
    "registry.npmjs.org",
    "sexton.example.com",
    "store.blob.core.windows.net",
    "www.example.com",
)
"""Those that programs reach. The tool for requests reaches loopback under any name."""


class Renaming(Launcher):
    """Starts supervisors in which every name leads to loopback."""

    async def fork(self, modules: Sequence[str]) -> tuple[Pipe, int]:
        return await super().fork(["loopback_names", *modules])


@dataclass
class Kitchen:
    """What the case of a recipe acts with."""

    world: HttpWorld
    outside: StandIns
    model: ModelServer
    scripts: dict[str, list[Say]] = field(default_factory=dict)
    """What the model says, by a sentence of the agent's instructions."""
    deliveries: int = 0

    def say(self, question: dict[str, Any]) -> Say | Fail:
        words = words_of(question)
        for sentence, script in self.scripts.items():
            if sentence in words and script:
                return script.pop(0)
        return Fail(400, "invalid_request_error", "the script is over")

    def asked(self, sentence: str) -> list[str]:
        """Give the questions of the agent whose instructions have this sentence, as text."""
        return [words for words in map(words_of, self.model.asked) if sentence in words]

    async def keep(self, name: str, **data: str) -> None:
        answer = await self.world.post(f"{self.world.ws}/credentials", {"name": name, "data": data})
        assert answer.status_code == 201, answer.text

    async def install(self, recipe: str, **edits: str) -> "Cook":
        """Install the recipe with the ports of the stand-ins in its addresses, and ``edits``."""
        skill, trigger = ((EXAMPLES / recipe / name).read_text() for name in ("SKILL.md", "TRIGGER.md"))
        by_model = "runtime: agent" in trigger
        scheme, port = ("http", self.outside.plain_port) if by_model else ("https", self.outside.tls_port)

        def here(text: str) -> str:
            text = re.sub(
                r"https://([\w.-]+)(?=[/\s\"?]|$)", rf"{scheme}://\1:{port}", text, flags=re.MULTILINE
            )
            text = re.sub(r"\{(host: [^,}]+)(, ports: \[\d+\])?", rf"{{\1, ports: [{port}]", text)
            text = text.replace("runtime: agent", "runtime: agent\nmodel: m-1")
            for old, new in edits.items():
                text = text.replace(old, new)
            return text

        body = {"source_markdown": here(skill), "trigger_markdown": here(trigger)}
        answer = await self.world.post(f"{self.world.ws}/zombies", body)
        assert answer.status_code == 201, answer.text
        made = answer.json()
        assert not made.get("warnings"), made["warnings"]
        manifest = parse(body["source_markdown"], body["trigger_markdown"])
        assert isinstance(manifest, Manifest), manifest
        return Cook(self, recipe, made["zombie_id"], made["webhook_urls"], manifest)


@dataclass
class Cook:
    """One recipe that is installed."""

    kitchen: Kitchen
    recipe: str
    zombie_id: str
    urls: dict[str, str]
    manifest: Manifest

    @property
    def path(self) -> str:
        return f"{self.kitchen.world.ws}/zombies/{self.zombie_id}"

    async def tick(self) -> str:
        """Let its schedule fire now; give the event's id."""
        world = self.kitchen.world
        listed = await world.get(f"{world.ws}/schedules?zombie_id={self.zombie_id}")
        (schedule,) = listed.json()["items"]
        answer = await world.post(f"{self.path}/schedules/{schedule['schedule_id']}:run")
        assert answer.status_code == 202, answer.text
        return str(answer.json()["event_id"])

    async def deliver(self, kind: str, body: bytes) -> str:
        """Send a webhook as its sender would, signed where it signs; give the event's id."""
        world = self.kitchen.world
        self.kitchen.deliveries += 1
        (trigger,) = [one for one in self.manifest.triggers if isinstance(one, WebhookTrigger)]
        stamp = Stamp(f"delivery-{self.kitchen.deliveries}", world.actors_world.now_ms() // 1000)
        sent = signed(trigger, sample_of(trigger, kind, body, stamp), WEBHOOK_SECRET, stamp)
        answer = await world.http.post(self.urls[trigger.source], content=sent.body, headers=sent.headers)
        assert answer.status_code == 202, answer.text
        return str(answer.json()["event_id"])

    def payload(self, name: str) -> bytes:
        return (EXAMPLES / self.recipe / "payloads" / name).read_bytes()

    async def bring(self, message: str, **files: str) -> str:
        """Send a message with files; give the event's id."""
        sent: dict[str, str | None] = {name.replace("_", "."): text for name, text in files.items()}
        parts = [("message", (None, message)), *((name, (name, text)) for name, text in sent.items())]
        answer = await self.kitchen.world.call("POST", f"{self.path}/messages", files=parts)
        assert answer.status_code == 202, answer.text
        return str(answer.json()["event_id"])

    async def ended(self, event_id: str, status: str = "processed") -> dict[str, Any]:
        """Wait for the end of an event, which is to be ``status``."""
        path = f"{self.kitchen.world.ws}/events/{event_id}?wait_ms=3000"
        with trio.fail_after(PATIENCE_S):
            while not (event := (await self.kitchen.world.get(path)).json())["ended"]:
                pass
        assert event["status"] == status, (event["status"], event["failure_label"], event["response_text"])
        found: dict[str, Any] = event
        return found

    async def gate(self, event_id: str) -> dict[str, Any]:
        """Wait until the event's run asks a person; give the question."""
        world = self.kitchen.world
        with trio.fail_after(PATIENCE_S):
            while True:
                listed = await world.get(f"{world.ws}/approvals?status=pending&zombie_id={self.zombie_id}")
                if items := listed.json()["items"]:
                    return dict(items[0])
                event = (await world.get(f"{world.ws}/events/{event_id}?wait_ms=200")).json()
                assert not event["ended"], event

    async def decide(self, gate: dict[str, Any], decision: str, reason: str) -> None:
        path = f"{self.kitchen.world.ws}/approvals/{gate['gate_id']}:{decision}"
        answer = await self.kitchen.world.post(path, {"reason": reason})
        assert answer.status_code == 200, answer.text

    async def left(self, event_id: str, name: str) -> str:
        """Give a file that the event's run has left."""
        world = self.kitchen.world
        listed = (await world.get(f"{world.ws}/events/{event_id}/artefacts")).json()["items"]
        (found,) = [one for one in listed if one["name"] == name]
        content = await world.get(f"{world.ws}/artefacts/{found['artefact_id']}/content")
        return content.text


@asynccontextmanager
async def open_kitchen(folder: Path, days: dict[str, int]) -> AsyncIterator[Kitchen]:
    """Open it; ``days`` says how long the certificates of some hosts last."""
    launcher = Renaming()
    async with (
        open_http_world() as world,
        open_stand_ins(folder / "outside", days) as outside,
        open_model("anthropic") as model,
    ):
        kitchen = Kitchen(world, outside, model)
        model.otherwise = kitchen.say
        key = {"provider": "anthropic", "api_key": KEY}
        answer = await world.call("PUT", f"{world.ws}/credentials/llm", json=key)
        assert answer.status_code == 204, answer.text
        settings = RunnerSettings(
            base_url=world.base_url,
            state_dir=folder / "state",
            runner_token=await world.enrol(labels=["backups"]),
            labels=("backups",),
            tools=ToolSettings(allow_loopback=True),
            models=ModelSettings(addresses={model.protocol: model.base_url}),
            egress=EgressSettings(private_hosts=frozenset(HOSTS), ca_bundle=outside.authority.bundle),
        )
        runners: list[Runner] = []
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(
                    partial(
                        run_runner,
                        settings,
                        timing=PACE,
                        rng=random.Random(1),
                        announce=runners.append,
                        launcher=launcher,
                    )
                )
                yield kitchen
                runners[0].stop("the test is over")
        finally:
            launcher.close()
