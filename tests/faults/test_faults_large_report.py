"""A run that comes to more than a report may hold ends once, and is not repeated five times."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sexton_actors.catalogue import Catalogue, Model
from sexton_runner.providers.settings import ModelSettings
from sexton_runner.settings import RunnerSettings
from tests.fakes.model_servers import KEY, Call, Say, open_model
from tests.worlds.http import open_http_world
from tests.worlds.runner_agents import HASTE
from tests.worlds.runner_death import a_runner, until_it_ends

CATALOGUE = Catalogue("2026-11-20", [Model("m-1", "openai", 10_000_000, 1_000_000, 1_000_000, 1_000_000)])
CONFIG = "provider: openai\nmodel: m-1\ntools: [propose_improvement]\n"
FILE = '"' * 65_536  # Each becomes two bytes of JSON.
PROPOSALS = 8


def answer(question: dict[str, Any]) -> Say:
    """Propose two files of 128 KiB as JSON, eight times."""
    done = sum(turn["role"] == "tool" for turn in question["messages"])
    if done == PROPOSALS:
        return Say("I have proposed.", input_tokens=20, output_tokens=7)
    proposal = {
        "title": f"p{done}",
        "rationale": "because",
        "source_markdown": FILE,
        "trigger_markdown": FILE,
    }
    return Say("", (Call("propose_improvement", proposal),), input_tokens=10, output_tokens=3)


async def test_a_report_that_is_too_large_ends_its_event_at_the_first_attempt(tmp_path: Path) -> None:
    async with open_model("openai", otherwise=answer) as model, open_http_world(catalogue=CATALOGUE) as world:
        await world.keep_secret()
        zombie = await world.install(config=CONFIG)
        key = {"name": "openai_api_key", "data": {"api_key": KEY}}
        assert (await world.post(f"{world.ws}/credentials", key)).status_code == 201
        assert (await world.deliver(zombie["webhook_urls"]["github"])).status_code == 202

        settings = RunnerSettings(
            base_url=world.base_url,
            state_dir=tmp_path,
            runner_token=await world.enrol("h1"),
            slots=1,
            models=ModelSettings(addresses={"openai": model.base_url}, patience=HASTE),
        )
        async with a_runner(settings):
            event = await until_it_ends(world, zombie["zombie_id"])

    assert (event["status"], event["attempts"]) == ("processed", 1), event["response_text"]
    assert event["response_text"].startswith("I have proposed.")
    assert "proposals]" in event["response_text"]
