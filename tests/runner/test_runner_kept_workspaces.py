"""Workspaces that stay, from a sandbox of a real runner over a real server to a real database, and back."""

from __future__ import annotations

import random
from functools import partial
from pathlib import Path
from typing import Any

import trio

from sexton_runner.main import run_runner
from sexton_runner.providers.settings import ModelSettings
from sexton_runner.settings import RunnerSettings
from sexton_runner.timing import Timing
from sexton_storage.postgres import PostgresStorage
from tests.fakes.model_servers import KEY, Call, Say, open_model
from tests.patience import PATIENCE_S
from tests.runner.test_runner_files import at_work
from tests.worlds.http import HttpWorld, open_http_world_on
from tests.worlds.runner import LAUNCHER
from tests.worlds.samples import NOBODY, agent_files, command_body

SECRET = "workspace-canary-8d1c44"
OVER = {"processed", "agent_error"}
COUNTS = """\
read -r event; n=$(cat deep/n 2>/dev/null || echo 0); n=$((n + 1))
mkdir -p deep out; echo $n >deep/n; ln -sf deep/n link; ln -sf /etc/passwd elsewhere
chmod 700 deep; echo file >out/f
case "$event" in *fail*) exit 3 ;; *leak*) echo workspace-canary-''8d1c44 >deep/secret ;; esac
cat link; ls -A | tr '\\n' ' '
"""


async def ended(world: HttpWorld, event_id: str) -> dict[str, Any]:
    with trio.fail_after(PATIENCE_S):
        while True:
            event: dict[str, Any] = (await world.get(f"{world.ws}/events/{event_id}")).json()
            if event["status"] in OVER:
                return event
            await trio.sleep(0.02)


async def woken(world: HttpWorld, zombie_id: str, message: str = "go") -> dict[str, Any]:
    """Wake the agent, and give its event when that has ended."""
    made = await world.post(f"{world.ws}/zombies/{zombie_id}/messages", {"message": message})
    return await ended(world, made.json()["event_id"])


async def installed(world: HttpWorld, files: dict[str, str]) -> str:
    made = await world.post(f"{world.ws}/zombies", files)
    assert made.status_code == 201, made.text
    return str(made.json()["zombie_id"])


def count(event: dict[str, Any]) -> str:
    assert event["status"] == "processed", event
    return str(event["response_text"]).partition("\n")[0]


async def test_a_program_finds_what_the_run_before_left_and_a_replay_what_its_original_found(
    postgres_storage: PostgresStorage, tmp_path: Path
) -> None:
    async with at_work(postgres_storage, tmp_path) as world:
        secret = {"name": "canary", "data": {"token": SECRET}}
        await world.post(f"{world.ws}/credentials", secret)
        config = "runtime: command\nworkspace: keep\ncredentials: [canary]\nnetwork: {allow: [example.com]}"
        files = agent_files("counts", config, trigger=NOBODY, body=command_body(COUNTS))
        agent = await installed(world, files)
        first, second = await woken(world, agent), await woken(world, agent)
        assert (count(first), count(second)) == ("1", "2")
        assert second["response_text"].endswith("\ndeep elsewhere link out "), "only what was made again"

        failed = await woken(world, agent, "fail")
        leaked = await woken(world, agent, "leak")
        assert failed["failure_label"] == "agent_run"
        assert (leaked["failure_label"], leaked["error_code"]) == ("workspace_refused", "UZ-FILE-012"), leaked
        assert "a secret" in leaked["response_text"]

        replay = await world.post(f"{world.ws}/events/{second['event_id']}/replay")
        again = await ended(world, replay.json()["event_id"])
        third = await woken(world, agent)
        assert (count(again), count(third)) == ("2", "3")

        kept = f"{world.ws}/zombies/{agent}/workspace-files"
        assert (await world.get(kept)).json()["snapshot"]["event_id"] == third["event_id"]
        assert (await world.call("DELETE", kept)).json()["reset"] is True

        fresh = await woken(world, agent)
        assert count(fresh) == "1"

        await damage(postgres_storage)
        lost = await woken(world, agent)
        assert (lost["failure_label"], lost["error_code"]) == ("workspace_lost", "UZ-FILE-011"), lost
        assert "another SHA-256" in lost["response_text"]


async def damage(storage: PostgresStorage) -> None:
    """Change a byte of everything that is kept, as a disk could."""
    flip = "UPDATE blob_chunks SET content = set_byte(content, 0, 255 - get_byte(content, 0))"
    await storage.instance._database.change(lambda connection: connection.execute(flip))


async def test_an_agent_finds_after_a_park_what_its_tools_left_before(
    postgres_storage: PostgresStorage, tmp_path: Path
) -> None:
    ask = Call("request_approval", {"action": "go", "summary": "Go on?"})
    script = [
        Say("", (Call("shell", {"command": "echo a-heron >kept; mkdir -p in out"}),)),
        Say("", (ask,)),
        Say("", (Call("shell", {"command": "cat kept"}),)),
        Say("done"),
    ]
    pace = Timing(poll_wait_s=5.0, park_after_s=0.05, gate_wait_s=0.02, flush_s=0.01, backoff_first_s=0.01)
    async with (
        open_model("anthropic", *script) as model,
        open_http_world_on(postgres_storage) as world,
        trio.open_nursery() as nursery,
    ):
        settings = RunnerSettings(
            base_url=world.base_url,
            state_dir=tmp_path / "state",
            runner_token=await world.enrol(),
            models=ModelSettings(addresses={"anthropic": model.base_url}),
        )
        run = partial(run_runner, settings, timing=pace, rng=random.Random(1), launcher=LAUNCHER)
        nursery.start_soon(run)
        key = {"provider": "anthropic", "api_key": KEY}
        await world.call("PUT", f"{world.ws}/credentials/llm", json=key)
        config = "runtime: agent\nworkspace: keep\nmodel: m-1\ntools: [shell, request_approval]"
        agent = await installed(world, agent_files("parks", config, trigger=NOBODY))
        made = await world.post(f"{world.ws}/zombies/{agent}/messages", {"message": "go"})
        event_id = made.json()["event_id"]
        await until_parked(world, event_id)
        (gate,) = (await world.get(f"{world.ws}/approvals?status=pending")).json()["items"]
        await world.post(f"{world.ws}/approvals/{gate['gate_id']}:approve", {})
        event = await ended(world, event_id)
        path = f"{world.ws}/events/{event_id}/transcript?whole=true&limit=200"
        told = (await world.get(path)).json()["items"]
        nursery.cancel_scope.cancel()

        results = [one for one in told if one["kind"] == "tool_result" and one["data"]["name"] == "shell"]

        assert event["status"] == "processed", event
        assert [(one["attempt"], "a-heron" in one["data"]["content"]) for one in results] == [
            (1, False),
            (2, True),
        ]


async def until_parked(world: HttpWorld, event_id: str) -> None:
    with trio.fail_after(PATIENCE_S):
        while (await world.get(f"{world.ws}/events/{event_id}")).json()["status"] != "waiting_approval":
            await trio.sleep(0.02)
